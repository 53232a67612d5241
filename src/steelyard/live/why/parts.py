"""Parts of the facts, each of which may be unreadable."""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from steelyard import errors
from steelyard.live.at_once import each_answered

ValueT = TypeVar("ValueT")


@dataclasses.dataclass(frozen=True, slots=True)
class Reading(Generic[ValueT]):
    """A value, with a message for each part of it that could not be read."""

    value: ValueT
    not_known: tuple[str, ...] = ()


def readable(
    what: str,
    read: Callable[[], ValueT],
    otherwise: ValueT,
    needs: str = "",
    raises: tuple[type[errors.SteelyardError], ...] = (),
) -> Reading[ValueT]:
    """Return the result of ``read``, or ``otherwise`` and the reason why it cannot be read.

    ``needs`` is the policy rule or the role that shows it. The errors in ``raises`` are raised.
    """
    try:
        return Reading(read())
    except raises:
        raise
    except errors.Forbidden as error:
        why = f"reading it needs {needs}" if needs else str(error)
    except errors.SteelyardError as error:
        why = str(error)
    return Reading(otherwise, (f"{what}: {why}",))


def at_once(asked: Mapping[str, Callable[[], Reading[Any]]]) -> dict[str, Reading[Any]]:
    """Return the parts by name; they are read at the same time."""
    with contextlib.closing(each_answered(lambda read: read(), asked.values())) as answered:
        return dict(zip(asked, answered, strict=True))
