"""Consumers of resources: their types, their allocations and their usage.

The store needs the extra ``sql``, the client the extra ``placement``. Each is imported on first
use.
"""

from typing import TYPE_CHECKING, Any

from steelyard import extras
from steelyard.consumers.names import ConsumerType
from steelyard.consumers.quota import QuotaUsage

if TYPE_CHECKING:
    from steelyard.consumers.client import PlacementConsumers
    from steelyard.consumers.store import ConsumerStore, include_name

__all__ = ["ConsumerStore", "ConsumerType", "PlacementConsumers", "QuotaUsage", "include_name"]


def __getattr__(name: str) -> Any:
    """Import a name that needs an extra on first use."""
    if name in {"ConsumerStore", "include_name"}:
        with extras.required("sql", "the consumer store"):
            from steelyard.consumers import store  # noqa: PLC0415  (an extra)
        return getattr(store, name)
    if name == "PlacementConsumers":
        with extras.required("placement", "the client for consumers in Placement"):
            from steelyard.consumers.client import PlacementConsumers  # noqa: PLC0415  (an extra)
        return PlacementConsumers
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
