"""Reading the attributes of a scheduler's hosts and requests.

An attribute that is missing, None or not loaded reads as None. Reading raises no exception and
causes no query: objects that load attributes on access, such as Nova's, report through
``obj_attr_is_set`` which attributes are loaded.
"""

import contextlib
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

__all__ = ["read"]


def read(thing: object, name: str) -> Any:
    """Return the attribute's value; None if it is missing, not loaded or cannot be read."""
    try:
        is_set = getattr(thing, "obj_attr_is_set", None)
        if is_set is not None and not is_set(name):
            return None
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - an object's __getattr__ can raise anything
        return None


def read_mapping(thing: object, name: str) -> Mapping[Any, Any]:
    """Return the attribute's value if it is a mapping, otherwise an empty mapping."""
    value = read(thing, name)
    return value if isinstance(value, Mapping) else {}


def read_all(things: Sequence[object], name: str) -> list[Any]:
    """Return the attribute's value for each thing, as ``read`` does.

    Either all things load attributes on access or none does: only the first one is tested.
    """
    with contextlib.suppress(Exception):  # if one cannot be read, read them one by one below
        if things and not hasattr(things[0], "obj_attr_is_set"):
            return list(map(attrgetter(name), things))
    return [read(thing, name) for thing in things]


def by_identity(lists: Sequence[Iterable[Any]]) -> dict[int, Any]:
    """Return the distinct things in the lists by their ``id``; they need not be hashable."""
    things: Collection[Any]
    try:
        things = set(itertools.chain.from_iterable(lists))
        # mypy compares only the types of the two methods, which differ.
        by_value = any(
            type(thing).__eq__ is not object.__eq__  # type: ignore[comparison-overlap]
            for thing in things
        )
    except TypeError:  # a thing is not hashable
        by_value = True
    if by_value:  # the set has dropped things that equal others
        things = list(itertools.chain.from_iterable(lists))
    return {id(thing): thing for thing in things}
