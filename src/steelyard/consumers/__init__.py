"""Consumers of resources, by type: who they are, what is allocated to them, what they use.

The store needs the extra ``sql``, the client ``placement``: each is imported when it is asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from steelyard.consumers.names import ConsumerType

if TYPE_CHECKING:
    from steelyard.consumers.client import PlacementConsumers
    from steelyard.consumers.store import ConsumerStore

__all__ = ["ConsumerStore", "ConsumerType", "PlacementConsumers"]

_ROOMS = {"ConsumerStore": "store", "PlacementConsumers": "client"}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return getattr(importlib.import_module(f"{__name__}.{_ROOMS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
