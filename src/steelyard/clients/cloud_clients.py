"""The clients of one cloud."""

from typing import NamedTuple

from steelyard.clients.compute import Compute
from steelyard.clients.image import Images
from steelyard.clients.placement import Placement
from steelyard.clients.volume import Volumes


class CloudClients(NamedTuple):
    """Clients that read from one cloud; None for a service that the catalog does not list."""

    compute: Compute
    placement: Placement | None
    images: Images | None
    volumes: Volumes | None
