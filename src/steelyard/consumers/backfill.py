"""Gives a type to consumers that have none, in a real Placement, and changes nothing else of them.

A consumer is decided upon by itself, from what Placement says of it at that moment. So whoever
stops halfway starts again, and what has its type by then is passed over.
"""

import contextlib
import dataclasses
import enum
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard import errors
from steelyard.consumers import uuids
from steelyard.consumers.names import UNKNOWN, ConsumerType

# It needs an extra, and is made by others.
if TYPE_CHECKING:
    from steelyard.consumers.client import PlacementConsumers

STOPPING = (errors.NoAccess, errors.MicroversionTooLow)
"""Errors that the next consumer would meet as well."""

# Seconds before each attempt at a consumer that others are changing at the same time.
_PAUSES = (0, 0.1, 0.2, 0.4, 0.8)
# How many reasons are shown for an outcome; there may be one for each of thousands of providers.
_REASONS = 10


class Outcome(enum.StrEnum):
    """What has become of a consumer."""

    CHANGED = "changed"
    WOULD_CHANGE = "would change"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What has become of one consumer, and why it is not changed if it is not."""

    consumer: str
    outcome: Outcome
    reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """How many consumers share an outcome and a reason."""

    outcome: Outcome
    consumers: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """Which type is meant, and for whose consumers."""

    type: ConsumerType
    project: str
    user: str | None = None

    def __post_init__(self) -> None:
        if self.type == UNKNOWN:
            raise errors.InvalidConsumerType(
                f"{UNKNOWN} is what consumers without a type have already; name the type that they "
                f"are to get, such as INSTANCE"
            )

    def why_not(self, found: Mapping[str, Any]) -> str:
        """Why a consumer of which this was read is to stay as it is; empty if it is not to."""
        if not found["allocations"]:
            return "has no allocations; perhaps it is gone"
        if found["project_id"] != self.project:
            return "is of another project"
        if self.user not in (None, found["user_id"]):
            return "is of another user"
        if found["consumer_type"] != UNKNOWN.name:
            return f"has the type {found['consumer_type']} already"
        return ""


class Backfill:
    """Works towards a goal, one consumer at a time.

    What goes wrong with a consumer is its result. What would go wrong with every other one too,
    an error among STOPPING, is raised.
    """

    def __init__(self, consumers: "PlacementConsumers", goal: Goal) -> None:
        self._consumers = consumers
        self._goal = goal

    def examine(self, consumer: str) -> Result:
        """What ``change`` would do, as far as reading can tell."""
        try:
            reason = self._goal.why_not(self._consumers.get_allocations(consumer))
        except STOPPING:
            raise
        except errors.SteelyardError as error:
            return Result(consumer, Outcome.FAILED, str(error))
        return Result(consumer, Outcome.SKIPPED if reason else Outcome.WOULD_CHANGE, reason)

    def change(self, consumer: str) -> Result:
        """Gives the consumer the type, if the goal says so of what is read now."""
        for pause in _PAUSES:
            time.sleep(pause)
            with contextlib.suppress(errors.ConcurrentUpdate):
                return self._attempt(consumer)
        return Result(
            consumer,
            Outcome.FAILED,
            f"others were changing it, or its provider, each of the {len(_PAUSES)} times that it "
            f"was tried",
        )

    def _attempt(self, consumer: str) -> Result:
        try:
            found = self._consumers.get_allocations(consumer)
            reason = self._goal.why_not(found)
            if reason:
                return Result(consumer, Outcome.SKIPPED, reason)
            # The generation that was read goes back too: what others write meanwhile is not lost.
            typed = {**found, "consumer_type": self._goal.type.name}
            self._consumers.put_allocations(consumer, typed)
        except (errors.ConcurrentUpdate, *STOPPING):
            raise
        except errors.SteelyardError as error:
            return Result(consumer, Outcome.FAILED, str(error))
        return Result(consumer, Outcome.CHANGED)


def candidates(consumers: "PlacementConsumers", providers: Iterable[str]) -> list[str]:
    """Those who have something from the providers, each once; a provider may be gone by now."""
    found: dict[str, None] = {}
    for provider in providers:
        with contextlib.suppress(errors.NotFound):
            found |= dict.fromkeys(consumers.consumers_of(provider))
    return list(found)


def listed(lines: Iterable[str], source: str) -> list[str]:
    """The UUIDs of a list, one a line, each once; # begins a comment."""
    found: dict[str, None] = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text:
            found[_uuid(text, f"{source}, line {number}")] = None
    return list(found)


def _uuid(text: str, place: str) -> str:
    found = uuids.canonical(text)
    if found is None:
        raise errors.BadRequest(
            f"{place}: {text!r:.100} is no UUID; write one a line, such as {uuid.UUID(int=0)}"
        )
    return found


def grouped(results: Iterable[Result]) -> list[Group]:
    """The results in few lines: by outcome, the commonest reasons first."""
    # Placement names the consumer in some of its reasons, and each would be another one.
    counted = Counter(
        (result.outcome, result.reason.replace(result.consumer, "…")) for result in results
    )
    groups = [Group(outcome, count, reason) for (outcome, reason), count in counted.items()]
    groups.sort(key=lambda group: (-group.consumers, group.reason))
    return [
        shown
        for outcome in Outcome
        for shown in _shortened([group for group in groups if group.outcome == outcome])
    ]


def _shortened(groups: Sequence[Group]) -> list[Group]:
    """The groups of one outcome, of which those that are too many become one."""
    first, rest = list(groups[:_REASONS]), groups[_REASONS:]
    if rest:
        count = sum(group.consumers for group in rest)
        first.append(Group(rest[0].outcome, count, f"{len(rest)} other reasons"))
    return first
