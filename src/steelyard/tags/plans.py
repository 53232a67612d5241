"""The plans of reconciliation, which makes the recorded tags agree with those of the backend.

The backend's tags replace the recorded ones, except tags with pending operations. Plans are values,
so they can be shown before they are applied.
"""

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping

from steelyard import errors
from steelyard.tags.backends.base import JobStatus
from steelyard.tags.codec import Tag, decode
from steelyard.tags.names import DEFAULT_PREFIXES, Owner, Prefixes
from steelyard.tags.states.outcomes import failing
from steelyard.tags.states.values import (
    Instance,
    Kind,
    Operation,
    State,
    StateChange,
    Status,
    TagMark,
)


class PlanAction(enum.StrEnum):
    """The action of a plan on a tag or an instance."""

    CREATED = "created"
    ACTIVATED = "activated"
    DELETED = "deleted"
    FORGOTTEN = "forgotten"
    """The instance itself is deleted: it was never created, or the backend lost it."""

    LEFT = "left alone"


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """The action on one tag, or on the instance if ``tag`` is empty, and why."""

    action: PlanAction
    why: str
    prefix: str = ""
    tag: str = ""


_BEING_CREATED = Step(PlanAction.LEFT, "it is still being created")
_MISSING = Step(PlanAction.LEFT, "the backend does not have the instance")


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """The backend's view of an instance, requested after the instance's state was read."""

    there: Collection[str] | None
    """The encoded tags; None if the backend does not have the instance."""

    statuses: Mapping[str, JobStatus] = dataclasses.field(default_factory=dict)
    """The statuses of jobs by the ids of operations; an operation without one is running."""

    horizon: int = 0
    """All jobs up to this number were finished before the tags were read; 0 if unknown."""

    def is_over(self, operation: Operation) -> bool:
        """Return whether the backend will do nothing more for the operation."""
        return self.statuses.get(operation.id, JobStatus.RUNNING) is not JobStatus.RUNNING

    def has_not_created(self, operation: Operation) -> bool:
        """Return whether the operation is a creation that failed.

        If the backend has an instance of the name, that is another one.
        """
        creation = operation.kind is Kind.CREATE
        return creation and self.statuses.get(operation.id) is JobStatus.FAILED


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The change of one instance, explained in steps; no steps if everything agrees."""

    instance: Instance
    change: StateChange = dataclasses.field(default_factory=StateChange)
    steps: tuple[Step, ...] = ()


def plan_reconciliation(
    instance: Instance,
    state: State,
    look: Look,
    prefixes: Prefixes = DEFAULT_PREFIXES,
    owners: Collection[Owner] = tuple(Owner),
) -> Plan:
    """Return the plan for the tags that these owners have on an instance."""
    mine = {prefixes.of(owner) for owner in owners}
    over = [each for each in state.operations if each.prefix in mine and look.is_over(each)]
    if look.there is None or any(map(look.has_not_created, over)):
        return _without_instance(instance, state, over)
    left = [each for each in state.operations if each not in over]
    known, foreign = _decoded(look.there, prefixes)
    there = {key for key in known if key[0] in mine}
    here = {key for key in state.tags if key[0] in mine}
    steps = {
        key: step
        for key in sorted(there | here)
        if (step := _step(key, there, state, left)) is not None
    }
    change = StateChange(
        dict.fromkeys(_keys(steps, PlanAction.CREATED, PlanAction.ACTIVATED), Status.ACTIVE),
        frozenset(_keys(steps, PlanAction.DELETED)),
        ended=frozenset(each.id for each in over),
    )
    touched = {key for each in over for key in each.tags}.union(change.put, change.removed)
    seen = _Seen(state, there, look.horizon, {key for each in left for key in each.tags})
    if look.horizon and mine.issuperset(prefixes):
        change = seen.up_to_the_horizon(change)
    else:
        change = seen.of(mine, touched, change)
    others = (Step(PlanAction.LEFT, "it belongs to no owner", tag=tag) for tag in foreign)
    return Plan(instance, change, (*steps.values(), *others))


def forgetting(plan: Plan) -> Plan:
    """Return a plan that forgets the instance if the backend does not have it, else the same."""
    if plan.steps != (_MISSING,):
        return plan
    change = dataclasses.replace(plan.change, forgotten=True)
    return Plan(plan.instance, change, (Step(PlanAction.FORGOTTEN, _MISSING.why),))


def _without_instance(instance: Instance, state: State, over: list[Operation]) -> Plan:
    """Return the plan for an instance that the backend does not have.

    Its tags are not deleted for this reason: the backend may be the wrong one.
    """
    change = failing(state, over)
    if change.forgotten:
        return Plan(instance, change, (Step(PlanAction.FORGOTTEN, "it was never created"),))
    being_created = any(each.kind is Kind.CREATE for each in state.operations)
    return Plan(instance, change, (_BEING_CREATED if being_created else _MISSING,))


def _decoded(tags: Iterable[str], prefixes: Prefixes) -> tuple[set[Tag], list[str]]:
    """Return the tags of all owners, decoded, and the encoded tags that belong to no owner."""
    keys, foreign = set(), []
    for tag in sorted(tags):
        try:
            keys.add(decode(tag, prefixes))
        except errors.InvalidTag:
            foreign.append(tag)
    return keys, foreign


def _step(key: Tag, known: Collection[Tag], here: State, left: Iterable[Operation]) -> Step | None:
    """Return the step for a tag, or None if the backend and the recorded status agree."""
    there, status = key in known, here.tags.get(key)
    if status is (Status.ACTIVE if there else None):
        return None
    pending = {each.kind.adds for each in left if key in each.tags}
    adding, deleting = True in pending, False in pending
    if status is Status.PENDADD and deleting and not adding:
        action, why = PlanAction.DELETED, "its deletion is pending, and its addition is not"
    elif deleting:
        action, why = PlanAction.LEFT, "its deletion is pending"
    elif there:
        action = PlanAction.CREATED if status is None else PlanAction.ACTIVATED
        why = "the backend has it"
    elif adding:
        action, why = PlanAction.LEFT, "its addition is pending"
    elif status is Status.PENDADD:
        action, why = PlanAction.DELETED, "the backend does not have it, and no addition is pending"
    else:
        action, why = PlanAction.DELETED, "the backend does not have it"
    return Step(action, why, *key)


def _keys(steps: Mapping[Tag, Step], *actions: PlanAction) -> list[Tag]:
    return [key for key, step in steps.items() if step.action in actions]


@dataclasses.dataclass(frozen=True, slots=True)
class _Seen:
    """The backend's view, to be recorded so that late outcomes of earlier jobs change nothing."""

    state: State
    there: Collection[Tag]
    horizon: int
    pending: Collection[Tag]
    """Tags with pending operations; their jobs may have finished before the tags were read."""

    def up_to_the_horizon(self, change: StateChange) -> StateChange:
        """Return the change with a new horizon, which makes most marks redundant."""
        # A backend that forgets finished jobs may report a smaller horizon than before.
        horizon = max(self.horizon, self.state.horizon)
        redundant = {key for key, mark in self.state.marks.items() if mark.job <= horizon}
        redundant -= {*self.pending}
        return dataclasses.replace(
            change,
            marked=self._marked(self._known_otherwise().union(self.pending) - redundant),
            unmarked=frozenset(redundant),
            horizon=None if horizon == self.state.horizon else horizon,
        )

    def of(
        self, prefixes: Collection[str], touched: Collection[Tag], change: StateChange
    ) -> StateChange:
        """Return the change with marks for tags with these prefixes; the horizon stays."""
        keys = self._known_otherwise().union(self.pending, touched if self.horizon else ())
        mine = {key for key in keys if key[0] in prefixes}
        return dataclasses.replace(change, marked=self._marked(mine))

    def _known_otherwise(self) -> set[Tag]:
        marks = self.state.marks
        return {key for key, mark in marks.items() if mark.there != (key in self.there)}

    def _marked(self, keys: Iterable[Tag]) -> dict[Tag, TagMark]:
        marks = self.state.marks
        found = {
            key: TagMark(
                max(self.horizon, self.state.horizon, marks[key].job if key in marks else 0),
                key in self.there,
            )
            for key in keys
        }
        return {key: mark for key, mark in found.items() if mark != marks.get(key)}
