"""The changes that outcomes of jobs and failed operations make to a state."""

import dataclasses
from collections.abc import Collection, Iterable

from steelyard.tags.codec import Tag
from steelyard.tags.states.values import (
    Kind,
    Operation,
    Outcome,
    State,
    StateChange,
    Status,
    TagMark,
)

NO_REASON = "the backend gives no reason"
"""The reason of a failure for which the backend gives none."""


def failing(state: State, operations: Iterable[Operation]) -> StateChange:
    """Return the change to record if the backend will never apply the operations."""
    pending = _ids(state.operations)  # others have finished meanwhile
    return _failed(state, [each for each in operations if each.id in pending])


def applying(state: State, outcome: Outcome) -> StateChange:
    """Return the change that the outcome of a job makes.

    Outcomes may come late, repeatedly and in any order.
    """
    ended = [each for each in state.operations if _is_end_of(outcome, each, state)]
    if not ended and _is_about_earlier_instance(outcome, state):
        return StateChange()
    if outcome.kind is Kind.REMOVE:
        return _removed(state, outcome)
    if outcome.succeeded:
        return _succeeded(state, ended, outcome)
    return _failed(state, ended, outcome.reason)


def _is_about_earlier_instance(outcome: Outcome, state: State) -> bool:
    """Return whether the outcome is about an earlier instance of the same name.

    True if the creation of this instance is pending, and its job is later or not recorded yet.
    """
    creations = [each.job for each in state.operations if each.kind is Kind.CREATE]
    return any(job is None or outcome.job < job for job in creations)


def _is_end_of(outcome: Outcome, operation: Operation, state: State) -> bool:
    """Return whether the outcome is the result of the operation.

    The outcome may come before the operation's job is recorded. Then it counts if it is a success,
    is news, and has exactly the operation's tags. A failure may be that of an earlier job, and a
    creation that of another instance, so these count only once the job is recorded.
    """
    if operation.kind is not outcome.kind:
        return False
    if operation.job is not None:
        return operation.job == outcome.job
    return (
        outcome.succeeded
        and operation.kind is not Kind.CREATE
        and frozenset(operation.tags) == outcome.tags
        and all(state.is_news(outcome.job, key) for key in operation.tags)
    )


def _succeeded(state: State, ended: Collection[Operation], outcome: Outcome) -> StateChange:
    """Return the change after a success: each tag is as its last known job has left it."""
    requested = _keys(ended)
    news = {key for key in outcome.tags | requested if state.is_news(outcome.job, key)}
    news |= {key for key in outcome.tags if state.is_completed_by(outcome, key)}
    # A tag with a pending operation gets a mark when the horizon rises. If it has none, the mark
    # was pruned, and nothing later is known about the tag.
    news |= requested - state.marks.keys()
    marked = dict.fromkeys(news, TagMark(outcome.job, outcome.kind.adds))
    marks = {**state.marks, **marked}
    left = _left(state, ended)
    put: dict[Tag, Status] = {}
    removed = set()
    for key in news | requested:
        status = _standing(state, left, key, marks[key])
        if status is not None:
            put[key] = status
        elif key in state.tags:
            removed.add(key)
    # Jobs before the creation were about another instance of the name.
    created = any(each.kind is Kind.CREATE for each in ended)
    horizon = max(outcome.job, state.horizon) if created else None
    return StateChange(put, frozenset(removed), ended=_ids(ended), marked=marked, horizon=horizon)


def _removed(state: State, outcome: Outcome) -> StateChange:
    """Return the change after a removal of the instance, which removes all its tags.

    Jobs before the removal were about the removed instance, so the horizon rises to the removal.
    """
    if not outcome.succeeded or outcome.job <= state.horizon:
        return StateChange()
    everything = outcome.tags.union(state.tags, _keys(state.operations))
    change = _succeeded(state, (), dataclasses.replace(outcome, tags=everything))
    return dataclasses.replace(change, horizon=outcome.job)


def _standing(state: State, left: Iterable[Operation], key: Tag, mark: TagMark) -> Status | None:
    """Return the status of a tag after the mark's job, or None if the tag is missing.

    A pending operation may still do the opposite. Until it finishes, a listed tag is PENDADD, and a
    missing one stays missing.
    """
    contested = any(
        each.kind.adds != mark.there and _may_follow(each, mark) and key in each.tags
        for each in left
    )
    if not contested:
        return Status.ACTIVE if mark.there else None
    return Status.PENDADD if key in state.tags else None


def _may_follow(operation: Operation, mark: TagMark) -> bool:
    return operation.job is None or operation.job > mark.job


def _failed(state: State, ended: Collection[Operation], reason: str | None = None) -> StateChange:
    """Return the change after failed operations: tags to add go, tags to delete come back.

    ``reason`` is recorded for tags that go; None records nothing, because the caller gets an error.
    Tags that another pending operation adds or deletes, too, stay as they are. A tag that another
    job is known to have deleted does not come back: the deletion may have failed because of that.
    """
    left = _left(state, ended)
    put, removed = {}, set()
    for operation in ended:
        adds = operation.kind.adds
        others = {key for each in left if each.kind.adds == adds for key in each.tags}
        for key in set(operation.tags) - others:
            if adds and state.tags.get(key) is Status.PENDADD:
                removed.add(key)
            elif not adds and (key not in state.marks or state.marks[key].there):
                put[key] = Status.ACTIVE  # also if it is being added again: the backend has it
    # A project whose instance was kept would see the tags of a later instance of the same name.
    forgotten = any(each.kind is Kind.CREATE for each in ended)
    failures = {} if reason is None else dict.fromkeys(removed, reason or NO_REASON)
    return StateChange(
        put, frozenset(removed), ended=_ids(ended), failures=failures, forgotten=forgotten
    )


def _left(state: State, ended: Collection[Operation]) -> list[Operation]:
    return [each for each in state.operations if each not in ended]


def _keys(operations: Iterable[Operation]) -> frozenset[Tag]:
    return frozenset(tag for each in operations for tag in each.tags)


def _ids(operations: Iterable[Operation]) -> frozenset[str]:
    return frozenset(each.id for each in operations)
