"""Checks of the types of arguments, with errors that name the argument."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from steelyard import errors

T = TypeVar("T")

# They are iterable too, but their characters or keys are never the intended members.
_NOT_COLLECTIONS = (str, bytes, Mapping)


def members(
    argument: str,
    value: object,
    expected: str,
    error: type[errors.InvalidQuery] = errors.InvalidQuery,
) -> list[Any]:
    """Return the members of a collection as a list; raise the error for anything else."""
    if isinstance(value, _NOT_COLLECTIONS) or not isinstance(value, Iterable):
        raise unexpected(argument, value, expected, error)
    return list(value)


def mapping(argument: str, value: object, expected: str) -> Mapping[Any, Any]:
    """Return the value if it is a mapping; raise InvalidQuery otherwise."""
    if not isinstance(value, Mapping):
        raise unexpected(argument, value, f"a mapping of {expected}")
    return value


def instance(
    argument: str,
    value: object,
    kind: type[T],
    expected: str,
    error: type[errors.InvalidQuery] = errors.InvalidQuery,
) -> T:
    """Return the value if it is of the kind; raise the error otherwise."""
    if not isinstance(value, kind):
        raise unexpected(argument, value, expected, error)
    return value


def unexpected(
    argument: str,
    value: object,
    expected: str,
    error: type[errors.InvalidQuery] = errors.InvalidQuery,
) -> errors.InvalidQuery:
    """Return the error for an argument of a wrong type."""
    return error(f"{argument}: expected {expected}, not {value!r:.80}", value)


@contextlib.contextmanager
def naming(argument: str) -> Iterator[None]:
    """Prefix errors in the block with the name of an argument or a parameter."""
    try:
        yield
    except errors.InvalidQuery as error:
        raise error.named(argument) from None
