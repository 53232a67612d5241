"""The Placement of a cloud that clouds.yaml describes."""

from steelyard import errors
from steelyard.placement import Placement

MODEL = "placement"
"""The model of consumers that is made for it."""


def placement(cloud: str) -> Placement:
    """The client of the Placement of the named cloud."""
    try:
        import openstack  # noqa: PLC0415  (an extra)
        from keystoneauth1 import exceptions  # noqa: PLC0415  (as above)
    except ModuleNotFoundError:
        raise errors.MissingExtra(
            "asking a cloud needs openstacksdk: python3 -m pip install 'steelyard[placement]'"
        ) from None
    try:
        return Placement(openstack.connect(cloud=cloud).placement)
    except openstack.exceptions.SDKException as error:
        raise errors.BadRequest(f"--os-cloud {cloud}: {error}") from error
    except exceptions.ClientException as error:
        raise errors.ServiceError(f"--os-cloud {cloud}: {error}") from error
