"""The services of a cloud that clouds.yaml describes."""

from collections.abc import Callable
from typing import Any, TypeVar

from steelyard import errors
from steelyard.placement import Placement

MODEL = "placement"
"""The model of consumers that is made for it."""

ServiceT = TypeVar("ServiceT")


def placement(cloud: str) -> Placement:
    """The client of the Placement of the named cloud."""
    return _of(cloud, lambda connection: Placement(connection.placement))


def adapter(cloud: str, service_type: str) -> Any:
    """What asks the named cloud's service of that type, in the name of the user there."""
    return _of(cloud, lambda connection: _adapter(connection, service_type))


def _adapter(connection: Any, service_type: str) -> Any:
    """One of keystoneauth's: openstacksdk has none for services that it does not know."""
    from keystoneauth1.adapter import Adapter  # noqa: PLC0415  (an extra)

    config = connection.config
    return Adapter(
        connection.session,
        service_type=service_type,
        interface=config.get_interface(service_type),
        region_name=config.get_region_name(service_type),
        endpoint_override=config.get_endpoint(service_type),
    )


def _of(cloud: str, service: Callable[[Any], ServiceT]) -> ServiceT:
    try:
        import openstack  # noqa: PLC0415  (an extra)
        from keystoneauth1 import exceptions  # noqa: PLC0415  (as above)
    except ModuleNotFoundError:
        raise errors.MissingExtra(
            "asking a cloud needs openstacksdk: python3 -m pip install 'steelyard[placement]'"
        ) from None
    try:
        return service(openstack.connect(cloud=cloud))
    except openstack.exceptions.SDKException as error:
        raise errors.BadRequest(f"--os-cloud {cloud}: {error}") from error
    except exceptions.ClientException as error:
        raise errors.ServiceError(f"--os-cloud {cloud}: {error}") from error
