"""The services of a cloud that clouds.yaml describes."""

import contextlib
from collections.abc import Iterator
from typing import Any

from steelyard import errors
from steelyard.desk.compute import Compute
from steelyard.placement import Placement

MODEL = "placement"
"""The model of consumers that is made for it."""


def placement(cloud: str) -> Placement:
    """The client of the Placement of the named cloud."""
    with _connected(cloud) as connection:
        return Placement(connection.placement)


def compute_and_placement(cloud: str) -> tuple[Compute, Placement | None]:
    """The clients of its Nova and of its Placement, if the catalogue of its services has one."""
    with _connected(cloud) as connection:
        compute, placement = map(connection.config.get_session_client, ("compute", "placement"))
        if compute.get_endpoint() is None:
            raise errors.ServiceError(
                f"--os-cloud {cloud}: its catalogue of services has no compute service for this "
                f"region and interface"
            )
        there = placement.get_endpoint() is not None
        return Compute(compute), Placement(placement) if there else None


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
        yield openstack.connect(cloud=cloud)
    except openstack.exceptions.SDKException as error:
        raise errors.BadRequest(f"--os-cloud {cloud}: {error}") from error
    except exceptions.ClientException as error:
        raise errors.ServiceError(f"--os-cloud {cloud}: {error}") from error
