"""The one reader of what a scheduler hands to its plugins.

An attribute that is missing, None or not loaded reads as None: never an exception, and never a
query. Objects that load on access, as Nova's do, say through ``obj_attr_is_set`` what they have.
"""

import contextlib
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any


def read(thing: object, name: str) -> Any:
    """Return the attribute's value, or None."""
    try:
        is_set = getattr(thing, "obj_attr_is_set", None)
        if is_set is not None and not is_set(name):
            return None
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - an object's __getattr__ can raise anything
        return None


def read_mapping(thing: object, name: str) -> Mapping[Any, Any]:
    """The attribute's value if it is a mapping, or an empty one."""
    value = read(thing, name)
    return value if isinstance(value, Mapping) else {}


def read_all(things: Sequence[object], name: str) -> list[Any]:
    """Return the attribute's value of each, or None.

    Things of one list have one type, or do not load attributes on access.
    """
    with contextlib.suppress(Exception):  # some of them cannot be read: read them one by one
        if things and not hasattr(things[0], "obj_attr_is_set"):
            return list(map(attrgetter(name), things))
    return [read(thing, name) for thing in things]


def by_identity(lists: Sequence[Iterable[Any]]) -> dict[int, Any]:
    """The things in all of the lists, each once; they need not be hashable."""
    things: Collection[Any]
    try:
        things = set(itertools.chain.from_iterable(lists))
        by_value = any(
            type(thing).__eq__ is not object.__eq__  # type: ignore[comparison-overlap]
            for thing in things
        )
    except TypeError:  # some cannot be hashed
        by_value = True
    if by_value:  # the set has lost those that are equal to others
        things = list(itertools.chain.from_iterable(lists))
    return {id(thing): thing for thing in things}
