"""Following the list of a backend's jobs, to record changes that others make there.

The database records a position: the job number up to which all jobs are applied. It stays below
the oldest unfinished job, and moves only after the outcomes below it are applied, so an
interruption loses none of them.
"""

import collections
import dataclasses
import itertools
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from oslo_log import log as logging

from steelyard._once import Once
from steelyard.tags.backends.base import JobStatus, TagJob
from steelyard.tags.codec import Tag
from steelyard.tags.jobs import messages
from steelyard.tags.jobs.loops import Clock
from steelyard.tags.jobs.tracking import JobTracker
from steelyard.tags.states.values import Kind, Outcome

LOG = logging.getLogger(__name__)

# The most unlisted numbers in one query, the greatest ones first.
_UNLISTED = 1000
# Numbers after the position to query if no job is listed: these jobs may be archived already.
_AHEAD = 20
# Seconds for which an unlisted number may still appear: jobs are not always listed in order.
_LISTED_AFTER = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Jobs:
    """The jobs after the position."""

    last: int
    statuses: Mapping[int, JobStatus]
    """The statuses of the jobs that the backend knows, by number."""

    unknown: Collection[int]
    """The numbers that the backend does not know."""

    lost_to: int = 0
    """The greatest number that was not queried, because there were too many; 0 if none."""


class Follower:
    """A follower of the list of a backend's jobs. Does nothing if the backend has no list."""

    def __init__(self, tracker: JobTracker, clock: Clock = time.monotonic) -> None:
        self._tracker = tracker
        self._clock = clock
        self._first_time = Once()
        self._reconciled_without_jobs = False
        """Whether the instances were reconciled since the backend was found to list no jobs."""

        self._forget_jobs()

    def _forget_jobs(self) -> None:
        self._done: set[int] = set()
        """The numbers above the position whose outcomes are applied."""

        self._reconciled_to = 0
        """Unlisted jobs up to this number are covered by a reconciliation of all instances."""

        self._unknown: dict[int, float] = {}
        """When each unknown number was first found missing, by the clock."""

    def look(self, apply: Callable[[Sequence[Outcome]], None]) -> None:
        """Apply the outcomes of others' jobs by ``apply``, and move the position.

        Jobs of the service's pending operations are left to the poll.
        """
        position = self._tracker.store.watched().job
        if position is None:
            self._begin()
            return
        found = self._jobs(position)
        if found is None:
            return
        new, recent = self._new(found), self._recent(found.unknown)
        gone = set(found.unknown) - recent - self._done
        running = {each for each, status in found.statuses.items() if status is JobStatus.RUNNING}
        reached = min(running | recent, default=found.last + 1) - 1
        if new or gone or found.lost_to or reached != position:
            self._tracker.store.check_backend()
        apply(self._outcomes(new))
        if gone or found.lost_to:
            LOG.warning(
                "Reconciling all instances: the backend no longer knows some jobs from %s to %s",
                position,
                found.last,
            )
            self._reconcile()
            self._reconciled_to = max(found.lost_to, self._reconciled_to)
        if reached != position:
            self._tracker.store.follow(position, reached)
        self._done = {each for each in self._done.union(new, gone) if each > reached}

    def _begin(self) -> None:
        """Reconcile all instances, and set the position after the jobs that this covers.

        If all jobs are archived, their numbers are unknown. Then the position stays unset until a
        job is listed, so that archived jobs are not taken for new ones.
        """
        self._forget_jobs()
        listed = self._tracker.backend.jobs_since(0)
        if listed is None or (not listed and self._reconciled_without_jobs):
            return
        self._tracker.store.check_backend()
        self._reconcile()
        self._reconciled_without_jobs = not listed
        if listed:
            self._tracker.store.follow(None, _finished_up_to(listed))

    def _reconcile(self) -> None:
        began = time.time()
        self._tracker.reconciliation().apply()
        self._tracker.store.note_reconciled(began)

    def _jobs(self, position: int) -> _Jobs | None:
        """Return the jobs after the position, or None if the backend has no list of them."""
        backend = self._tracker.backend
        listed = backend.jobs_since(position)
        if listed is None:
            return None
        if not listed:
            return self._archived(position)
        last = max(listed)
        unlisted = (
            each
            for each in range(last, max(position, self._reconciled_to), -1)
            if each not in listed and each not in self._done
        )
        known, unknown = self._ask(list(itertools.islice(unlisted, _UNLISTED)))
        return _Jobs(last, {**listed, **known}, unknown, lost_to=next(unlisted, 0))

    def _archived(self, position: int) -> _Jobs:
        """Return the jobs after the position if the backend lists none: they may be archived."""
        known, unknown = self._ask(range(position + 1, position + 1 + _AHEAD))
        last = max(known, default=position)
        if (
            not known
            and not self._tracker.backend.has_issued(position)
            and self._first_time(position)
        ):
            LOG.warning(
                "The backend has not issued job %s, the last job followed: if it was reinstalled, "
                "stop the watch and the dispatchers, purge their queue, and run "
                "'steelyard tags reconcile --forget-jobs'",
                position,
            )
        return _Jobs(last, known, [each for each in unknown if each < last])

    def _ask(self, numbers: Collection[int]) -> tuple[Mapping[int, JobStatus], list[int]]:
        """Return the statuses of the jobs that the backend knows, and the other numbers."""
        found = self._tracker.backend.jobs(numbers) if numbers else {}
        known = {each: found[each] for each in numbers if found[each] is not JobStatus.LOST}
        return known, [each for each in numbers if each not in known]

    def _new(self, found: _Jobs) -> list[int]:
        """Return the numbers of the finished jobs whose outcomes are not applied."""
        return sorted(
            each
            for each, status in found.statuses.items()
            if status is not JobStatus.RUNNING and each not in self._done
        )

    def _recent(self, unknown: Iterable[int]) -> set[int]:
        """Return the unknown numbers that may still be listed."""
        now = self._clock()
        self._unknown = {each: self._unknown.get(each, now) for each in unknown}
        return {each for each, since in self._unknown.items() if now - since < _LISTED_AFTER}

    def _outcomes(self, numbers: Collection[int]) -> list[Outcome]:
        """Return the outcomes of the jobs, except those of pending operations."""
        done = self._tracker.backend.tag_jobs(numbers) if numbers else {}
        if not any(done.values()):
            return []
        pending = {each.job for _, each in self._tracker.store.pending()}
        return [
            outcome
            for number in sorted(done.keys() - pending)
            for outcome in self._of_job(number, done[number])
        ]

    def _of_job(self, number: int, parts: Sequence[TagJob]) -> Iterable[Outcome]:
        """Yield the outcomes of one job; only its last step counts for each tag."""
        later: dict[str, set[Tag]] = collections.defaultdict(set)
        for part in reversed(parts):
            keys = messages.known_keys(part.tags, self._tracker.prefixes) - later[part.instance]
            later[part.instance] |= keys
            if keys or part.kind is Kind.REMOVE:
                yield Outcome(number, part.instance, part.kind, keys, succeeded=True, complete=True)


def _finished_up_to(listed: Mapping[int, JobStatus]) -> int:
    """Return the greatest number up to which all of the listed jobs are finished."""
    running = (each for each, status in listed.items() if status is JobStatus.RUNNING)
    return min(running, default=max(listed) + 1) - 1
