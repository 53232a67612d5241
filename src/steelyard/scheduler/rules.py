"""The contract of rules: answers of Nova's ``AggregateInstanceExtraSpecsFilter``."""

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Protocol

from steelyard.aggregates import SCOPE
from steelyard.cloud import Aggregate


class NovaAnswer(enum.StrEnum):
    """The answers of Nova's filter for one host."""

    PASSES = "passes"
    REJECTS = "rejects"
    ABORTS = "aborts"
    """The filter raises, which fails the whole request."""
    MAY_ABORT = "may abort"
    """The filter raises or answers, depending on the order in which it reads keys and values.

    Nova keeps values in sets, whose order changes with every start of a scheduler, and reads keys
    in the order in which a database returns them.
    """
    NOT_KNOWN = "not known"


@dataclasses.dataclass(frozen=True, slots=True)
class NovaVerdict:
    """Nova's answer for one flavor and the aggregates of a host.

    ``why`` is the error, or the reason why the answer is not known; otherwise, it is empty.
    """

    outcome: NovaAnswer
    why: str = ""


class NovaRules(Protocol):
    """A source of Nova's answers."""

    @property
    def name(self) -> str:
        """The name of the rules in messages."""

    def judge(
        self, extra_specs: Mapping[str, str], aggregates: tuple[Aggregate, ...]
    ) -> NovaVerdict:
        """Return Nova's answer for a flavor and a host in these aggregates."""


def demands(extra_specs: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield each key, the key without the scope, and its text; sorted by key."""
    for key, text in sorted(extra_specs.items()):
        yield key, key.removeprefix(SCOPE), text


def ends_in(text: str, value: str, error: Exception) -> str:
    """Return a message about the error in comparing a flavor's text with an aggregate's value."""
    return f"comparing {text!r} with {value!r} raises {type(error).__name__}: {error}"
