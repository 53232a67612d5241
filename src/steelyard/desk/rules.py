"""What Nova's ``AggregateInstanceExtraSpecsFilter`` answers, whoever knows it."""

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Protocol

from steelyard.aggregates import SCOPE
from steelyard.scheduler import Aggregate


class Outcome(enum.StrEnum):
    PASSES = "passes"
    REJECTS = "rejects"
    ABORTS = "aborts"
    """The filter raises, which fails the whole request."""
    MAY_ABORT = "may abort"
    """It raises or it answers, by the order in which it meets keys and values.

    Nova keeps values in sets, whose order changes with every start of a scheduler, and has keys
    in the order in which a database gives them.
    """
    NOT_KNOWN = "not known"


@dataclasses.dataclass(frozen=True, slots=True)
class NovaVerdict:
    """Nova's answer for one flavor and the aggregates of a host.

    ``why`` says what raises, or why the answer is not known; otherwise it is empty.
    """

    outcome: Outcome
    why: str = ""


class Rules(Protocol):
    """Somebody who knows Nova's answers."""

    @property
    def name(self) -> str:
        """Whose rules these are, for people to read."""

    def judge(
        self, extra_specs: Mapping[str, str], aggregates: tuple[Aggregate, ...]
    ) -> NovaVerdict: ...


def demands(extra_specs: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Each key as it is written and without the scope, and its text; in the order of keys."""
    for key, text in sorted(extra_specs.items()):
        yield key, key.removeprefix(SCOPE), text


def ends_in(text: str, value: str, error: Exception) -> str:
    """What raises: a flavor's text against a value of an aggregate."""
    return f"{text!r} against {value!r} ends in {type(error).__name__}: {error}"
