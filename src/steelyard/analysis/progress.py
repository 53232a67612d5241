"""The contract of functions that show the progress of long questions."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

ItemT = TypeVar("ItemT")


class Watching(Protocol):
    """A function that yields items and shows how many of them are done."""

    def __call__(self, items: Sequence[ItemT], what: str) -> Iterable[ItemT]:
        """Return the items; ``what`` is their plural noun."""


def unwatched(items: Sequence[ItemT], what: str) -> Iterable[ItemT]:
    """Return the items without showing any progress."""
    return items
