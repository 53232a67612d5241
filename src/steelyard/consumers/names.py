"""Names of consumer types: INSTANCE, MIGRATION and others."""

import dataclasses
import re
from collections import defaultdict
from collections.abc import Mapping

from steelyard import errors
from steelyard.text.spelling import near_miss

PATTERN = "^[A-Z0-9_]+$"
LONGEST = 255

_NAME = re.compile(f"[A-Z0-9_]{{1,{LONGEST}}}")


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class ConsumerType:
    """A valid name of a consumer type.

    Any well-formed name is accepted, since the services that use a name agree on it among
    themselves. Raises InvalidConsumerType for a malformed name.
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise errors.InvalidConsumerType(
                f"invalid consumer type {self.name!r:.300}: expected 1 to {LONGEST} characters of "
                f"A-Z, 0-9 and _",
                self.name,
            )

    def __str__(self) -> str:
        return self.name


UNKNOWN = ConsumerType("UNKNOWN")
"""The type of consumers whose owner has not set one."""

PLACEMENTS_UNKNOWN = "unknown"
"""Placement's name for the type of consumers without one."""

ALL = "all"
"""All types, in a query. It is in lower case, so no type can have this name."""

# Names of each length that are offered as corrections. There may be thousands of names, since any
# well-formed name is accepted, and a typo usually stands for a name that many consumers have.
_COMPARED = 50
# The largest difference in length between two names that differ only in separators.
_SEPARATORS = 3


def near_misses(counts: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the possible typos among the names, each with the names it may stand for.

    A name is a possible typo of a similar name that more consumers have. Only the 50 most used
    names of each length are offered. UNKNOWN is offered whatever its count, and is never a typo
    itself, because the schema creates it.
    """
    found = {}
    greater: defaultdict[int, list[str]] = defaultdict(list)
    for name in sorted(counts, key=lambda name: (name != UNKNOWN.name, -counts[name], name)):
        lengths = range(len(name) - _SEPARATORS, len(name) + _SEPARATORS + 1)
        others = [other for length in lengths for other in greater[length]]
        near = [other for other in others if near_miss(name, other)]
        if near:
            found[name] = sorted(near, key=lambda other: (-counts[other], other))
        if len(greater[len(name)]) < _COMPARED:
            greater[len(name)].append(name)
    return found
