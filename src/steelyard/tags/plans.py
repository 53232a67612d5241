"""What reconciliation does, and why: the backend is right, except about what is still under way.

Values in, values out: a plan can be shown before it is carried out.
"""

import dataclasses
import enum
from collections.abc import Collection, Iterable

from steelyard import errors
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

    over: Collection[str] = frozenset()
    """The ids of the operations that the backend will do nothing more for."""

    horizon: int = 0
    """All jobs up to this number were over before the tags were read; 0 if nobody knows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of one instance. Where everything agrees there are no steps."""

    instance: Instance
    change: Change = dataclasses.field(default_factory=Change)
    steps: tuple[Step, ...] = ()


def plan(
    instance: Instance,
    state: State,
    look: Look,
    prefixes: Prefixes = DEFAULT_PREFIXES,
    owners: Collection[Owner] = tuple(Owner),
) -> Plan:
    """The plan for the tags that these owners have on an instance."""
    mine = {prefixes.of(owner) for owner in owners}
    over = [each for each in state.operations if each.id in look.over and each.prefix in mine]
    if look.there is None:
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
    adopted = {
        key for key, step in steps.items() if step.action in (Action.CREATED, Action.ACTIVATED)
    }
    horizon = look.horizon if mine.issuperset(prefixes) else 0  # it is about all owners
    change = Change(
        dict.fromkeys(adopted, Status.ACTIVE),
        frozenset(key for key, step in steps.items() if step.action is Action.DELETED),
        ended=frozenset(each.id for each in over),
        marked={
            key: mark
            for key, mark in _marked(state, left, there, horizon).items()
            if key[0] in mine
        },
        horizon=None if horizon in (0, state.horizon) else horizon,
    )
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
    if status is Status.PENDADD and not adding and (deleting or not there):
        action, why = Action.DELETED, "the backend has not added it, and will not"
    elif deleting:
        action, why = Action.LEFT, "its deletion is under way"
    elif there:
        action = Action.CREATED if status is None else Action.ACTIVATED
        why = "the backend has it"
    elif adding:
        action, why = Action.LEFT, "its addition is under way"
    else:
        action, why = Action.DELETED, "the backend does not have it"
    return Step(action, why, *key)


def _marked(
    state: State, left: Iterable[Operation], there: Collection[Key], horizon: int
) -> dict[Key, Mark]:
    """What has been seen of tags, where something is under way or something else was known."""
    pending = frozenset[Key]().union(*(each.keys for each in left))
    otherwise = {key for key, mark in state.marks.items() if mark.there != (key in there)}
    found = {}
    for key in pending | otherwise:
        before = state.marks.get(key)
        found[key] = Mark(max(horizon, before.job if before else 0), key in there)
    return {key: mark for key, mark in found.items() if mark != state.marks.get(key)}
