"""The jobs of pending operations: their outcomes, and the changes that these make."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping

from oslo_log import log as logging

from steelyard import errors
from steelyard.tags import audit
from steelyard.tags.backends.base import JobStatus, TagBackend
from steelyard.tags.database.store import TagStore
from steelyard.tags.names import DEFAULT_PREFIXES, Owner, Prefixes
from steelyard.tags.reconciliation import Reconciliation, failure_reasons, progress
from steelyard.tags.states import outcomes
from steelyard.tags.states.values import Instance, Kind, Operation, Outcome, State, StateChange

LOG = logging.getLogger(__name__)

GIVE_UP_AFTER = 3600.0
"""Seconds after which an operation without a recorded job counts as lost."""

_FINISHED = (JobStatus.SUCCEEDED, JobStatus.FAILED)


@dataclasses.dataclass(frozen=True, slots=True)
class FinishedJobs:
    """The jobs of pending operations that are finished or lost."""

    outcomes: tuple[tuple[Instance, Outcome], ...]
    lost: frozenset[str]
    """The ids of the instances with lost jobs."""


class JobTracker:
    """A tracker of jobs, from their submission to their effect on the tags.

    ``poll`` does everything: it requests the ``finished`` jobs, applies each outcome, and
    reconciles the instances whose jobs are lost. The watch, which may publish outcomes instead of
    applying them, calls these steps itself.
    """

    def __init__(
        self,
        store: TagStore,
        backend: TagBackend,
        prefixes: Prefixes = DEFAULT_PREFIXES,
        give_up_after: float = GIVE_UP_AFTER,
    ) -> None:
        self.store = store
        self.backend = backend
        self.prefixes = prefixes
        self._give_up_after = give_up_after

    def poll(self) -> int:
        """Poll the backend for the jobs of all pending operations, and apply their outcomes.

        Returns the number of operations that have finished. An outcome that cannot be applied does
        not stop the others: each such failure is logged, and the first one is raised at the end.
        """
        return self._poll(self.store.pending())

    def poll_instance(self, instance: Instance) -> None:
        """Poll for pending operations that may block a new one: creations and deletions.

        Additions are not polled: callers learn that these are pending. If the poll fails, this is
        logged and not raised.
        """
        pending = self.store.state(instance.id, being=instance).operations
        try:
            self._poll((instance, each) for each in pending if each.kind is not Kind.ADD)
        except errors.SteelyardError as error:
            LOG.warning("Cannot poll the backend for jobs: %s", error)
        except Exception:  # a third-party backend can raise anything
            LOG.exception("Cannot poll the backend for jobs")

    def finished(self) -> FinishedJobs:
        """Return the finished and lost jobs of pending operations, and change nothing."""
        return self._finished(self.store.pending())

    def apply(self, outcome: Outcome, being: Instance | None = None) -> None:
        """Apply the outcome of a job to the tags; late and repeated outcomes do no harm.

        It is applied to ``being`` if given, otherwise to the instance that has the name now. An
        outcome without such an instance is ignored and logged.
        """

        def decide(state: State) -> tuple[StateChange, tuple[State, StateChange]]:
            change = outcomes.applying(state, outcome)
            return change, (state, change)

        if being is None:
            found = self.store.change_named(outcome.instance, decide)
        else:
            found = self._change(being, decide)
        if found is None:
            LOG.info("Ignored job %s: no instance %r", outcome.job, outcome.instance)
            return
        instance, (state, change) = found
        if outcome.kind is Kind.REMOVE and change != StateChange():
            LOG.warning(
                "Job %(job)s removed instance %(name)r at the backend, but it is still registered "
                "for project %(project)r: run 'steelyard tags forget %(id)s' before another "
                "project gets an instance of that name",
                {
                    "name": instance.name,
                    "job": outcome.job,
                    "project": instance.project,
                    "id": instance.id,
                },
            )
        ended = () if outcome.succeeded else change.ended
        failed = dict.fromkeys(ended, outcome.reason or "the backend gives no reason")
        audit.write(audit.of_change(instance, state, change, failed, outcome.job))

    def reconcile_lost(self, servers: Collection[str]) -> int:
        """Reconcile these instances, whose jobs are lost.

        Returns the number of operations that have finished by this.
        """
        plans = self.reconciliation().applied_to(servers)
        return sum(len(plan.change.ended) for plan in plans)

    def reconciliation(self, owners: Collection[Owner] = tuple(Owner)) -> Reconciliation:
        """Return the reconciliation of these owners' tags with the backend."""
        return Reconciliation(self.store, self.backend, self.prefixes, self._give_up_after, owners)

    def _poll(self, pending: Iterable[tuple[Instance, Operation]]) -> int:
        finished = self._finished(pending)
        failures = []
        for instance, outcome in finished.outcomes:
            try:
                self.apply(outcome, being=instance)
            except errors.SteelyardError as error:
                LOG.warning("Cannot apply the outcome of job %s: %s", outcome.job, error)
                failures.append(error)
        lost = self.reconcile_lost(finished.lost)
        if failures:
            raise failures[0]
        return len(finished.outcomes) + lost

    def _finished(self, pending: Iterable[tuple[Instance, Operation]]) -> FinishedJobs:
        asked = list(pending)
        found = progress(self.backend, [each for _, each in asked], self._give_up_after)
        if any(status is not JobStatus.RUNNING for status in found.values()):
            # A wrong backend does not know these jobs, or has other jobs with their numbers.
            self.store.check_backend()
        failed = {each.job for _, each in asked if found[each.id] is JobStatus.FAILED}
        reasons = failure_reasons(self.backend, {job for job in failed if job is not None})
        return FinishedJobs(
            tuple(
                (instance, _outcome(instance, each, found[each.id], reasons))
                for instance, each in asked
                if found[each.id] in _FINISHED
            ),
            frozenset(i.id for i, each in asked if found[each.id] is JobStatus.LOST),
        )

    def _change(
        self,
        instance: Instance,
        decide: Callable[[State], tuple[StateChange, tuple[State, StateChange]]],
    ) -> tuple[Instance, tuple[State, StateChange]] | None:
        try:
            return instance, self.store.change(instance.id, decide, being=instance)
        except errors.NotFound:  # the instance has been forgotten meanwhile
            return None


def _outcome(
    instance: Instance, operation: Operation, status: JobStatus, reasons: Mapping[int, str]
) -> Outcome:
    assert operation.job is not None  # noqa: S101  (finished jobs have numbers)
    return Outcome(
        operation.job,
        instance.name,
        operation.kind,
        frozenset(operation.tags),
        succeeded=status is JobStatus.SUCCEEDED,
        reason=reasons.get(operation.job, ""),
    )
