"""The services of a cloud that clouds.yaml describes."""

import contextlib
from collections.abc import Iterator
from typing import Any

import steelyard
from steelyard import errors, extras
from steelyard.desk.compute import Compute
from steelyard.placement import SERVICE_TYPE, Placement

MODEL = "placement"
"""The model of consumers that is made for it."""

_SECONDS = 60
_ASKED_AGAIN = {
    "connect_retries": 2,
    "status_code_retries": 2,
    "retriable_status_codes": [429, 502, 503, 504],
}
"""What is asked again where clouds.yaml does not say; that is for what only reads."""


def placement(cloud: str) -> Placement:
    """The client of the Placement of the named cloud."""
    with _connected(cloud) as connection:
        return Placement(connection.placement)


def adapter(cloud: str, service_type: str) -> Any:
    """What asks the named cloud's service of that type, in the name of the user there."""
    with _connected(cloud) as connection:
        return _adapter(connection.config, service_type)


def compute_and_placement(cloud: str) -> tuple[Compute, Placement | None]:
    """The clients of its Nova and of its Placement, if the catalogue of its services has one."""
    with _connected(cloud) as connection:
        compute = _reading(connection.config, "compute", min_version="2", max_version="2.latest")
        placement = _reading(connection.config, SERVICE_TYPE)
        if not _is_there(compute):
            raise errors.ServiceError(
                f"--os-cloud {cloud}: the catalogue of its services has no compute for this region "
                f"and interface"
            )
        return Compute(compute), Placement(placement) if _is_there(placement) else None


def _reading(config: Any, service_type: str, **versions: Any) -> Any:
    """One that neither waits for an answer without end nor gives up at the first failure."""
    session = config.get_session()
    if session.timeout is None:
        session.timeout = _SECONDS
    return _adapter(config, service_type, **_asked_again(config, service_type), **versions)


def _asked_again(config: Any, service_type: str) -> dict[str, Any]:
    # An older openstacksdk does not read all of these: its unknown attributes are None.
    readers = {name: getattr(config, f"get_{name}") for name in _ASKED_AGAIN}
    try:
        said = {name: read and read(service_type) for name, read in readers.items()}
    except (TypeError, ValueError) as error:
        raise errors.BadRequest(
            f"{', '.join(_ASKED_AGAIN)} in clouds.yaml have to be whole numbers ({error})"
        ) from error
    return {name: _ASKED_AGAIN[name] if each is None else each for name, each in said.items()}


def _adapter(config: Any, service_type: str, **more: Any) -> Any:
    """One of keystoneauth's, for services that openstacksdk does not know, and for many threads."""
    from keystoneauth1.adapter import Adapter  # noqa: PLC0415  (an extra)

    return Adapter(
        config.get_session(),
        service_type=config.get_service_type(service_type),
        interface=config.get_interface(service_type),
        region_name=config.get_region_name(service_type),
        endpoint_override=config.get_endpoint(service_type),
        client_name="steelyard",
        client_version=steelyard.__version__,
        **more,
    )


def _is_there(adapter: Any) -> bool:
    """Whether the catalogue of services has what the adapter asks."""
    from keystoneauth1 import exceptions  # noqa: PLC0415  (an extra)

    try:
        return adapter.get_endpoint() is not None
    except exceptions.CatalogException:
        return False


@contextlib.contextmanager
def _connected(cloud: str) -> Iterator[Any]:
    """The named cloud as openstacksdk knows it; what fails there is an error of ours."""
    with extras.required("placement", "a connection to a live cloud"):
        import openstack  # noqa: PLC0415  (an extra)
        from keystoneauth1 import exceptions  # noqa: PLC0415  (as above)
    try:
        yield _connect(openstack, cloud)
    except openstack.exceptions.SDKException as error:
        raise errors.BadRequest(f"--os-cloud {cloud}: {error}") from error
    except exceptions.ClientException as error:
        raise errors.ServiceError(f"--os-cloud {cloud}: {error}") from error


def _connect(openstack: Any, cloud: str) -> Any:
    import yaml  # noqa: PLC0415  (openstacksdk needs it)

    try:
        return openstack.connect(cloud=cloud)
    except (AttributeError, TypeError, yaml.YAMLError) as error:
        # openstacksdk raises these for a file that is not of its form, and older ones the last for
        # a file that is not YAML.
        raise errors.BadRequest(
            f"--os-cloud {cloud}: clouds.yaml, or another file that openstacksdk reads with it, is "
            f"malformed ({' '.join(str(error).split())}); below 'clouds' is a mapping of names"
        ) from error
