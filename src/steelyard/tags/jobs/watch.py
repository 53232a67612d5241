"""The watch, which polls the backend's jobs, and applies or publishes their outcomes."""

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from oslo_log import log as logging

from steelyard import errors
from steelyard.tags.jobs.following import Follower
from steelyard.tags.jobs.loops import Clock, Loop
from steelyard.tags.jobs.observers import WatchObserver
from steelyard.tags.jobs.tracking import JobTracker
from steelyard.tags.states.values import Outcome

if TYPE_CHECKING:
    from steelyard.tags.jobs.broker import Broker

LOG = logging.getLogger(__name__)

_FAILURE = "Cannot process the backend's jobs"
_PRUNE_EVERY = 3600.0
# Seconds until an outcome that is not applied is published again; they double up to the second
# value. The message may be lost, or all dispatchers may be stopped.
_AGAIN_AFTER = 60.0
_AGAIN_AT_LAST = 3600.0


class Watch:
    """The periodic work on jobs: applying or publishing outcomes, reconciling, deleting old marks.

    With a broker, the watch publishes outcomes for a dispatcher; otherwise, it applies them. Lost
    jobs have no outcome, so their instances are reconciled. All instances are reconciled every
    ``reconcile_every`` seconds, unless that is 0. Marks are kept for ``marks_kept`` seconds.
    """

    def __init__(
        self,
        tracker: JobTracker,
        marks_kept: float,
        broker: "Broker | None" = None,
        clock: Clock = time.monotonic,
        reconcile_every: float = 0.0,
    ) -> None:
        self._tracker = tracker
        self._follower = Follower(tracker, clock)
        self._reconcile_every = reconcile_every
        self._marks_kept = marks_kept
        self._broker = broker
        self._clock = clock
        self._published = _Published(clock)
        self._prune_at = clock()
        self.observer = WatchObserver()

    def every(self, seconds: float) -> Loop:
        """Return the loop that runs ``look`` at this interval."""
        return Loop(self.look, seconds, _FAILURE)

    def look(self) -> None:
        """Run each step once; a step that fails does not stop the others.

        The first failure is raised at the end, and the others are logged.
        """
        failures: list[Exception] = []
        # The follower comes first: it leaves the jobs of pending operations to the poll.
        for step in (self._follow, self._poll, self._reconcile_if_due, self._prune_if_due):
            try:
                step()
            except Exception as error:  # noqa: BLE001  (a third-party backend can raise anything)
                failures.append(error)
        self.observer.looked(succeeded=not failures)
        for failure in failures[1:]:
            if isinstance(failure, errors.SteelyardError):
                LOG.warning("%s: %s", _FAILURE, failure)
            else:
                LOG.error(_FAILURE, exc_info=failure)
        if failures:
            raise failures[0]

    def _follow(self) -> None:
        self._follower.look(self._apply)

    def _apply(self, outcomes: Sequence[Outcome]) -> None:
        """Apply the outcomes of others' jobs, or publish them."""
        if self._broker is None:
            for outcome in outcomes:
                self._apply_one(outcome)
        elif outcomes:
            with self._broker.publishing() as publish:
                for outcome in outcomes:
                    publish(outcome)
                    self.observer.published()

    def _apply_one(self, outcome: Outcome) -> None:
        """Apply the outcome; log and skip it if its content is the cause of an error.

        Otherwise it would block all later jobs.
        """
        try:
            self._tracker.apply(outcome)
        except errors.CannotBeKept as error:
            LOG.warning("Skipped the outcome of job %s: %s", outcome.job, error)
        except errors.SteelyardError:  # the database or the backend fails, so this is retried
            raise
        except Exception:
            LOG.exception("Skipped the outcome of job %s", outcome.job)

    def _reconcile_if_due(self) -> None:
        if not self._reconcile_every:
            return
        began = time.time()
        last = self._tracker.store.watched().reconciled or 0.0
        # A time in the future was recorded before the clock was set back.
        if not last <= began < last + self._reconcile_every:
            self._tracker.reconciliation().apply()
            self._tracker.store.note_reconciled(began)

    def _prune_if_due(self) -> None:
        if self._clock() >= self._prune_at:
            self._prune_at = self._clock() + _PRUNE_EVERY
            LOG.debug("Deleted %s old marks", self._tracker.store.prune(self._marks_kept))

    def _poll(self) -> None:
        if self._broker is None:
            self._tracker.poll()
        else:
            self._publish(self._broker)

    def _publish(self, broker: "Broker") -> None:
        finished = self._tracker.finished()
        self._tracker.reconcile_lost(finished.lost)
        due = self._published.due(outcome for _, outcome in finished.outcomes)
        if due:
            with broker.publishing() as publish:
                for outcome in due:
                    publish(outcome)
                    self._published.note(outcome)
                    self.observer.published()


class _Published:
    """The published outcomes, and when to publish each one again if it is not applied by then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._again: dict[Outcome, tuple[float, float]] = {}

    def due(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """Return the outcomes to publish now, given all that are not applied."""
        unapplied = list(outcomes)
        self._again = {each: self._again[each] for each in unapplied if each in self._again}
        now = self._clock()
        return [
            each for each in unapplied if each not in self._again or self._again[each][0] <= now
        ]

    def note(self, outcome: Outcome) -> None:
        """Record that the outcome was published; the pause until it is due again doubles."""
        _, pause = self._again.get(outcome, (0.0, _AGAIN_AFTER))
        self._again[outcome] = (self._clock() + pause, min(2 * pause, _AGAIN_AT_LAST))
