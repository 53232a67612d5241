"""Outcomes that a broker delivers, checked against the backend before they are applied."""

import time

from oslo_log import log as logging

from steelyard import errors
from steelyard._once import Once
from steelyard.tags.jobs.loops import Clock
from steelyard.tags.jobs.tracking import JobTracker
from steelyard.tags.states.values import Outcome

LOG = logging.getLogger(__name__)

# Seconds for which an answer of the database or the backend is cached.
_REMEMBERED_FOR = 60.0
_MOST_CLUSTERS = 1000


class Reports:
    """A filter in front of the tracker: it applies only outcomes of jobs that the backend issued.

    A wrong notification could do lasting harm: after a job number that is too great, all later
    outcomes would be ignored as old.
    """

    def __init__(self, tracker: JobTracker, clock: Clock = time.monotonic) -> None:
        self._tracker = tracker
        self._clock = clock
        self._name: str | None = None
        self._foreign: dict[str, float] = {}
        """Names of other clusters, each with the time until which it is ignored without a check."""

        self._issued = 0
        self._issued_until = 0.0
        self._first_time = Once()

    def apply(self, outcome: Outcome) -> None:
        """Apply the outcome; ignore it if it is another cluster's.

        Raises InvalidMessage if the backend has not issued the job.
        """
        if outcome.cluster is not None and not self._is_ours(outcome.cluster):
            if self._first_time(outcome.cluster):
                LOG.warning(
                    "Ignoring notifications of cluster %(theirs)r: the database belongs to "
                    "%(ours)r",
                    {"theirs": outcome.cluster, "ours": self._name},
                )
            return
        self._check_issued(outcome.job)
        self._tracker.apply(outcome)

    def _is_ours(self, cluster: str) -> bool:
        """Return whether the cluster is the recorded backend, which may be renamed at any time.

        Raises WrongBackend if the writer's backend is not the recorded one. While the backend is
        unreachable, names that were found to be other clusters' still count as such.
        """
        if cluster == self._name:
            return True
        if self._clock() < self._foreign.get(cluster, 0.0):
            return False
        owner = self._tracker.store.backend()
        self._name = None if owner is None else owner.name
        if cluster == self._name:
            return True
        try:
            self._tracker.store.check_backend()
        except errors.BackendUnreachable:
            if cluster not in self._foreign:
                raise
        if len(self._foreign) >= _MOST_CLUSTERS:
            self._foreign.clear()
        self._foreign[cluster] = self._clock() + _REMEMBERED_FOR
        return False

    def _check_issued(self, job: int) -> None:
        if job <= self._issued and self._clock() < self._issued_until:
            return
        try:
            issued = self._tracker.backend.has_issued(job)
        except errors.SteelyardError:
            raise
        except Exception as error:  # a third-party backend can raise anything
            raise errors.BackendRefused(
                f"cannot ask the backend for job {job}: {type(error).__name__}: {error}"
            ) from error
        if not issued:
            self._tracker.store.check_backend()  # another backend would not know it either
            raise errors.InvalidMessage(
                f"invalid job number {job}: the backend has not issued it; correct the program "
                f"that publishes such notifications"
            )
        self._issued, self._issued_until = job, self._clock() + _REMEMBERED_FOR
