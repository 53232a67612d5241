"""Backfill of consumer types, for consumers without a type in Placement or in a store.

Only the type is changed. Each consumer is handled separately, by its current state. An interrupted
run can be repeated; it skips consumers that have a type.
"""

import contextlib
import dataclasses
import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from steelyard import errors
from steelyard.consumers.base import Body, Consumers
from steelyard.consumers.names import UNKNOWN, ConsumerType
from steelyard.text import uuids

STOPPING = (errors.NoAccess, errors.MicroversionTooLow, errors.UpgradeNeeded)
"""Errors that every further consumer would cause as well."""

# Reasons listed per outcome. There may be one for each of thousands of providers.
_REASONS = 10


class BackfillOutcome(enum.StrEnum):
    """The outcome for one consumer."""

    CHANGED = "changed"
    WOULD_CHANGE = "would change"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclasses.dataclass(frozen=True, slots=True)
class BackfillResult:
    """The outcome for one consumer, with the reason unless it was changed."""

    consumer: str
    outcome: BackfillOutcome
    reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class OutcomeCount:
    """The number of consumers that share an outcome and a reason."""

    outcome: BackfillOutcome
    consumers: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """The type to set on the consumers of a project, or of one of its users."""

    type: ConsumerType
    project: str
    user: str | None = None

    def __post_init__(self) -> None:
        if self.type == UNKNOWN:
            raise errors.InvalidConsumerType(
                f"invalid type '{UNKNOWN}' for the backfill: consumers without a type already have "
                f"it; name the type to set, such as INSTANCE",
                self.type.name,
            )

    def reason_to_skip(self, found: Mapping[str, Any]) -> str:
        """Return the reason to skip a consumer, or an empty text if it gets the type.

        ``found`` is the consumer's allocations, as read.
        """
        if not found["allocations"]:
            return "has no allocations; it may have been deleted"
        if found["project_id"] != self.project:
            return "belongs to another project"
        if self.user not in (None, found["user_id"]):
            return "belongs to another user"
        if found["consumer_type"] != UNKNOWN.name:
            return f"already has type {found['consumer_type']}"
        return ""


class Backfill:
    """A worker that sets the goal's type on one consumer at a time.

    An error with one consumer is part of its result. The errors in STOPPING, which every further
    consumer would cause as well, are raised.
    """

    def __init__(self, consumers: Consumers, goal: Goal) -> None:
        self._consumers = consumers
        self._goal = goal

    def examine(self, consumer: str) -> BackfillResult:
        """Return the result that ``change`` would have, as far as a read can tell."""
        return self._result(consumer, BackfillOutcome.WOULD_CHANGE, self._read)

    def change(self, consumer: str) -> BackfillResult:
        """Set the type of the consumer if the goal covers it, and return the outcome.

        Reads the consumer first, and again if another client writes it meanwhile.
        """
        return self._result(consumer, BackfillOutcome.CHANGED, self._update)

    def _result(
        self, consumer: str, done: BackfillOutcome, act: Callable[[str], str]
    ) -> BackfillResult:
        """Return the result of the act, which returns its reason to skip the consumer."""
        try:
            reason = act(consumer)
        except STOPPING:
            raise
        except errors.SteelyardError as error:
            return BackfillResult(consumer, BackfillOutcome.FAILED, str(error))
        return BackfillResult(consumer, BackfillOutcome.SKIPPED if reason else done, reason)

    def _read(self, consumer: str) -> str:
        return self._goal.reason_to_skip(self._consumers.get_allocations(consumer))

    def _update(self, consumer: str) -> str:
        reason = ""

        def typed(found: Body) -> Body:
            nonlocal reason
            reason = self._goal.reason_to_skip(found)
            return found if reason else {**found, "consumer_type": self._goal.type.name}

        self._consumers.update(consumer, typed)
        return reason


def candidates_of_providers(consumers: Consumers, providers: Iterable[str]) -> list[str]:
    """Return the UUIDs of the consumers of the providers, each once.

    Providers that no longer exist are skipped.
    """
    found: dict[str, None] = {}
    for provider in providers:
        with contextlib.suppress(errors.NotFound):
            found |= dict.fromkeys(consumers.consumers_of(provider=provider))
    return list(found)


def listed(lines: Iterable[str], source: str) -> list[str]:
    """Return the UUIDs in the lines, each once.

    One UUID per line; ``#`` begins a comment. Raises BadRequest, with source and line, for invalid
    text.
    """
    found: dict[str, None] = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text:
            found[_uuid(text, f"{source}, line {number}")] = None
    return list(found)


def _uuid(text: str, place: str) -> str:
    try:
        return uuids.read(text)
    except ValueError as error:
        raise errors.BadRequest(f"{place}: {error}; list one UUID per line") from None


def grouped(results: Iterable[BackfillResult]) -> list[OutcomeCount]:
    """Return the results counted by outcome and reason, the most common reason first.

    The rarest reasons of an outcome are merged into one line.
    """
    # Some of Placement's reasons name the consumer, which would make each of them unique.
    counted = Counter(
        (result.outcome, result.reason.replace(result.consumer, "…")) for result in results
    )
    groups = [OutcomeCount(outcome, count, reason) for (outcome, reason), count in counted.items()]
    groups.sort(key=lambda group: (-group.consumers, group.reason))
    return [
        shown
        for outcome in BackfillOutcome
        for shown in _shortened([group for group in groups if group.outcome == outcome])
    ]


def _shortened(groups: Sequence[OutcomeCount]) -> list[OutcomeCount]:
    """Return the groups of one outcome, with all groups beyond the limit merged into one."""
    first, rest = list(groups[:_REASONS]), groups[_REASONS:]
    if rest:
        count = sum(group.consumers for group in rest)
        first.append(OutcomeCount(rest[0].outcome, count, f"{len(rest)} other reasons"))
    return first
