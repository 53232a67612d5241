"""Helpers for immutable values."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenMapping(Mapping[K, V]):
    """An immutable copy of a mapping, which can be hashed, pickled and copied."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __or__(self, other: Mapping[K, V]) -> dict[K, V]:
        return self._items | dict(other) if isinstance(other, Mapping) else NotImplemented

    def __ror__(self, other: Mapping[K, V]) -> dict[K, V]:
        return dict(other) | self._items if isinstance(other, Mapping) else NotImplemented

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._items,)


def freeze(instance: object, field: str, value: object) -> None:
    """Set a field of a frozen dataclass; call this only in its ``__post_init__``."""
    object.__setattr__(instance, field, value)
