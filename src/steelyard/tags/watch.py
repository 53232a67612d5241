"""What looks after jobs that are under way, again and again, so that nobody waits for ever."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from oslo_log import log as logging

from steelyard.loops import Loop
from steelyard.tags.service import TagService
from steelyard.tags.states import Outcome

if TYPE_CHECKING:
    from steelyard.tags.broker import Broker

LOG = logging.getLogger(__name__)

_PRUNE_EVERY = 3600.0
# Seconds until the same is published again, at first and at last: it may have got lost, or whoever
# is to settle it may be away for long.
_AGAIN_AFTER = 60.0
_AGAIN_AT_LAST = 3600.0

Clock = Callable[[], float]


class Watch:
    """Has what has become of jobs settled, or publishes it for a dispatcher; forgets old marks.

    What the backend has lost is nothing to publish: it shows in what is there.
    """

    def __init__(
        self,
        service: TagService,
        marks_kept: float,
        broker: "Broker | None" = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._service = service
        self._marks_kept = marks_kept
        self._broker = broker
        self._clock = clock
        self._published = _Published(clock)
        self._prune_at = clock()

    def every(self, seconds: float) -> Loop:
        """What looks again and again."""
        return Loop(self.look, seconds, "Jobs cannot be looked at")

    def look(self) -> None:
        """Does it once. What fails is done the next time."""
        if self._broker is None:
            self._service.poll()
        else:
            self._publish(self._broker)
        if self._clock() >= self._prune_at:
            self._prune_at = self._clock() + _PRUNE_EVERY
            LOG.debug("%s old marks are forgotten", self._service.store.prune(self._marks_kept))

    def _publish(self, broker: "Broker") -> None:
        over = self._service.over()
        self._service.settle_lost(over.lost)
        due = self._published.due(outcome for _, outcome in over.outcomes)
        if due:
            with broker.publishing() as publish:
                for outcome in due:
                    publish(outcome)
                    self._published.note(outcome)


class _Published:
    """What has been published, and when to do so again if nobody has settled it by then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._again: dict[Outcome, tuple[float, float]] = {}

    def due(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """Which of all those that are not settled to publish now."""
        asked = list(outcomes)
        self._again = {each: self._again[each] for each in asked if each in self._again}
        now = self._clock()
        return [each for each in asked if each not in self._again or self._again[each][0] <= now]

    def note(self, outcome: Outcome) -> None:
        """That it has been published; the more often, the longer until it is due again."""
        _, pause = self._again.get(outcome, (0.0, _AGAIN_AFTER))
        self._again[outcome] = (self._clock() + pause, min(2 * pause, _AGAIN_AT_LAST))
