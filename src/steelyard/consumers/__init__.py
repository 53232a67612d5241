"""Consumers of resources, by type: who they are, what is allocated to them, what they use.

The store needs the extra ``sql``, the client ``placement``: each is imported when it is asked for.
"""

from typing import TYPE_CHECKING

from steelyard.consumers.names import ConsumerType
from steelyard.extras import lazily

if TYPE_CHECKING:
    from steelyard.consumers.client import PlacementConsumers
    from steelyard.consumers.store import ConsumerStore

__all__ = ["ConsumerStore", "ConsumerType", "PlacementConsumers"]

__getattr__ = lazily(
    __name__,
    {"ConsumerStore": ("store", "sql"), "PlacementConsumers": ("client", "placement")},
)
