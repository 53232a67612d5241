"""The services of a cloud that clouds.yaml describes."""

import contextlib
from collections.abc import Iterator
from typing import Any

from steelyard import errors
from steelyard.desk.compute import Compute
from steelyard.placement import SERVICE_TYPE, Placement

MODEL = "placement"
"""The model of consumers that is made for it."""


def placement(cloud: str) -> Placement:
    """The client of the Placement of the named cloud."""
    with _connected(cloud) as connection:
        return Placement(connection.placement)


def compute_and_placement(cloud: str) -> tuple[Compute, Placement | None]:
    """The clients of its Nova and of its Placement, if the catalogue of its services has one."""
    with _connected(cloud) as connection:
        compute = _adapter(connection.config, "compute", min_version="2", max_version="2.latest")
        placement = _adapter(connection.config, SERVICE_TYPE)
    if compute is None:
        raise errors.ServiceError(
            f"--os-cloud {cloud}: the catalogue of its services has no compute for this region and "
            f"interface"
        )
    return Compute(compute), None if placement is None else Placement(placement)


def _adapter(config: Any, service_type: str, **versions: Any) -> Any:
    """For what several threads ask at once; None where the catalogue does not have it."""
    from keystoneauth1 import adapter, exceptions  # noqa: PLC0415  (an extra)

    made = adapter.Adapter(
        config.get_session(),
        service_type=config.get_service_type(service_type),
        interface=config.get_interface(service_type),
        region_name=config.get_region_name(service_type),
        endpoint_override=config.get_endpoint(service_type),
        **versions,
    )
    try:
        return None if made.get_endpoint() is None else made
    except exceptions.CatalogException:
        return None


@contextlib.contextmanager
def _connected(cloud: str) -> Iterator[Any]:
    """The named cloud as openstacksdk knows it; what fails there is an error of ours."""
    try:
        import openstack  # noqa: PLC0415  (an extra)
        from keystoneauth1 import exceptions  # noqa: PLC0415  (as above)
    except ModuleNotFoundError:
        raise errors.MissingExtra(
            "asking a cloud needs openstacksdk: python3 -m pip install 'steelyard[placement]'"
        ) from None
    try:
        yield _connect(openstack, cloud)
    except openstack.exceptions.SDKException as error:
        raise errors.BadRequest(f"--os-cloud {cloud}: {error}") from error
    except exceptions.ClientException as error:
        raise errors.ServiceError(f"--os-cloud {cloud}: {error}") from error


def _connect(openstack: Any, cloud: str) -> Any:
    try:
        return openstack.connect(cloud=cloud)
    except (AttributeError, TypeError) as error:
        # What openstacksdk raises of a file that is YAML, and not of the form that it takes.
        raise errors.BadRequest(
            f"--os-cloud {cloud}: clouds.yaml, or another file that openstacksdk reads with it, is "
            f"malformed ({error}); below 'clouds' is a mapping of names"
        ) from error
