"""What consumers are called by the services that own them: INSTANCE, MIGRATION, …"""

import dataclasses
import re

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
