"""Consumers of resources, by type: who they are, what is allocated to them, what they use.

The store needs the extra ``sql``, the client ``placement``: each is imported when it is asked for.
"""

from typing import TYPE_CHECKING, Any

from steelyard import extras
from steelyard.consumers.names import ConsumerType

if TYPE_CHECKING:
    from steelyard.consumers.client import PlacementConsumers
    from steelyard.consumers.store import ConsumerStore

__all__ = ["ConsumerStore", "ConsumerType", "PlacementConsumers"]


def __getattr__(name: str) -> Any:
    """Import the names that need an extra when they are first used."""
    if name == "ConsumerStore":
        with extras.required("sql", "the consumer store"):
            from steelyard.consumers.store import ConsumerStore  # noqa: PLC0415  (an extra)
        return ConsumerStore
    if name == "PlacementConsumers":
        with extras.required("placement", "the client for consumers in Placement"):
            from steelyard.consumers.client import PlacementConsumers  # noqa: PLC0415  (an extra)
        return PlacementConsumers
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
