"""Requests: which are valid, and which tags they add and delete."""

from collections.abc import Iterable
from typing import Any

import pytest

from steelyard.errors import BadRequest, Conflict, InvalidTag, NotFound
from steelyard.tags.codec import Tag
from steelyard.tags.names import Clashes
from steelyard.tags.states import requests
from steelyard.tags.states.requests import StillBeingCreated, TagRules
from steelyard.tags.states.values import Kind, Operation, State, StateChange, Status
from support.tags.tag_states import (
    ACTIVE,
    ADD,
    CREATE,
    DELETE,
    PENDADD,
    SYSTEM,
    USER,
    applied,
    begun,
    key,
    operation,
    outcome_of,
    tags,
)

RULES = TagRules(USER, Clashes.parse(["high, low"]))


def adding(state: State, rules: TagRules, names: Iterable[str]) -> tuple[str, ...]:
    return named(requests.adding(state, rules, requests.wanted(rules, names)))


def replacing(
    state: State, rules: TagRules, names: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    new, gone = requests.replacing(state, rules, requests.wanted(rules, names))
    return named(new), named(gone)


def named(tags: Iterable[Tag]) -> tuple[str, ...]:
    return tuple(tag.name for tag in tags)


def test_adding_returns_only_missing_tags() -> None:
    state = State(tags(a=ACTIVE, b=PENDADD))
    assert adding(state, RULES, ["a", "c", "b", "d", "c"]) == ("c", "d")


def test_tags_of_owners_are_kept_apart() -> None:
    state = State({**tags(a=ACTIVE, low=ACTIVE), **tags(SYSTEM, b=ACTIVE, high=ACTIVE)})
    assert state.of(USER) == {"a": ACTIVE, "low": ACTIVE}
    assert adding(state, RULES, ["b"]) == ("b",)
    assert replacing(state, RULES, []) == ((), ("a", "low"))
    assert named(requests.clearing(state, RULES)) == ("a", "low")
    with pytest.raises(NotFound):
        requests.deleting(state, RULES, "b")


def test_adding_more_than_50_tags_is_rejected_for_users_only() -> None:
    names = [f"t{number}" for number in range(51)]
    with pytest.raises(BadRequest, match="at most 50, and would have 51"):
        adding(State(), RULES, names)
    full = begun(State(), operation(ADD, *names[:50]))
    with pytest.raises(BadRequest, match="at most 50, and would have 51"):
        adding(full, RULES, [names[50]])
    assert adding(full, RULES, [names[0]]) == ()
    assert len(adding(full, TagRules(SYSTEM, most=None), names)) == 51


def test_adding_present_tags_is_accepted_above_the_limit() -> None:
    # Tags that were added at the backend, or whose deletion failed, can exceed the limit.
    full = State(tags(**{f"t{number}": ACTIVE for number in range(52)}))
    assert adding(full, RULES, ["t7"]) == ()
    with pytest.raises(BadRequest, match="would have 53"):
        adding(full, RULES, ["new"])
    new, gone = replacing(full, RULES, ["t7", "new"])
    assert new == ("new",)
    assert len(gone) == 51


def test_replacing_counts_pending_tags_for_the_limit() -> None:
    pending = begun(State(tags(old=ACTIVE)), operation(ADD, "a", "b"))
    names = [f"t{number}" for number in range(50)]
    with pytest.raises(BadRequest, match="would have 52"):
        replacing(pending, RULES, names)
    assert replacing(pending, RULES, names[:48]) == (tuple(names[:48]), ("old",))
    assert replacing(pending, RULES, ["a", "b", *names[:48]])[1] == ("old",)


def test_replacing_rejects_tags_incompatible_with_a_tag_about_to_be_deleted() -> None:
    state = State(tags(low=ACTIVE))
    assert replacing(state, RULES, ["high"]) == (("high",), ("low",))
    with pytest.raises(Conflict, match="incompatible tag 'low'"):
        replacing(begun(state, operation(DELETE, "low")), RULES, ["high"])
    submitted = begun(state, operation(DELETE, "low", job=1))
    assert replacing(submitted, RULES, ["high"]) == (("high",), ())


def test_deleting_rejects_pending_and_missing_tags() -> None:
    state = State(tags(a=ACTIVE, b=PENDADD))
    requests.deleting(state, RULES, "a")
    with pytest.raises(Conflict, match="cannot delete tag 'b': it is still being added"):
        requests.deleting(state, RULES, "b")
    with pytest.raises(NotFound, match="no tag 'c'"):
        requests.deleting(state, RULES, "c")
    with pytest.raises(InvalidTag):
        requests.deleting(state, RULES, "a/b")


def test_replacing_and_clearing_keep_pending_tags() -> None:
    state = State(tags(a=ACTIVE, b=PENDADD, c=ACTIVE))
    assert replacing(state, RULES, ["c", "d"]) == (("d",), ("a",))
    assert named(requests.clearing(state, RULES)) == ("a", "c")


def test_adding_tag_incompatible_with_present_tag_is_rejected() -> None:
    for status in Status:
        with pytest.raises(
            Conflict, match="cannot add tag 'high': the instance has the incompatible tag 'low'"
        ):
            adding(State(tags(low=status)), RULES, ["a", "high"])


def test_incompatible_tags_in_one_request_are_rejected() -> None:
    for there in ({}, tags(low=ACTIVE), tags(high=ACTIVE)):
        for decide in (adding, replacing):
            with pytest.raises(BadRequest, match="incompatible tags 'high' and 'low'") as caught:
                decide(State(there), RULES, ["low", "high"])
            assert caught.value.status == 400


def test_replacing_active_tag_with_incompatible_tag_is_accepted() -> None:
    assert replacing(State(tags(low=ACTIVE)), RULES, ["high"]) == (("high",), ("low",))
    with pytest.raises(Conflict, match="'high': the instance has the incompatible tag 'low'"):
        replacing(State(tags(low=PENDADD)), RULES, ["high"])


@pytest.mark.parametrize("decide", [adding, replacing])
def test_one_malformed_name_rejects_the_whole_request(decide: Any) -> None:
    with pytest.raises(InvalidTag, match="invalid tag 'a,b'"):
        decide(State(), RULES, ["c", "a,b"])


def test_changes_are_rejected_until_the_instance_is_created() -> None:
    state = begun(State(), operation(CREATE, "a", job=1))
    with pytest.raises(StillBeingCreated, match="still being created"):
        requests.check_created(state)
    requests.check_created(applied(state, outcome_of(1, CREATE, "a")))


def test_adding_tag_with_unsubmitted_deletion_is_rejected() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a"))
    for decide in (adding, replacing):
        with pytest.raises(Conflict, match="cannot add tag 'a': it is still being deleted"):
            decide(state, RULES, ["b", "a"])
    numbered = begun(State(tags(a=ACTIVE)), operation(DELETE, "a", job=1))
    assert adding(numbered, RULES, ["b", "a"]) == ("b", "a")


def test_tags_being_deleted_count_for_limit_and_incompatibility() -> None:
    names = [f"t{number}" for number in range(50)]
    full = State({**tags(low=ACTIVE), **tags(**dict.fromkeys(names[1:], ACTIVE))})
    state = begun(full, operation(DELETE, "low", job=1))
    with pytest.raises(BadRequest, match="would have 51"):
        adding(state, RULES, ["new"])
    state = begun(State(tags(low=ACTIVE)), operation(DELETE, "low", job=1))
    with pytest.raises(Conflict, match="'high': the instance has the incompatible tag 'low'"):
        adding(state, RULES, ["high"])
    assert adding(state, RULES, ["low"]) == ("low",)


def test_beginning_records_tags_and_operations() -> None:
    add, delete = operation(ADD, "b"), operation(DELETE, "a")
    change = requests.beginning(add, delete)
    assert change == StateChange(tags(b=PENDADD), frozenset({key("a")}), begun=(add, delete))
    assert change.applied(State(tags(a=ACTIVE))) == State(tags(b=PENDADD), (add, delete))


@pytest.mark.parametrize("job", [None, 7])
def test_replacing_counts_tags_with_unsubmitted_deletion(job: int | None) -> None:
    old = tuple(Tag("u:", f"old {number}") for number in range(30))
    deleting = Operation("o", Kind.DELETE, "u:", old, 0.0, job)
    new = [f"new {number}" for number in range(30)]
    if job is None:
        with pytest.raises(BadRequest, match="at most 50, and would have 60"):
            replacing(State(operations=(deleting,)), TagRules("u:"), new)
    else:
        assert replacing(State(operations=(deleting,)), TagRules("u:"), new) == (
            tuple(new),
            (),
        )
