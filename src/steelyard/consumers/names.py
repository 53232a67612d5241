"""What consumers are called by the services that own them: INSTANCE, MIGRATION, …"""

import dataclasses
import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from steelyard import errors

PATTERN = "^[A-Z0-9_]+$"
LONGEST = 255

_NAME = re.compile(f"[A-Z0-9_]{{1,{LONGEST}}}")


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class ConsumerType:
    """A name of a type of consumers; InvalidConsumerType if it cannot be one.

    Names are not judged further: they are an agreement among the services that use them.
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise errors.InvalidConsumerType(
                f"{self.name!r:.300} is no consumer type; it is 1 to {LONGEST} characters of A-Z, "
                f"0-9 and _"
            )

    def __str__(self) -> str:
        return self.name


UNKNOWN = ConsumerType("UNKNOWN")
"""The type of consumers whose owner has not said what they are."""

ALL = "all"
"""Stands for every type in a question; no type can be called this."""

# Above what two types that are meant to be two usually have: NODE_1 and NODE_2 are at 0.83.
_NEAR = 0.85
# How many names of each length the others are compared with. Nobody judges names, so there may be
# thousands; a slip is a slip for one that many use.
_COMPARED = 50


def near_misses(counts: Mapping[str, int]) -> dict[str, list[str]]:
    """For each name that is nearly another one, used by more consumers: that other one.

    Of the names of a length, the fifty that most use are such others. UNKNOWN is always one, and
    never a slip: it is there before anybody writes.
    """
    found = {}
    greater: defaultdict[int, list[str]] = defaultdict(list)
    for name in sorted(counts, key=lambda name: (name != UNKNOWN.name, -counts[name], name)):
        others = [other for length in _near_lengths(len(name)) for other in greater[length]]
        near = difflib.get_close_matches(name, others, cutoff=_NEAR)
        if near:
            found[name] = near
        if len(greater[len(name)]) < _COMPARED:
            greater[len(name)].append(name)
    return found


def _near_lengths(length: int) -> Iterator[int]:
    """The lengths at which a name can be near one of this length: two share at most the shorter."""
    for other in range(length // 2, 2 * length + 1):
        if 2 * min(length, other) >= _NEAR * (length + other):
            yield other
