"""What is known of one instance's tags, and how it changes: values in, values out.

Nothing here asks a database or a backend. A change says which rows come and go; whoever applies it
does so in one transaction.
"""

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping

from steelyard import errors
from steelyard.tags.names import MOST, NO_CLASHES, Clashes, check_name

Key = tuple[str, str]
"""The owner's prefix and the name."""


class StillBeingCreated(errors.Conflict):
    """Nobody knows yet whether there is an instance, and that it is the caller's."""


class Status(enum.StrEnum):
    """What is known of a tag at the backend."""

    PENDADD = "PENDADD"
    ACTIVE = "ACTIVE"


class Kind(enum.StrEnum):
    """What the backend is asked to do."""

    ADD = "add"
    DELETE = "delete"
    CREATE = "create"
    """An instance, with its tags."""

    @property
    def adds(self) -> bool:
        return self is not Kind.DELETE


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """A server, and what the backend calls it."""

    id: str
    name: str
    project: str
    user: str


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """Something that the backend is to do or is doing; ``job`` is its number there, once known."""

    id: str
    kind: Kind
    prefix: str
    names: tuple[str, ...]
    begun: float
    job: int | None = None

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset((self.prefix, name) for name in self.names)

    def touches(self, key: Key) -> bool:
        prefix, name = key
        return prefix == self.prefix and name in self.names


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """How a job at the backend has ended, for the tags of one instance."""

    job: int
    instance: str
    kind: Kind
    keys: frozenset[Key]
    succeeded: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """The last job that has been seen to succeed for a tag, and whether the tag is there since."""

    job: int
    there: bool


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """Everything that is known of the tags of an instance."""

    tags: Mapping[Key, Status] = dataclasses.field(default_factory=dict)
    operations: tuple[Operation, ...] = ()
    marks: Mapping[Key, Mark] = dataclasses.field(default_factory=dict)
    """What has been seen of each tag; it outlives the tag."""

    horizon: int = 0
    """All jobs up to this number are over, and what they have done is in here."""

    def of(self, prefix: str) -> dict[str, Status]:
        """The tags of one owner, by name."""
        mine = ((name, status) for (its, name), status in self.tags.items() if its == prefix)
        return dict(sorted(mine))

    def is_news(self, job: int, key: Key) -> bool:
        """Whether nothing later has been seen of the tag."""
        return job > self.horizon and (key not in self.marks or job > self.marks[key].job)


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What becomes different."""

    put: Mapping[Key, Status] = dataclasses.field(default_factory=dict)
    removed: frozenset[Key] = frozenset()
    begun: tuple[Operation, ...] = ()
    ended: frozenset[str] = frozenset()
    """The ids of operations that are over."""

    marked: Mapping[Key, Mark] = dataclasses.field(default_factory=dict)
    unmarked: frozenset[Key] = frozenset()
    horizon: int | None = None
    forgotten: bool = False
    """Whether the instance itself goes: it has never come to be."""

    def applied(self, state: State) -> State:
        """The state after this."""
        tags = {key: status for key, status in state.tags.items() if key not in self.removed}
        left = [each for each in state.operations if each.id not in self.ended]
        marks = {key: mark for key, mark in state.marks.items() if key not in self.unmarked}
        return State(
            {**tags, **self.put},
            (*left, *self.begun),
            {**marks, **self.marked},
            state.horizon if self.horizon is None else self.horizon,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """What holds for the tags of one owner."""

    prefix: str
    clashes: Clashes = NO_CLASHES
    most: int | None = MOST


def check_created(state: State) -> None:
    """Raises StillBeingCreated while it is not known whether the instance has come to be."""
    if any(each.kind is Kind.CREATE for each in state.operations):
        raise StillBeingCreated("the instance is still being created; change its tags after that")


def wanted(rules: Rules, names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once, if they go together and an instance can have so many."""
    each_once = tuple(dict.fromkeys(check_name(name) for name in names))
    clash = rules.clashes.within(each_once)
    if clash is not None:
        one, other = clash
        raise errors.BadRequest(f"the tags {one!r} and {other!r} do not go together: name one")
    _check_room(rules, len(each_once))
    return each_once


def adding(state: State, rules: Rules, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that are to be added: they are not there, and may be."""
    there = state.of(rules.prefix)
    asked = wanted(rules, names)
    new = tuple(name for name in asked if name not in there)
    _check_sure(state, rules, new)
    # What is being deleted comes back if that fails.
    counted = {*there, *_being_deleted(state, rules)}
    if new:
        _check_room(rules, len(counted.union(new)))
    _check_clashes(rules, new, counted)
    return new


def deleting(state: State, rules: Rules, name: str) -> None:
    """Raises an error if the tag is not there, or not yet."""
    status = state.tags.get((rules.prefix, check_name(name)))
    if status is None:
        raise errors.NotFound(f"there is no tag {name!r}")
    if status is Status.PENDADD:
        raise errors.Conflict(
            f"the tag {name!r} is still being added; delete it once it is {Status.ACTIVE}"
        )


def replacing(
    state: State, rules: Rules, names: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names to add and those to delete, so that these are left beside what is being added."""
    there = state.of(rules.prefix)
    asked = wanted(rules, names)
    pending = {name for name, status in there.items() if status is Status.PENDADD}
    new = tuple(name for name in asked if name not in there)
    gone = tuple(name for name in there if name not in asked and name not in pending)
    _check_sure(state, rules, new)
    # What another call is about to have deleted comes back if the backend refuses that call.
    _check_room(rules, len(pending.union(asked, _about_to_be_deleted(state, rules))))
    _check_clashes(rules, [name for name in asked if name not in pending], pending)
    return new, gone


def clearing(state: State, rules: Rules) -> tuple[str, ...]:
    """The names to delete: all that are not still being added."""
    there = state.of(rules.prefix)
    return tuple(name for name, status in there.items() if status is Status.ACTIVE)


def beginning(*operations: Operation) -> Change:
    """What is written before the backend is asked."""
    put = {key: Status.PENDADD for each in operations if each.kind.adds for key in each.keys}
    gone = {key for each in operations if not each.kind.adds for key in each.keys}
    return Change(put, frozenset(gone), begun=operations)


def failing(state: State, operations: Iterable[Operation]) -> Change:
    """What is written when the backend has not done them, and never will."""
    there = _ids(state.operations)  # the outcome of others has come by another way
    return _failed(state, [each for each in operations if each.id in there])


def settling(state: State, outcome: Outcome) -> Change:
    """What the end of a job changes, whenever and however often one is told of it."""
    ended = [each for each in state.operations if _is_end_of(outcome, each, state)]
    if not ended and _is_about_an_earlier_one(outcome, state):
        return Change()
    return _succeeded(state, ended, outcome) if outcome.succeeded else _failed(state, ended)


def _is_about_an_earlier_one(outcome: Outcome, state: State) -> bool:
    """Whether it is about another instance that has had the name, for this one is to come yet."""
    creations = [each.job for each in state.operations if each.kind is Kind.CREATE]
    return any(job is None or outcome.job < job for job in creations)


def _is_end_of(outcome: Outcome, operation: Operation, state: State) -> bool:
    """Whether this is how the operation has ended: by the job, or by what it does if that is new.

    The outcome may come before anybody has written down the number of the job. But nothing is
    undone for what may be an older job's failure, and nothing is taken to be created for what may
    be another one's creation: whether it is, shows with the number.
    """
    if operation.kind is not outcome.kind:
        return False
    if operation.job is not None:
        return operation.job == outcome.job
    return (
        outcome.succeeded
        and operation.kind is not Kind.CREATE
        and operation.keys == outcome.keys
        and all(state.is_news(outcome.job, key) for key in operation.keys)
    )


def _succeeded(state: State, ended: Collection[Operation], outcome: Outcome) -> Change:
    """The tags are as the last job that has been seen has left them, whichever that is."""
    asked = _keys(ended)
    news = {key for key in outcome.keys | asked if state.is_news(outcome.job, key)}
    # Of what was under way at the horizon there is a mark, unless it was so long ago that it has
    # been forgotten.
    news |= asked - state.marks.keys()
    marked = dict.fromkeys(news, Mark(outcome.job, outcome.kind.adds))
    marks = {**state.marks, **marked}
    left = _left(state, ended)
    put: dict[Key, Status] = {}
    removed = set()
    for key in news | asked:
        status = _standing(state, left, key, marks[key])
        if status is not None:
            put[key] = status
        elif key in state.tags:
            removed.add(key)
    # What was done before it was created, was done to another one.
    created = any(each.kind is Kind.CREATE for each in ended)
    horizon = max(outcome.job, state.horizon) if created else None
    return Change(put, frozenset(removed), ended=_ids(ended), marked=marked, horizon=horizon)


def _standing(state: State, left: Iterable[Operation], key: Key, mark: Mark) -> Status | None:
    """What a tag is after the job of the mark; what comes after that may yet do the opposite."""
    contested = any(
        each.kind.adds != mark.there and _may_follow(each, mark) and each.touches(key)
        for each in left
    )
    if not contested:
        return Status.ACTIVE if mark.there else None
    return Status.PENDADD if key in state.tags else None


def _may_follow(operation: Operation, mark: Mark) -> bool:
    return operation.job is None or operation.job > mark.job


def _failed(state: State, ended: Collection[Operation]) -> Change:
    """What was to be added goes, what was to be deleted comes back; unless others still do it.

    A deletion also fails because somebody else has deleted the tag: then it does not come back.
    """
    left = _left(state, ended)
    put, removed = {}, set()
    for operation in ended:
        adds = operation.kind.adds
        others = {key for each in left if each.kind.adds == adds for key in each.keys}
        for key in operation.keys - others:
            if adds and state.tags.get(key) is Status.PENDADD:
                removed.add(key)
            elif not adds and (key not in state.marks or state.marks[key].there):
                put[key] = Status.ACTIVE  # even one that is being added again: it is there
    # Who kept what was never created would have the tags of whoever creates it another time.
    forgotten = any(each.kind is Kind.CREATE for each in ended)
    return Change(put, frozenset(removed), ended=_ids(ended), forgotten=forgotten)


def _left(state: State, ended: Collection[Operation]) -> list[Operation]:
    return [each for each in state.operations if each not in ended]


def _keys(operations: Iterable[Operation]) -> frozenset[Key]:
    return frozenset().union(*(each.keys for each in operations))


def _ids(operations: Iterable[Operation]) -> frozenset[str]:
    return frozenset(each.id for each in operations)


def _being_deleted(state: State, rules: Rules) -> set[str]:
    """The names that are gone unless the backend fails."""
    return {
        name
        for each in state.operations
        if each.kind is Kind.DELETE and each.prefix == rules.prefix
        for name in each.names
    }


def _about_to_be_deleted(state: State, rules: Rules) -> set[str]:
    """The names of which nobody knows whether the backend has been asked to delete them."""
    unsure = [each for each in state.operations if each.job is None]
    return _being_deleted(dataclasses.replace(state, operations=tuple(unsure)), rules)


def _check_sure(state: State, rules: Rules, new: Iterable[str]) -> None:
    """Raises Conflict for a tag of which nobody knows whether the backend still deletes it."""
    for each in state.operations:
        if each.kind is Kind.DELETE and each.job is None:
            for name in new:
                if each.touches((rules.prefix, name)):
                    raise errors.Conflict(
                        f"the tag {name!r} is still being deleted; add it again after that"
                    )


def _check_room(rules: Rules, count: int) -> None:
    if rules.most is not None and count > rules.most:
        raise errors.BadRequest(
            f"an instance has at most {rules.most} tags, and would have {count}"
        )


def _check_clashes(rules: Rules, new: Iterable[str], there: Collection[str]) -> None:
    for name in new:
        other = rules.clashes.between(name, there)
        if other is not None:
            raise errors.Conflict(
                f"the tag {name!r} does not go together with {other!r}, which is there; delete "
                f"that first"
            )
