"""Reconciliation, which makes the recorded tags agree with those of the backend."""

import dataclasses
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from steelyard import errors
from steelyard.tags import audit
from steelyard.tags.backends.base import JobStatus, TagBackend
from steelyard.tags.database.rows import Snapshot
from steelyard.tags.database.store import TagStore
from steelyard.tags.names import Owner, Prefixes
from steelyard.tags.plans import Look, Plan, PlanAction, Step, forgetting, plan_reconciliation
from steelyard.tags.states.outcomes import NO_REASON
from steelyard.tags.states.values import Operation, StateChange

_AT_ONCE = 500
# Retries for instances that changed during their reconciliation.
_MISSED_AGAIN = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Reconciliation:
    """The comparison of instances with the backend, and the changes that make them agree.

    A few hundred instances are compared and then changed at once. An instance that is changed by
    another transaction in between is left alone. With ``forget_missing``, instances that the
    backend no longer has are forgotten; otherwise they are left alone.
    """

    store: TagStore
    backend: TagBackend
    prefixes: Prefixes
    give_up_after: float
    owners: Collection[Owner] = tuple(Owner)
    forget_missing: bool = False

    def planned(self) -> Iterator[list[Plan]]:
        """Return the plans for all instances, in lists, and change nothing."""
        return (self._plans(snapshots)[0] for snapshots in self._pages())

    def applied(self) -> Iterator[list[Plan]]:
        """Yield the plans for all instances, each list once it has been applied.

        With ``forget_missing``, raises Conflict if the backend has none of the instances.
        """
        if self.forget_missing:
            self._check_backend_has_some()
        return map(self._apply, self._pages())

    def applied_to(self, servers: Collection[str]) -> list[Plan]:
        """Apply and return the plans for the instances with these ids; unknown ids are left out."""
        ids = sorted(servers)
        parts = [ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE)]
        return [each for some in parts for each in self._apply(self.store.snapshots_of(some))]

    def apply(self) -> None:
        """Apply the plans for all instances.

        Retries instances that change meanwhile, a few times. Raises ConcurrentUpdate if some
        change each time.
        """
        missed = [each for plans in self.applied() for each in _missed(plans)]
        for _ in range(_MISSED_AGAIN):
            missed = _missed(self.applied_to(missed))
        if missed:
            raise errors.ConcurrentUpdate(
                f"cannot reconcile all instances: {len(missed)} changed during each of "
                f"{_MISSED_AGAIN + 1} attempts, such as {missed[0]!r}; reconcile again"
            )

    def _pages(self) -> Iterator[list[Snapshot]]:
        last = ""
        while snapshots := self.store.snapshots(_AT_ONCE, after=last):
            yield snapshots
            last = snapshots[-1].instance.id

    def _check_backend_has_some(self) -> None:
        """Raise Conflict if the backend has no registered instance, as after it lost its data."""
        for snapshots in self._pages():
            if self.backend.tags([each.instance.name for each in snapshots]):
                return
        count = self.store.count()
        if count:
            raise errors.Conflict(
                f"cannot forget missing instances: the backend has none of the {count} registered "
                f"instances; check the backend, or forget each with 'steelyard tags forget'"
            )

    def _apply(self, snapshots: Sequence[Snapshot]) -> list[Plan]:
        plans, statuses = self._plans(snapshots)
        changes = [
            (snapshot, each.change)
            for snapshot, each in zip(snapshots, plans, strict=True)
            if each.change != StateChange()
        ]
        failed = _failed(self.backend, changes, statuses)
        changes = [(was, _with_failures(was, change, failed)) for was, change in changes]
        missed = self.store.change_unchanged(changes) if changes else ()
        for was, change in changes:
            if was.instance.id not in missed:
                audit.write(audit.of_change(was.instance, was.state, change, failed))
        return [
            Plan(each.instance, steps=(_MISSED,)) if each.instance.id in missed else each
            for each in plans
        ]

    def _plans(self, snapshots: Sequence[Snapshot]) -> tuple[list[Plan], Mapping[str, JobStatus]]:
        """Return the plans, and the status of each operation's job by the operation's id.

        The order of reading matters: first the recorded states, then the jobs, then the tags. So
        the tags show the effect of every job that was finished.
        """
        self.store.check_backend()
        pending = [each for snapshot in snapshots for each in snapshot.state.operations]
        horizon = self.backend.horizon()
        statuses = progress(self.backend, pending, self.give_up_after)
        there = self.backend.tags([snapshot.instance.name for snapshot in snapshots])
        plans = [
            plan_reconciliation(
                each.instance,
                each.state,
                Look(there.get(each.instance.name), statuses, horizon),
                self.prefixes,
                self.owners,
            )
            for each in snapshots
        ]
        return [*map(forgetting, plans)] if self.forget_missing else plans, statuses


def failure_reasons(backend: TagBackend, jobs: Collection[int]) -> Mapping[int, str]:
    """Return the reason of each of these failed jobs."""
    known = backend.reasons(jobs) if jobs else {}
    return {job: known.get(job) or NO_REASON for job in jobs}


def _failed(
    backend: TagBackend,
    changes: Iterable[tuple[Snapshot, StateChange]],
    statuses: Mapping[str, JobStatus],
) -> Mapping[str, str]:
    """Return the reasons of the failed operations among those that the changes end, by their ids.

    A lost job counts as failed if the backend's tags show that it was not applied.
    """
    ended = [
        (each, change.forgotten or audit.contradicted(each, change.applied(was.state)))
        for was, change in changes
        for each in was.state.operations
        if each.id in change.ended
    ]
    failed = {each.id: each.job for each, _ in ended if statuses[each.id] is JobStatus.FAILED}
    reasons = failure_reasons(backend, {job for job in failed.values() if job is not None})
    found = {each: reasons[job] for each, job in failed.items() if job is not None}
    for each, undone in ended:
        if undone and statuses[each.id] is JobStatus.LOST:
            lost = f"knows no job {each.job}" if each.job is not None else "accepted no job in time"
            found[each.id] = f"the backend {lost}"
    return found


def _with_failures(was: Snapshot, change: StateChange, failed: Mapping[str, str]) -> StateChange:
    """Return the change with the reasons of failed additions whose tags it removes."""
    failures = {
        tag: failed[each.id]
        for each in was.state.operations
        if each.id in failed and each.kind.adds
        for tag in each.tags
        if tag in change.removed
    }
    return dataclasses.replace(change, failures=failures)


def progress(
    backend: TagBackend, operations: Iterable[Operation], give_up_after: float
) -> Mapping[str, JobStatus]:
    """Return the status of each operation's job, by the operation's id.

    An operation without a recorded job may not be submitted yet, so it counts as running at first.
    After ``give_up_after`` seconds it counts as lost.
    """
    asked = list(operations)
    numbers = {each.job for each in asked if each.job is not None}
    known = backend.jobs(numbers) if numbers else {}
    recently = time.time() - give_up_after
    fresh = {each.id: JobStatus.RUNNING for each in asked if each.begun > recently}
    return {
        each.id: fresh.get(each.id, JobStatus.LOST)
        if each.job is None
        else known.get(each.job, JobStatus.LOST)
        for each in asked
    }


_MISSED = Step(PlanAction.LEFT, "it changed during the reconciliation")


def _missed(plans: Iterable[Plan]) -> list[str]:
    """Return the ids of the instances that changed before their plans were applied."""
    return [each.instance.id for each in plans if _MISSED in each.steps]
