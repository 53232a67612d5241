"""The tags that a request adds and deletes, and the rules that reject requests."""

import dataclasses
from collections.abc import Collection, Iterable

from steelyard import errors
from steelyard.tags.codec import Tag
from steelyard.tags.names import MOST, NO_CLASHES, Clashes, check_name, check_names
from steelyard.tags.states.values import Kind, Operation, State, StateChange, Status


class StillBeingCreated(errors.Conflict):
    """A request to change the tags of an instance whose creation is pending."""


@dataclasses.dataclass(frozen=True, slots=True)
class TagRules:
    """The rules for the tags of one owner.

    ``most`` is the greatest number of tags on an instance; None if there is no limit.
    """

    prefix: str
    clashes: Clashes = NO_CLASHES
    most: int | None = MOST


def check_created(state: State) -> None:
    """Raise StillBeingCreated while the instance's creation is pending."""
    if any(each.kind is Kind.CREATE for each in state.operations):
        raise StillBeingCreated("the instance is still being created; retry later")


def wanted(rules: TagRules, names: Iterable[str]) -> tuple[Tag, ...]:
    """Return the tags with these names, without duplicates.

    Raises BadRequest for a string in place of a list, for incompatible names, and for too many
    names. Raises InvalidTag for an invalid name, and for one that is too long when encoded.
    """
    each_once = tuple(dict.fromkeys(check_names(names)))
    clash = rules.clashes.within(each_once)
    if clash is not None:
        one, other = clash
        raise errors.BadRequest(f"incompatible tags {one!r} and {other!r}; choose one")
    _check_room(rules, len(each_once))
    tags = tuple(Tag(rules.prefix, name) for name in each_once)
    for tag in tags:
        _ = tag.encoded
    return tags


def adding(state: State, rules: TagRules, requested: Iterable[Tag]) -> tuple[Tag, ...]:
    """Return those of the requested tags that are missing.

    Raises Conflict for a tag that is still being deleted or incompatible with others, and
    BadRequest for too many tags.
    """
    there = state.of(rules.prefix)
    new = tuple(tag for tag in requested if tag not in state.tags)
    _check_sure(state, new)
    # Tags that are being deleted count, because they come back if that fails.
    counted = {*there, *_being_deleted(state, rules)}
    if new:
        _check_room(rules, len(counted.union(tag.name for tag in new)))
    _check_clashes(rules, new, counted)
    return new


def deleting(state: State, rules: TagRules, name: str) -> Tag:
    """Return the tag to delete; raise NotFound if it is missing, Conflict if it is PENDADD."""
    tag = Tag(rules.prefix, check_name(name))
    status = state.tags.get(tag)
    if status is None:
        raise errors.NotFound(f"no tag {name!r}")
    if status is Status.PENDADD:
        raise errors.Conflict(
            f"cannot delete tag {name!r}: it is still being added; retry when it is {Status.ACTIVE}"
        )
    return tag


def replacing(
    state: State, rules: TagRules, requested: Collection[Tag]
) -> tuple[tuple[Tag, ...], tuple[Tag, ...]]:
    """Return the tags to add and the tags to delete, to replace the ACTIVE tags.

    PENDADD tags stay, requested or not. Raises Conflict for a tag that is still being deleted or
    incompatible with a PENDADD one or with one that another call is about to delete, and BadRequest
    for too many tags.
    """
    there = state.of(rules.prefix)
    pending = {name for name, status in there.items() if status is Status.PENDADD}
    new = tuple(tag for tag in requested if tag not in state.tags)
    gone = tuple(tag for tag in clearing(state, rules) if tag not in requested)
    _check_sure(state, new)
    # Another call may be submitting deletions; if they are refused, these tags remain.
    staying = pending | _about_to_be_deleted(state, rules)
    _check_room(rules, len(staying.union(tag.name for tag in requested)))
    _check_clashes(rules, [tag for tag in requested if tag.name not in pending], staying)
    return new, gone


def clearing(state: State, rules: TagRules) -> tuple[Tag, ...]:
    """Return the tags to delete: all ACTIVE tags of the owner."""
    there = state.of(rules.prefix)
    return tuple(
        Tag(rules.prefix, name) for name, status in there.items() if status is Status.ACTIVE
    )


def beginning(*operations: Operation) -> StateChange:
    """Return the change to record before the operations are submitted."""
    put = {key: Status.PENDADD for each in operations if each.kind.adds for key in each.tags}
    gone = {key for each in operations if not each.kind.adds for key in each.tags}
    return StateChange(put, frozenset(gone), begun=operations)


def _being_deleted(state: State, rules: TagRules) -> set[str]:
    """Return the names of the owner's tags whose deletion is pending."""
    return {
        name
        for each in state.operations
        if each.kind is Kind.DELETE and each.prefix == rules.prefix
        for name in each.names
    }


def _about_to_be_deleted(state: State, rules: TagRules) -> set[str]:
    """Return the names of the owner's tags whose deletion may not be submitted yet."""
    unsure = [each for each in state.operations if each.job is None]
    return _being_deleted(dataclasses.replace(state, operations=tuple(unsure)), rules)


def _check_sure(state: State, new: Iterable[Tag]) -> None:
    """Raise Conflict for a tag whose deletion is pending and may not be submitted yet."""
    for each in state.operations:
        if each.kind is Kind.DELETE and each.job is None:
            for tag in new:
                if tag in each.tags:
                    raise errors.Conflict(
                        f"cannot add tag {tag.name!r}: it is still being deleted; retry later"
                    )


def _check_room(rules: TagRules, count: int) -> None:
    if rules.most is not None and count > rules.most:
        raise errors.BadRequest(
            f"too many tags: an instance has at most {rules.most}, and would have {count}"
        )


def _check_clashes(rules: TagRules, new: Iterable[Tag], there: Collection[str]) -> None:
    for tag in new:
        other = rules.clashes.between(tag.name, there)
        if other is not None:
            raise errors.Conflict(
                f"cannot add tag {tag.name!r}: the instance has the incompatible tag {other!r}; "
                f"delete that first"
            )
