"""Outcomes of jobs and failed operations: the changes that they make."""

import dataclasses

import pytest

from steelyard.tags.codec import Tag
from steelyard.tags.states import outcomes
from steelyard.tags.states.values import (
    Kind,
    Operation,
    Outcome,
    State,
    StateChange,
    Status,
    TagMark,
)
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
    failed,
    key,
    operation,
    outcome_of,
    tags,
)


def test_failing_restores_the_state_before_the_operation() -> None:
    before = State(tags(a=ACTIVE))
    for each in (operation(ADD, "b"), operation(DELETE, "a")):
        state = begun(before, each)
        assert outcomes.failing(state, [each]).applied(state) == before


def test_failing_ignores_finished_operations() -> None:
    each = operation(ADD, "a")
    state = applied(begun(State(), each), outcome_of(1, ADD, "a"))
    assert outcomes.failing(state, [each]) == StateChange()


def test_failing_creation_forgets_the_instance() -> None:
    each = operation(CREATE, "a")
    assert outcomes.failing(begun(State(), each), [each]).forgotten


def test_successful_addition_activates_tags() -> None:
    state = begun(State(), operation(ADD, "a", "b", job=1))
    assert applied(state, outcome_of(1, ADD, "a", "b")) == State(
        tags(a=ACTIVE, b=ACTIVE), (), {key("a"): TagMark(1, True), key("b"): TagMark(1, True)}
    )


def test_failed_addition_removes_tags() -> None:
    state = begun(State(tags(c=ACTIVE)), operation(ADD, "a", "b", job=1))
    assert applied(state, failed(1, ADD, "a", "b")) == State(tags(c=ACTIVE))


def test_successful_deletion_leaves_a_mark() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a", job=1))
    assert applied(state, outcome_of(1, DELETE, "a")) == State(marks={key("a"): TagMark(1, False)})


def test_failed_deletion_restores_tags() -> None:
    state = begun(State(tags(a=ACTIVE, b=ACTIVE)), operation(DELETE, "a", "b", job=1))
    assert applied(state, failed(1, DELETE, "a", "b")) == State(tags(a=ACTIVE, b=ACTIVE))


def test_successful_creation_activates_tags() -> None:
    state = begun(State(), operation(CREATE, "a", job=1))
    assert applied(state, outcome_of(1, CREATE, "a")).tags == tags(a=ACTIVE)


def test_failed_creation_forgets_the_instance() -> None:
    state = begun(State(), operation(CREATE, "a", job=1))
    assert outcomes.applying(state, failed(1, CREATE, "a")).forgotten
    assert not outcomes.applying(state, failed(2, ADD, "a")).forgotten


@pytest.mark.parametrize("names", [(), ("a",)])
def test_outcomes_of_earlier_instance_do_not_finish_a_creation(names: tuple[str, ...]) -> None:
    state = begun(State(), operation(CREATE, *names))
    for kind in (ADD, CREATE):
        assert outcomes.applying(state, failed(1, kind, *names)) == StateChange()
    assert applied(state, outcome_of(2, CREATE, *names)) == state
    numbered = begun(State(), operation(CREATE, *names, job=2))
    assert applied(numbered, outcome_of(2, CREATE, *names)).operations == ()


@pytest.mark.parametrize(
    ("kind", "before", "after"), [(ADD, {}, tags(a=ACTIVE)), (DELETE, tags(a=ACTIVE), {})]
)
def test_success_finishes_operation_without_recorded_job(
    kind: Kind, before: dict[Tag, Status], after: dict[Tag, Status]
) -> None:
    state = begun(State(before), operation(kind, "a"))
    ended = applied(state, outcome_of(1, kind, "a"))
    assert (ended.tags, ended.operations) == (after, ())
    # A failure counts only once the job is recorded, because it may be that of an earlier job.
    assert applied(state, failed(1, kind, "a")) == state


def test_outcome_for_other_tags_does_not_finish_operation_without_recorded_job() -> None:
    state = begun(State(), operation(ADD, "a", "b"))
    assert len(applied(state, outcome_of(1, ADD, "a")).operations) == 1
    assert len(applied(state, outcome_of(1, DELETE, "a", "b")).operations) == 1


def test_earlier_outcome_does_not_finish_operation_without_recorded_job() -> None:
    state = applied(State(), outcome_of(7, DELETE, "a"))
    state = begun(state, operation(ADD, "a"))
    assert applied(state, failed(6, ADD, "a")) == state


def test_late_addition_does_not_restore_deleted_tag() -> None:
    state = applied(begun(State(), operation(ADD, "a", job=1)), outcome_of(1, ADD, "a"))
    state = applied(begun(state, operation(DELETE, "a", job=2)), outcome_of(2, DELETE, "a"))
    assert applied(state, outcome_of(1, ADD, "a"), outcome_of(1, ADD, "a")) == state


def test_outcomes_in_any_order_give_the_same_state() -> None:
    state = State(tags(a=ACTIVE), (operation(DELETE, "a", job=1), operation(ADD, "a", job=2)))
    in_order = applied(state, outcome_of(1, DELETE, "a"), outcome_of(2, ADD, "a"))
    assert in_order.tags == tags(a=ACTIVE)
    assert applied(state, outcome_of(2, ADD, "a"), outcome_of(1, DELETE, "a")) == in_order


def test_earlier_addition_does_not_restore_tag_being_deleted() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a", job=2))
    state = applied(state, outcome_of(1, ADD, "a"))
    assert state.tags == {}
    assert applied(state, outcome_of(2, DELETE, "a")).tags == {}
    assert applied(state, failed(2, DELETE, "a")).tags == tags(a=ACTIVE)


def test_added_tag_stays_pending_while_deletion_has_no_recorded_job() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a"))
    state = applied(begun(state, operation(ADD, "a", job=2)), outcome_of(2, ADD, "a"))
    assert state.tags == tags(a=PENDADD)
    numbered = dataclasses.replace(state, operations=(operation(DELETE, "a", job=1),))
    assert applied(numbered, outcome_of(1, DELETE, "a")).tags == tags(a=ACTIVE)
    numbered = dataclasses.replace(state, operations=(operation(DELETE, "a", job=3),))
    assert applied(numbered, outcome_of(3, DELETE, "a")).tags == {}


def test_deletion_makes_active_tag_with_pending_addition_pending() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a", job=2))
    state = begun(state, operation(ADD, "a", job=3))
    state = applied(state, failed(2, DELETE, "a"))
    assert state.tags == tags(a=ACTIVE)
    state = applied(state, outcome_of(1, DELETE, "a"))
    assert state.tags == tags(a=PENDADD)
    assert applied(state, outcome_of(3, ADD, "a")).tags == tags(a=ACTIVE)
    assert applied(state, failed(3, ADD, "a")).tags == {}


def test_failed_deletion_does_not_restore_tag_deleted_by_another_job() -> None:
    state = begun(State(tags(a=ACTIVE, b=ACTIVE)), operation(DELETE, "a", "b", job=2))
    for several in (
        (outcome_of(1, DELETE, "a"), failed(2, DELETE, "a", "b")),
        (failed(2, DELETE, "a", "b"), outcome_of(1, DELETE, "a")),
    ):
        assert applied(state, *several).tags == tags(b=ACTIVE)


def test_tag_is_active_if_its_deletion_and_its_addition_failed() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(DELETE, "a", job=1))
    state = begun(state, operation(ADD, "a", job=2))
    for several in (
        (failed(1, DELETE, "a"), failed(2, ADD, "a")),
        (failed(2, ADD, "a"), failed(1, DELETE, "a")),
    ):
        assert applied(state, *several) == State(tags(a=ACTIVE))


def test_tag_changes_back_only_after_the_last_operation_failed() -> None:
    adds = State(tags(a=PENDADD), (operation(ADD, "a", job=1), operation(ADD, "a", job=2)))
    assert applied(adds, failed(1, ADD, "a")).tags == tags(a=PENDADD)
    assert applied(adds, failed(1, ADD, "a"), failed(2, ADD, "a")).tags == {}
    deletes = State({}, (operation(DELETE, "a", job=1), operation(DELETE, "a", job=2)))
    assert applied(deletes, failed(1, DELETE, "a")).tags == {}
    assert applied(deletes, failed(1, DELETE, "a"), failed(2, DELETE, "a")).tags == tags(a=ACTIVE)


def test_operation_with_late_job_number_does_not_override_later_outcome() -> None:
    for kind, after in ((DELETE, {}), (ADD, tags(a=ACTIVE))):
        mine = ADD if kind is DELETE else DELETE
        state = begun(State(tags(a=ACTIVE) if mine is DELETE else {}), operation(mine, "a"))
        state = applied(state, outcome_of(2, kind, "a"))
        state = dataclasses.replace(state, operations=(operation(mine, "a", job=1),))
        assert applied(state, outcome_of(1, mine, "a")).tags == after
        assert applied(state, failed(1, mine, "a")).tags == after


def test_tag_added_at_the_backend_is_active() -> None:
    outcome = dataclasses.replace(
        outcome_of(1, ADD, "a"), tags=frozenset({key("a"), key("b", SYSTEM)})
    )
    assert applied(State(), outcome).tags == {**tags(a=ACTIVE), **tags(SYSTEM, b=ACTIVE)}


def test_tag_deleted_at_the_backend_is_removed() -> None:
    assert applied(State(tags(a=ACTIVE, b=ACTIVE)), outcome_of(1, DELETE, "a")).tags == tags(
        b=ACTIVE
    )


def test_failed_job_of_others_changes_nothing() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(ADD, "b", job=1))
    for outcome in (failed(2, DELETE, "a"), failed(2, ADD, "b"), failed(2, DELETE, "c")):
        assert applied(state, outcome) == state


def test_outcomes_for_one_owner_keep_tags_of_the_other() -> None:
    state = begun(State(tags(a=ACTIVE)), operation(ADD, "b", job=1))
    after = applied(
        state, outcome_of(2, DELETE, "a", prefix=SYSTEM), outcome_of(3, ADD, "b", prefix=SYSTEM)
    )
    assert after.of(USER) == state.of(USER)
    assert after.of(SYSTEM) == {"b": ACTIVE}
    assert after.operations == state.operations


def test_jobs_before_the_creation_do_not_change_the_instance() -> None:
    creation = Operation("c", Kind.CREATE, USER, (Tag(USER, "mine"),), 0.0, 5)
    earlier = Outcome(4, "vm", Kind.ADD, frozenset({Tag(USER, "theirs")}), succeeded=True)
    begun = State({Tag(USER, "mine"): Status.PENDADD}, (creation,))
    assert outcomes.applying(begun, earlier) == StateChange()
    unnumbered = State(begun.tags, (dataclasses.replace(creation, job=None),))
    assert outcomes.applying(unnumbered, earlier) == StateChange()
    done = Outcome(5, "vm", Kind.CREATE, frozenset(creation.tags), succeeded=True)
    created = outcomes.applying(begun, done).applied(begun)
    assert created.tags == {Tag(USER, "mine"): Status.ACTIVE}
    assert outcomes.applying(created, earlier).applied(created) == created


def test_creation_of_another_instance_does_not_finish_this_one() -> None:
    # Without tags, creations differ only by their job numbers.
    creation = Operation("c", Kind.CREATE, USER, (), 0.0)
    state = State(operations=(creation,), horizon=4)
    other = Outcome(4, "vm", Kind.CREATE, frozenset(), succeeded=True)
    assert outcomes.applying(state, other) == StateChange()
    later = dataclasses.replace(other, job=5)
    assert outcomes.applying(state, later) == StateChange()
    numbered = State(operations=(dataclasses.replace(creation, job=5),), horizon=4)
    assert outcomes.applying(numbered, later).ended == {"c"}
    failure = Outcome(5, "vm", Kind.ADD, frozenset(), succeeded=False)
    assert not outcomes.applying(numbered, failure).forgotten


def test_removal_deletes_all_tags() -> None:
    state = State({**tags(a=ACTIVE), **tags(SYSTEM, b=ACTIVE)}, horizon=3)
    removal = outcome_of(9, Kind.REMOVE)
    after = applied(state, removal)
    assert after.tags == {}
    assert after.horizon == 9
    assert outcomes.applying(after, removal) == StateChange()
    assert applied(after, outcome_of(8, ADD, "late")) == after
    assert applied(after, outcome_of(10, CREATE, "a")).tags == tags(a=ACTIVE)


def test_removal_keeps_tags_with_later_additions() -> None:
    after_it = operation(ADD, "a", job=10)
    unsure = operation(ADD, "b")
    before_it = operation(ADD, "c", job=8)
    state = begun(State(), after_it, unsure, before_it)
    after = applied(state, outcome_of(9, Kind.REMOVE))
    assert after.tags == tags(a=PENDADD, b=PENDADD)
    assert applied(after, outcome_of(8, ADD, "c"), outcome_of(10, ADD, "a")).tags == tags(
        a=ACTIVE, b=PENDADD
    )


def test_failed_or_earlier_removal_changes_nothing() -> None:
    state = State(tags(a=ACTIVE), horizon=9)
    assert outcomes.applying(state, failed(10, Kind.REMOVE, "a")) == StateChange()
    assert outcomes.applying(state, outcome_of(9, Kind.REMOVE, "a")) == StateChange()


def test_removal_before_the_creation_changes_nothing() -> None:
    state = begun(State(), operation(CREATE, "a", job=10))
    assert outcomes.applying(state, outcome_of(9, Kind.REMOVE, "a")) == StateChange()
