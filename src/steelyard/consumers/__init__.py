"""Consumers of resources, by type: who they are, what is allocated to them, what they use.

The store needs the extra ``sql``; it is imported when it is asked for.
"""

from typing import TYPE_CHECKING, Any

from steelyard.consumers.names import ConsumerType

if TYPE_CHECKING:
    from steelyard.consumers.store import ConsumerStore

__all__ = ["ConsumerStore", "ConsumerType"]


def __getattr__(name: str) -> Any:
    if name == "ConsumerStore":
        from steelyard.consumers.store import ConsumerStore  # noqa: PLC0415  (an extra)

        return ConsumerStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
