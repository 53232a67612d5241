"""What a check has found."""

import dataclasses

from steelyard.severity import Severity


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing that will bite, where it is, why it will, and what to do about it.

    ``check`` is the name of what was looked for; with ``where``, it says which finding this is.
    """

    severity: Severity
    check: str
    where: str
    why: str
    remedy: str


def of_aggregate(name: str, key: str | None = None) -> str:
    """The place in an aggregate: the whole of it, or one key of its metadata."""
    return f"aggregate {name!r}" + ("" if key is None else f", key {key!r}")


def of_flavor(name: str, key: str | None = None) -> str:
    """The place in a flavor: the whole of it, or one of its extra specs."""
    return f"flavor {name!r}" + ("" if key is None else f", extra spec {key!r}")


def listed(names: list[str], most: int = 3) -> str:
    """The names for people, the first few of many."""
    more = len(names) - most
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and {more} more" if more > 0 else shown
