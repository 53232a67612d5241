"""What reconciliation does, and why: the backend is right, except about what is still under way.

Values in, values out: a plan can be shown before it is carried out.
"""

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping

from steelyard import errors
from steelyard.tags.backends.base import JobStatus
from steelyard.tags.codec import decode
from steelyard.tags.names import DEFAULT_PREFIXES, Owner, Prefixes
from steelyard.tags.states import (
    Change,
    Instance,
    Key,
    Kind,
    Mark,
    Operation,
    State,
    Status,
    failing,
)


class Action(enum.StrEnum):
    """What becomes of a tag, or of an instance."""

    CREATED = "created"
    ACTIVATED = "activated"
    DELETED = "deleted"
    FORGOTTEN = "forgotten"
    """The instance itself: it has never come to be."""

    LEFT = "left alone"


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one tag, or of the instance where there is no tag."""

    action: Action
    why: str
    prefix: str = ""
    tag: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """What the backend shows of an instance, after the instance's state has been read."""

    there: Collection[str] | None
    """The encoded tags; None if there is no such instance."""

    statuses: Mapping[str, JobStatus] = dataclasses.field(default_factory=dict)
    """How far the operations are, by their ids; of those left out it is not known."""

    horizon: int = 0
    """All jobs up to this number were over before the tags were read; 0 if nobody knows."""

    def is_over(self, operation: Operation) -> bool:
        """Whether the backend will do nothing more for it."""
        return self.statuses.get(operation.id, JobStatus.RUNNING) is not JobStatus.RUNNING

    def has_not_created(self, operation: Operation) -> bool:
        """Whether an instance of that name, if there is one, is another one."""
        creation = operation.kind is Kind.CREATE
        return creation and self.statuses.get(operation.id) is JobStatus.FAILED


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of one instance. Where everything agrees there are no steps."""

    instance: Instance
    change: Change = dataclasses.field(default_factory=Change)
    steps: tuple[Step, ...] = ()


def plan_reconciliation(
    instance: Instance,
    state: State,
    look: Look,
    prefixes: Prefixes = DEFAULT_PREFIXES,
    owners: Collection[Owner] = tuple(Owner),
) -> Plan:
    """The plan for the tags that these owners have on an instance."""
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
    change = Change(
        dict.fromkeys(_keys(steps, Action.CREATED, Action.ACTIVATED), Status.ACTIVE),
        frozenset(_keys(steps, Action.DELETED)),
        ended=frozenset(each.id for each in over),
    )
    touched = {key for each in over for key in each.keys}.union(change.put, change.removed)
    seen = _Seen(state, there, look.horizon, {key for each in left for key in each.keys})
    if look.horizon and mine.issuperset(prefixes):
        change = seen.up_to_the_horizon(change)
    else:
        change = seen.of(mine, touched, change)
    strangers = (Step(Action.LEFT, "it is nobody's here", tag=tag) for tag in foreign)
    return Plan(instance, change, (*steps.values(), *strangers))


def _without_instance(instance: Instance, state: State, over: list[Operation]) -> Plan:
    """Tags are not deleted for this: perhaps it is the wrong backend that has been asked."""
    change = failing(state, over)
    if change.forgotten:
        return Plan(instance, change, (Step(Action.FORGOTTEN, "it has never come to be"),))
    being_created = any(each.kind is Kind.CREATE for each in state.operations)
    why = "it is still being created" if being_created else "the backend has no such instance"
    return Plan(instance, change, (Step(Action.LEFT, why),))


def _decoded(tags: Iterable[str], prefixes: Prefixes) -> tuple[set[Key], list[str]]:
    """The tags of all owners, and those that nobody here could have set."""
    keys, foreign = set(), []
    for tag in sorted(tags):
        try:
            keys.add(decode(tag, prefixes))
        except errors.InvalidTag:
            foreign.append(tag)
    return keys, foreign


def _step(key: Key, known: Collection[Key], here: State, left: Iterable[Operation]) -> Step | None:
    """What becomes of a tag that the backend is known to have, or that is here; None if of both."""
    there, status = key in known, here.tags.get(key)
    if status is (Status.ACTIVE if there else None):
        return None
    under_way = {each.kind.adds for each in left if each.touches(key)}
    adding, deleting = True in under_way, False in under_way
    if status is Status.PENDADD and deleting and not adding:
        action, why = Action.DELETED, "its deletion is under way, and nothing adds it after that"
    elif deleting:
        action, why = Action.LEFT, "its deletion is under way"
    elif there:
        action = Action.CREATED if status is None else Action.ACTIVATED
        why = "the backend has it"
    elif adding:
        action, why = Action.LEFT, "its addition is under way"
    elif status is Status.PENDADD:
        action, why = Action.DELETED, "the backend has not added it, and will not"
    else:
        action, why = Action.DELETED, "the backend does not have it"
    return Step(action, why, *key)


def _keys(steps: Mapping[Key, Step], *actions: Action) -> list[Key]:
    return [key for key, step in steps.items() if step.action in actions]


@dataclasses.dataclass(frozen=True, slots=True)
class _Seen:
    """What a look has shown, kept for outcomes that are older than it and come after it."""

    state: State
    there: Collection[Key]
    horizon: int
    pending: Collection[Key]
    """What something is under way for, which may have been over by then."""

    def up_to_the_horizon(self, change: Change) -> Change:
        """Of all tags: one number says most of it, instead of marks."""
        # A backend may forget jobs, and then know of fewer that are over than it did before.
        horizon = max(self.horizon, self.state.horizon)
        redundant = {key for key, mark in self.state.marks.items() if mark.job <= horizon}
        redundant -= {*self.pending}
        return dataclasses.replace(
            change,
            marked=self._marked(self._known_otherwise().union(self.pending) - redundant),
            unmarked=frozenset(redundant),
            horizon=None if horizon == self.state.horizon else horizon,
        )

    def of(self, prefixes: Collection[str], touched: Collection[Key], change: Change) -> Change:
        """Of tags with these prefixes, and of those that are touched now."""
        keys = self._known_otherwise().union(self.pending, touched if self.horizon else ())
        mine = {key for key in keys if key[0] in prefixes}
        return dataclasses.replace(change, marked=self._marked(mine))

    def _known_otherwise(self) -> set[Key]:
        marks = self.state.marks
        return {key for key, mark in marks.items() if mark.there != (key in self.there)}

    def _marked(self, keys: Iterable[Key]) -> dict[Key, Mark]:
        marks = self.state.marks
        found = {
            key: Mark(
                max(self.horizon, self.state.horizon, marks[key].job if key in marks else 0),
                key in self.there,
            )
            for key in keys
        }
        return {key: mark for key, mark in found.items() if mark != marks.get(key)}
