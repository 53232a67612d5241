"""What is known here is brought in line with what the backend has."""

import dataclasses
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from steelyard.tags.backends.base import JobStatus, TagBackend
from steelyard.tags.names import Owner, Prefixes
from steelyard.tags.plans import Action, Look, Plan, Step, plan_reconciliation
from steelyard.tags.states import Change, Operation
from steelyard.tags.store import Snapshot, TagStore

_AT_ONCE = 500


@dataclasses.dataclass(frozen=True, slots=True)
class Reconciliation:
    """Looks at instances, a few hundred at a time, and changes what does not agree.

    What is done with each few hundred is done as a whole. An instance that somebody changes
    between the look and the change is left alone.
    """

    store: TagStore
    backend: TagBackend
    prefixes: Prefixes
    give_up_after: float
    owners: Collection[Owner] = tuple(Owner)

    def planned(self) -> Iterator[list[Plan]]:
        """The plans for all instances; nothing is changed."""
        return map(self._plans, self._pages())

    def carried_out(self) -> Iterator[list[Plan]]:
        """The same, each list once it has been carried out."""
        return map(self._carry_out, self._pages())

    def carried_out_for(self, servers: Collection[str]) -> list[Plan]:
        """The same for some instances, of which those that are not known are left out."""
        ids = sorted(servers)
        parts = [ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE)]
        return [each for some in parts for each in self._carry_out(self.store.snapshots_of(some))]

    def _pages(self) -> Iterator[list[Snapshot]]:
        last = ""
        while snapshots := self.store.snapshots(_AT_ONCE, after=last):
            yield snapshots
            last = snapshots[-1].instance.id

    def _carry_out(self, snapshots: Sequence[Snapshot]) -> list[Plan]:
        plans = self._plans(snapshots)
        changes = [
            (snapshot, each.change)
            for snapshot, each in zip(snapshots, plans, strict=True)
            if each.change != Change()
        ]
        missed = self.store.change_unchanged(changes) if changes else ()
        return [_missed(each) if each.instance.id in missed else each for each in plans]

    def _plans(self, snapshots: Sequence[Snapshot]) -> list[Plan]:
        """In this order: first what is known here, then which jobs are over, then what is there."""
        self.store.check_backend()
        under_way = [each for snapshot in snapshots for each in snapshot.state.operations]
        horizon = self.backend.horizon()
        statuses = progress(self.backend, under_way, self.give_up_after)
        there = self.backend.tags([snapshot.instance.name for snapshot in snapshots])
        return [
            plan_reconciliation(
                each.instance,
                each.state,
                Look(there.get(each.instance.name), statuses, horizon),
                self.prefixes,
                self.owners,
            )
            for each in snapshots
        ]


def progress(
    backend: TagBackend, operations: Iterable[Operation], give_up_after: float
) -> Mapping[str, JobStatus]:
    """How far each operation is, by its id.

    One whose job nobody has written down may still be about to be asked for; after so many seconds
    it is not.
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


def _missed(planned: Plan) -> Plan:
    return Plan(planned.instance, steps=(Step(Action.LEFT, "it was changed meanwhile"),))
