"""The rules of states and operations, one example for each."""

import dataclasses
from typing import Any

import pytest

from steelyard.errors import BadRequest, Conflict, InvalidTag, NotFound
from steelyard.tags import states
from steelyard.tags.names import Clashes
from steelyard.tags.states import (
    Change,
    Key,
    Kind,
    Mark,
    Operation,
    Outcome,
    Rules,
    State,
    Status,
    StillBeingCreated,
)

USER, SYSTEM = "cyclades:user:", "cyclades:system:"
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD
RULES = Rules(USER, Clashes.parse(["high, low"]))


def key(name: str, prefix: str = USER) -> Key:
    return prefix, name


def tags(prefix: str = USER, **statuses: Status) -> dict[Key, Status]:
    return {key(name, prefix): status for name, status in statuses.items()}


def operation(kind: Kind, *names: str, job: int | None = None, prefix: str = USER) -> Operation:
    return Operation(f"{kind} {names} {job}", kind, prefix, names, 0.0, job)


def begun(state: State, *operations: Operation) -> State:
    return states.beginning(*operations).applied(state)


def told(job: int, kind: Kind, *names: str, succeeded: bool = True, prefix: str = USER) -> Outcome:
    return Outcome(job, "vm", kind, frozenset(key(name, prefix) for name in names), succeeded)


def settled(state: State, *outcomes: Outcome) -> State:
    for outcome in outcomes:
        state = states.settling(state, outcome).applied(state)
    return state


def failed(job: int, kind: Kind, *names: str) -> Outcome:
    return told(job, kind, *names, succeeded=False)


ADD, DELETE, CREATE = Kind.ADD, Kind.DELETE, Kind.CREATE


# What may be asked


def test_only_new_tags_are_added() -> None:
    state = State(tags(a=ACTIVE, b=PENDADD))
    assert states.adding(state, RULES, ["a", "c", "b", "d", "c"]) == ("c", "d")


def test_each_owner_has_tags_of_its_own() -> None:
    state = State({**tags(a=ACTIVE, low=ACTIVE), **tags(SYSTEM, b=ACTIVE, high=ACTIVE)})
    assert state.of(USER) == {"a": ACTIVE, "low": ACTIVE}
    assert states.adding(state, RULES, ["b"]) == ("b",)
    assert states.replacing(state, RULES, []) == ((), ("a", "low"))
    assert states.clearing(state, RULES) == ("a", "low")
    with pytest.raises(NotFound):
        states.deleting(state, RULES, "b")


def test_a_user_has_at_most_50() -> None:
    names = [f"t{number}" for number in range(51)]
    with pytest.raises(BadRequest, match="at most 50 tags, and would have 51"):
        states.adding(State(), RULES, names)
    full = begun(State(), operation(ADD, *names[:50]))
    with pytest.raises(BadRequest, match="at most 50 tags, and would have 51"):
        states.adding(full, RULES, [names[50]])
    assert states.adding(full, RULES, [names[0]]) == ()
    assert len(states.adding(full, Rules(SYSTEM, most=None), names)) == 51


def test_what_is_there_already_needs_no_room() -> None:
    """There can be more than the limit: added at the backend, or come back."""
    full = State(tags(**{f"t{number}": ACTIVE for number in range(52)}))
    assert states.adding(full, RULES, ["t7"]) == ()
    with pytest.raises(BadRequest, match="would have 53"):
        states.adding(full, RULES, ["new"])
    new, gone = states.replacing(full, RULES, ["t7", "new"])
    assert new == ("new",)
    assert len(gone) == 51


def test_what_is_being_added_counts_when_all_are_replaced() -> None:
    pending = begun(State(tags(old=ACTIVE)), operation(ADD, "a", "b"))
    names = [f"t{number}" for number in range(50)]
    with pytest.raises(BadRequest, match="would have 52"):
        states.replacing(pending, RULES, names)
    assert states.replacing(pending, RULES, names[:48]) == (tuple(names[:48]), ("old",))
    assert states.replacing(pending, RULES, ["a", "b", *names[:48]])[1] == ("old",)


def test_only_active_tags_are_deleted() -> None:
    state = State(tags(a=ACTIVE, b=PENDADD))
    states.deleting(state, RULES, "a")
    with pytest.raises(Conflict, match="the tag 'b' is still being added"):
        states.deleting(state, RULES, "b")
    with pytest.raises(NotFound, match="there is no tag 'c'"):
        states.deleting(state, RULES, "c")
    with pytest.raises(InvalidTag):
        states.deleting(state, RULES, "a/b")


def test_replacing_and_clearing_leave_what_is_being_added() -> None:
    state = State(tags(a=ACTIVE, b=PENDADD, c=ACTIVE))
    assert states.replacing(state, RULES, ["c", "d"]) == (("d",), ("a",))
    assert states.clearing(state, RULES) == ("a", "c")


def test_of_clashing_tags_the_one_that_is_there_stays() -> None:
    for status in Status:
        with pytest.raises(
            Conflict, match="'high' does not go together with 'low', which is there"
        ):
            states.adding(State(tags(low=status)), RULES, ["a", "high"])


def test_clashing_tags_in_one_call_are_refused() -> None:
    for there in ({}, tags(low=ACTIVE), tags(high=ACTIVE)):
        for decide in (states.adding, states.replacing):
            with pytest.raises(BadRequest, match="'high' and 'low' do not go together") as caught:
                decide(State(there), RULES, ["low", "high"])
            assert caught.value.status == 400


def test_a_tag_can_be_replaced_by_one_that_it_clashes_with() -> None:
    assert states.replacing(State(tags(low=ACTIVE)), RULES, ["high"]) == (("high",), ("low",))
    with pytest.raises(Conflict, match="'high' does not go together with 'low'"):
        states.replacing(State(tags(low=PENDADD)), RULES, ["high"])


@pytest.mark.parametrize("decide", [states.adding, states.replacing])
def test_one_malformed_name_refuses_all(decide: Any) -> None:
    with pytest.raises(InvalidTag, match="'a,b' is no tag"):
        decide(State(), RULES, ["c", "a,b"])


def test_while_it_is_created_nothing_changes() -> None:
    state = begun(State(), operation(CREATE, "a", job=1))
    with pytest.raises(StillBeingCreated, match="still being created"):
        states.check_created(state)
    states.check_created(settled(state, told(1, CREATE, "a")))


def test_what_may_still_be_deleted_is_not_added_again() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a"))
    for decide in (states.adding, states.replacing):
        with pytest.raises(Conflict, match="the tag 'a' is still being deleted"):
            decide(state, RULES, ["b", "a"])
    numbered = begun(State(tags(a=ACTIVE)), operation(DELETE, "a", job=1))
    assert states.adding(numbered, RULES, ["b", "a"]) == ("b", "a")


def test_what_is_being_deleted_may_come_back() -> None:
    """It has its room until then, and what clashes with it waits."""
    names = [f"t{number}" for number in range(50)]
    full = State({**tags(low=ACTIVE), **tags(**dict.fromkeys(names[1:], ACTIVE))})
    state = begun(full, operation(DELETE, "low", job=1))
    with pytest.raises(BadRequest, match="would have 51"):
        states.adding(state, RULES, ["new"])
    state = begun(State(tags(low=ACTIVE)), operation(DELETE, "low", job=1))
    with pytest.raises(Conflict, match="'high' does not go together with 'low'"):
        states.adding(state, RULES, ["high"])
    assert states.adding(state, RULES, ["low"]) == ("low",)


# What is written


def test_rows_are_written_before_the_backend_is_asked() -> None:
    add, delete = operation(ADD, "b"), operation(DELETE, "a")
    change = states.beginning(add, delete)
    assert change == Change(tags(b=PENDADD), frozenset({key("a")}), begun=(add, delete))
    assert change.applied(State(tags(a=ACTIVE))) == State(tags(b=PENDADD), (add, delete))


def test_a_refusal_undoes_it() -> None:
    before = State(tags(a=ACTIVE))
    for each in (operation(ADD, "b"), operation(DELETE, "a")):
        state = begun(before, each)
        assert states.failing(state, [each]).applied(state) == before


def test_a_refusal_undoes_nothing_that_has_ended_by_another_way() -> None:
    each = operation(ADD, "a")
    state = settled(begun(State(), each), told(1, ADD, "a"))
    assert states.failing(state, [each]) == Change()


def test_what_was_refused_to_be_created_is_forgotten() -> None:
    each = operation(CREATE, "a")
    assert states.failing(begun(State(), each), [each]).forgotten


# How jobs end


def test_an_addition_that_succeeds_makes_tags_active() -> None:
    state = begun(State(), operation(ADD, "a", "b", job=1))
    assert settled(state, told(1, ADD, "a", "b")) == State(
        tags(a=ACTIVE, b=ACTIVE), (), {key("a"): Mark(1, True), key("b"): Mark(1, True)}
    )


def test_an_addition_that_fails_takes_them_away() -> None:
    state = begun(State(tags(c=ACTIVE)), operation(ADD, "a", "b", job=1))
    assert settled(state, failed(1, ADD, "a", "b")) == State(tags(c=ACTIVE))


def test_a_deletion_that_succeeds_leaves_a_mark() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a", job=1))
    assert settled(state, told(1, DELETE, "a")) == State(marks={key("a"): Mark(1, False)})


def test_a_deletion_that_fails_brings_them_back() -> None:
    state = begun(State(tags(a=ACTIVE, b=ACTIVE)), operation(DELETE, "a", "b", job=1))
    assert settled(state, failed(1, DELETE, "a", "b")) == State(tags(a=ACTIVE, b=ACTIVE))


def test_an_instance_that_is_created_has_its_tags() -> None:
    state = begun(State(), operation(CREATE, "a", job=1))
    assert settled(state, told(1, CREATE, "a")).tags == tags(a=ACTIVE)


def test_an_instance_that_fails_to_be_created_is_forgotten() -> None:
    state = begun(State(), operation(CREATE, "a", job=1))
    assert states.settling(state, failed(1, CREATE, "a")).forgotten
    assert not states.settling(state, failed(2, ADD, "a")).forgotten


@pytest.mark.parametrize("names", [(), ("a",)])
def test_no_older_failure_forgets_what_is_being_created(names: tuple[str, ...]) -> None:
    """It may be that of an instance that was called the same: the number tells."""
    state = begun(State(), operation(CREATE, *names))
    for kind in (ADD, CREATE):
        assert states.settling(state, failed(1, kind, *names)) == Change()
    assert settled(state, told(2, CREATE, *names)) == state  # nor does an older success end it
    numbered = begun(State(), operation(CREATE, *names, job=2))
    assert settled(numbered, told(2, CREATE, *names)).operations == ()


@pytest.mark.parametrize(
    ("kind", "before", "after"), [(ADD, {}, tags(a=ACTIVE)), (DELETE, tags(a=ACTIVE), {})]
)
def test_an_outcome_may_come_before_its_number(
    kind: Kind, before: dict[Key, Status], after: dict[Key, Status]
) -> None:
    state = begun(State(before), operation(kind, "a"))
    ended = settled(state, told(1, kind, "a"))
    assert (ended.tags, ended.operations) == (after, ())
    # Of a failure that shows only once the number is known: it may be that of an older job.
    assert settled(state, failed(1, kind, "a")) == state


def test_an_outcome_of_other_tags_is_not_that_of_an_operation_without_number() -> None:
    state = begun(State(), operation(ADD, "a", "b"))
    assert len(settled(state, told(1, ADD, "a")).operations) == 1
    assert len(settled(state, told(1, DELETE, "a", "b")).operations) == 1


def test_an_older_outcome_is_not_that_of_an_operation_without_number() -> None:
    state = settled(State(), told(7, DELETE, "a"))
    state = begun(state, operation(ADD, "a"))
    assert settled(state, failed(6, ADD, "a")) == state


def test_a_late_addition_does_not_bring_back_what_has_been_deleted() -> None:
    state = settled(begun(State(), operation(ADD, "a", job=1)), told(1, ADD, "a"))
    state = settled(begun(state, operation(DELETE, "a", job=2)), told(2, DELETE, "a"))
    assert settled(state, told(1, ADD, "a"), told(1, ADD, "a")) == state


def test_outcomes_may_come_in_any_order() -> None:
    state = State(tags(a=ACTIVE), (operation(DELETE, "a", job=1), operation(ADD, "a", job=2)))
    in_order = settled(state, told(1, DELETE, "a"), told(2, ADD, "a"))
    assert in_order.tags == tags(a=ACTIVE)
    assert settled(state, told(2, ADD, "a"), told(1, DELETE, "a")) == in_order


def test_what_is_being_deleted_does_not_come_back_by_an_addition_before_that() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a", job=2))
    state = settled(state, told(1, ADD, "a"))
    assert state.tags == {}
    assert settled(state, told(2, DELETE, "a")).tags == {}
    assert settled(state, failed(2, DELETE, "a")).tags == tags(a=ACTIVE)


def test_what_is_being_added_waits_while_a_deletion_has_no_number() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a"))
    state = settled(begun(state, operation(ADD, "a", job=2)), told(2, ADD, "a"))
    assert state.tags == tags(a=PENDADD)
    numbered = dataclasses.replace(state, operations=(operation(DELETE, "a", job=1),))
    assert settled(numbered, told(1, DELETE, "a")).tags == tags(a=ACTIVE)
    numbered = dataclasses.replace(state, operations=(operation(DELETE, "a", job=3),))
    assert settled(numbered, told(3, DELETE, "a")).tags == {}


def test_a_deletion_makes_an_active_tag_that_is_to_be_added_wait() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a", job=2))
    state = begun(state, operation(ADD, "a", job=3))
    state = settled(state, failed(2, DELETE, "a"))
    assert state.tags == tags(a=ACTIVE)
    state = settled(state, told(1, DELETE, "a"))
    assert state.tags == tags(a=PENDADD)
    assert settled(state, told(3, ADD, "a")).tags == tags(a=ACTIVE)
    assert settled(state, failed(3, ADD, "a")).tags == {}


def test_a_tag_that_somebody_else_has_deleted_does_not_come_back() -> None:
    state = begun(State(tags(a=ACTIVE, b=ACTIVE)), operation(DELETE, "a", "b", job=2))
    for outcomes in (
        (told(1, DELETE, "a"), failed(2, DELETE, "a", "b")),
        (failed(2, DELETE, "a", "b"), told(1, DELETE, "a")),
    ):
        assert settled(state, *outcomes).tags == tags(b=ACTIVE)


def test_a_tag_is_there_if_neither_its_deletion_nor_its_addition_again_has_succeeded() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a", job=1))
    state = begun(state, operation(ADD, "a", job=2))
    for outcomes in (
        (failed(1, DELETE, "a"), failed(2, ADD, "a")),
        (failed(2, ADD, "a"), failed(1, DELETE, "a")),
    ):
        assert settled(state, *outcomes) == State(tags(a=ACTIVE))


def test_of_two_operations_for_the_same_the_last_decides() -> None:
    adds = State(tags(a=PENDADD), (operation(ADD, "a", job=1), operation(ADD, "a", job=2)))
    assert settled(adds, failed(1, ADD, "a")).tags == tags(a=PENDADD)
    assert settled(adds, failed(1, ADD, "a"), failed(2, ADD, "a")).tags == {}
    deletes = State({}, (operation(DELETE, "a", job=1), operation(DELETE, "a", job=2)))
    assert settled(deletes, failed(1, DELETE, "a")).tags == {}
    assert settled(deletes, failed(1, DELETE, "a"), failed(2, DELETE, "a")).tags == tags(a=ACTIVE)


def test_an_operation_that_gets_its_number_late_is_as_what_has_been_seen_since() -> None:
    """By then the outcome of a later job of somebody else's has come."""
    for kind, after in ((DELETE, {}), (ADD, tags(a=ACTIVE))):
        mine = ADD if kind is DELETE else DELETE
        state = begun(State(tags(a=ACTIVE) if mine is DELETE else {}), operation(mine, "a"))
        state = settled(state, told(2, kind, "a"))
        state = dataclasses.replace(state, operations=(operation(mine, "a", job=1),))
        assert settled(state, told(1, mine, "a")).tags == after
        assert settled(state, failed(1, mine, "a")).tags == after


def test_what_somebody_has_added_at_the_backend_is_active() -> None:
    outcome = dataclasses.replace(told(1, ADD, "a"), keys=frozenset({key("a"), key("b", SYSTEM)}))
    assert settled(State(), outcome).tags == {**tags(a=ACTIVE), **tags(SYSTEM, b=ACTIVE)}


def test_what_somebody_has_deleted_at_the_backend_is_gone() -> None:
    assert settled(State(tags(a=ACTIVE, b=ACTIVE)), told(1, DELETE, "a")).tags == tags(b=ACTIVE)


def test_what_nobody_here_asked_for_and_has_failed_changes_nothing() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(ADD, "b", job=1))
    for outcome in (failed(2, DELETE, "a"), failed(2, ADD, "b"), failed(2, DELETE, "c")):
        assert settled(state, outcome) == state


def test_tags_of_other_owners_are_others() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(ADD, "b", job=1))
    after = settled(state, told(2, DELETE, "a", prefix=SYSTEM), told(3, ADD, "b", prefix=SYSTEM))
    assert after.of(USER) == state.of(USER)
    assert after.of(SYSTEM) == {"b": ACTIVE}
    assert after.operations == state.operations


def test_what_was_done_to_another_of_its_name_is_nothing_to_an_instance() -> None:
    """Neither while it is being created, nor after that, however late it is told."""
    creation = Operation("c", Kind.CREATE, USER, ("mine",), 0.0, 5)
    earlier = Outcome(4, "vm", Kind.ADD, frozenset({(USER, "theirs")}), succeeded=True)
    begun = State({(USER, "mine"): Status.PENDADD}, (creation,))
    assert states.settling(begun, earlier) == Change()
    unnumbered = State(begun.tags, (dataclasses.replace(creation, job=None),))
    assert states.settling(unnumbered, earlier) == Change()
    done = Outcome(5, "vm", Kind.CREATE, creation.keys, succeeded=True)
    created = states.settling(begun, done).applied(begun)
    assert created.tags == {(USER, "mine"): Status.ACTIVE}
    assert states.settling(created, earlier).applied(created) == created


def test_the_creation_of_another_of_its_name_is_not_its_own() -> None:
    """With no tags, one creation looks like another."""
    creation = Operation("c", Kind.CREATE, USER, (), 0.0)
    state = State(operations=(creation,), horizon=4)
    other = Outcome(4, "vm", Kind.CREATE, frozenset(), succeeded=True)
    assert states.settling(state, other) == Change()
    later = dataclasses.replace(other, job=5)
    assert states.settling(state, later) == Change()
    numbered = State(operations=(dataclasses.replace(creation, job=5),), horizon=4)
    assert states.settling(numbered, later).ended == {"c"}
    failure = Outcome(5, "vm", Kind.ADD, frozenset(), succeeded=False)
    assert not states.settling(numbered, failure).forgotten


@pytest.mark.parametrize("job", [None, 7])
def test_what_comes_back_when_a_replacement_is_refused_has_room(job: int | None) -> None:
    names = tuple(f"old {number}" for number in range(30))
    deleting = Operation("o", Kind.DELETE, "u:", names, 0.0, job)
    new = [f"new {number}" for number in range(30)]
    if job is None:
        with pytest.raises(BadRequest, match="at most 50 tags, and would have 60"):
            states.replacing(State(operations=(deleting,)), Rules("u:"), new)
    else:
        assert states.replacing(State(operations=(deleting,)), Rules("u:"), new) == (tuple(new), ())
