"""What reconciliation does with a tag, by what is here, what is there and what is under way."""

import pytest

from steelyard.tags.backends.base import JobStatus
from steelyard.tags.codec import encode
from steelyard.tags.names import DEFAULT_PREFIXES, Owner
from steelyard.tags.plans import Action, Look, Plan, Step, plan_reconciliation
from steelyard.tags.states import (
    Change,
    Instance,
    Key,
    Kind,
    Mark,
    Operation,
    State,
    Status,
)

USER, SYSTEM = DEFAULT_PREFIXES
VM = Instance("s", "vm", "p", "u")
RED: Key = (USER, "red")
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD


def operation(kind: Kind, *names: str, prefix: str = USER, job: int | None = 7) -> Operation:
    return Operation(f"{kind}-{prefix}{'-'.join(names)}", kind, prefix, names or ("red",), 0.0, job)


def lost(*operations: Operation) -> dict[str, JobStatus]:
    return {each.id: JobStatus.LOST for each in operations}


def planned(state: State, *there: str, over: tuple[Operation, ...] = (), horizon: int = 0) -> Plan:
    tags = {encode(name, USER) for name in there}
    return plan_reconciliation(VM, state, Look(tags, lost(*over), horizon))


@pytest.mark.parametrize(
    ("here", "kinds", "there", "action", "then"),
    [
        (None, (), False, None, None),
        (ACTIVE, (), True, None, ACTIVE),
        (None, (), True, Action.CREATED, ACTIVE),
        (PENDADD, (), True, Action.ACTIVATED, ACTIVE),
        (ACTIVE, (), False, Action.DELETED, None),
        (PENDADD, (), False, Action.DELETED, None),
        (PENDADD, (Kind.ADD,), True, Action.ACTIVATED, ACTIVE),
        (PENDADD, (Kind.ADD,), False, Action.LEFT, PENDADD),
        (PENDADD, (Kind.CREATE,), False, Action.LEFT, PENDADD),
        (ACTIVE, (Kind.ADD,), False, Action.LEFT, ACTIVE),
        (None, (Kind.DELETE,), True, Action.LEFT, None),
        (None, (Kind.DELETE,), False, None, None),
        (PENDADD, (Kind.DELETE,), True, Action.DELETED, None),
        (PENDADD, (Kind.DELETE,), False, Action.DELETED, None),
        (PENDADD, (Kind.DELETE, Kind.ADD), True, Action.LEFT, PENDADD),
        (PENDADD, (Kind.DELETE, Kind.ADD), False, Action.LEFT, PENDADD),
    ],
)
def test_a_tag(
    here: Status | None,
    kinds: tuple[Kind, ...],
    there: bool,
    action: Action | None,
    then: Status | None,
) -> None:
    state = State({} if here is None else {RED: here}, tuple(map(operation, kinds)))
    found = planned(state, *(["red"] if there else []))
    assert [(step.action, step.tag) for step in found.steps] == (
        [] if action is None else [(action, "red")]
    )
    assert found.change.applied(state).tags.get(RED) is then
    assert found.change.applied(state).operations == state.operations


@pytest.mark.parametrize("kind", [Kind.ADD, Kind.DELETE])
@pytest.mark.parametrize("there", [False, True])
def test_what_is_over_ends_and_the_backend_is_right(kind: Kind, there: bool) -> None:
    over = operation(kind, job=None)
    state = State({RED: PENDADD} if kind is Kind.ADD else {}, (over,))
    then = planned(state, *(["red"] if there else []), over=(over,)).change.applied(state)
    assert then == State({RED: ACTIVE} if there else {})


def test_tags_of_nobody_here_are_left_alone_and_named() -> None:
    found = plan_reconciliation(VM, State(), Look({"other:a", f"{USER}/41", f"{USER}a_b"}))
    assert found.change == Change()
    assert [(step.action, step.tag) for step in found.steps] == [
        (Action.LEFT, f"{USER}/41"),
        (Action.LEFT, f"{USER}a_b"),
        (Action.LEFT, "other:a"),
    ]


def test_an_owner_can_be_named_and_then_a_late_outcome_still_counts() -> None:
    ours = operation(Kind.ADD, "lost")
    theirs = operation(Kind.ADD, "lost", prefix=SYSTEM)
    state = State({(USER, "lost"): PENDADD, (SYSTEM, "lost"): PENDADD}, (ours, theirs))
    look = Look({encode("new", USER), encode("new", SYSTEM)}, lost(ours, theirs), 9)
    found = plan_reconciliation(VM, state, look, owners=[Owner.SYSTEM])
    assert {(step.action, step.prefix, step.tag) for step in found.steps} == {
        (Action.CREATED, SYSTEM, "new"),
        (Action.DELETED, SYSTEM, "lost"),
    }
    assert found.change.horizon is None
    assert found.change.ended == {theirs.id}
    assert plan_reconciliation(VM, state, look).change.horizon == 9


def test_an_instance_that_has_never_come_to_be_is_forgotten() -> None:
    creation = operation(Kind.CREATE)
    state = State({RED: PENDADD}, (creation,))
    found = plan_reconciliation(VM, state, Look(None, lost(creation)))
    assert found.change.forgotten
    assert found.steps == (Step(Action.FORGOTTEN, "it has never come to be"),)
    still = plan_reconciliation(VM, state, Look(None))
    assert still.change == Change()
    assert still.steps == (Step(Action.LEFT, "it is still being created"),)


def test_the_tags_of_an_instance_that_is_not_there_are_kept() -> None:
    """Perhaps another backend has been configured than the one that it is at."""
    blue = operation(Kind.ADD, "blue")
    state = State({RED: ACTIVE, (USER, "blue"): PENDADD}, (blue,))
    found = plan_reconciliation(VM, state, Look(None, lost(blue), 9))
    assert found.change.applied(state) == State({RED: ACTIVE})
    assert found.steps == (Step(Action.LEFT, "the backend has no such instance"),)


def test_what_was_over_before_the_look_changes_nothing_when_it_is_told_late() -> None:
    found = planned(State(), horizon=9)
    state = found.change.applied(State())
    assert not state.is_news(9, RED)
    assert state.is_news(10, RED)
    assert planned(state, horizon=9).change == Change()


def test_a_mark_that_says_otherwise_than_the_backend_is_corrected() -> None:
    """So that a deletion that fails brings a tag back if it is there, and only then."""
    state = State(marks={RED: Mark(12, there=False)})
    assert planned(state, "red", horizon=9).change.marked == {RED: Mark(12, there=True)}
    assert planned(state, horizon=9).change.marked == {}


def test_a_mark_that_says_no_more_than_the_horizon_is_forgotten() -> None:
    state = State({RED: PENDADD}, (operation(Kind.ADD),), {RED: Mark(3, there=False)})
    assert planned(state, horizon=9).change.unmarked == set()
    gone = planned(State(marks={RED: Mark(9, there=True)}), horizon=9).change
    assert gone.unmarked == {RED}
    assert gone.marked == {}


def test_where_owners_are_named_marks_say_what_the_horizon_would() -> None:
    over = operation(Kind.DELETE)
    state = State({(USER, "gone"): ACTIVE}, (over,), {(USER, "old"): Mark(3, there=False)})
    look = Look({encode("new", USER)}, lost(over), 9)
    change = plan_reconciliation(VM, state, look, owners=[Owner.USER]).change
    assert change.marked == {
        RED: Mark(9, there=False),
        (USER, "gone"): Mark(9, there=False),
        (USER, "new"): Mark(9, there=True),
    }
    assert change.unmarked == set()


def test_an_instance_that_it_has_failed_to_create_is_another_one() -> None:
    creation = operation(Kind.CREATE)
    state = State({RED: PENDADD}, (creation,))
    look = Look({encode("theirs", USER)}, {creation.id: JobStatus.FAILED}, 9)
    assert plan_reconciliation(VM, state, look).change.forgotten


def test_what_is_under_way_is_marked_with_what_is_there_before_it() -> None:
    """It may turn out to have been over by then."""
    state = State({RED: PENDADD}, (operation(Kind.ADD, job=None),))
    assert planned(state, horizon=9).change.marked == {RED: Mark(9, there=False)}
    assert planned(state, "red", horizon=9).change.marked == {RED: Mark(9, there=True)}


def test_a_backend_that_has_forgotten_jobs_takes_nothing_back() -> None:
    state = State(horizon=9, marks={RED: Mark(8, there=False)})
    change = planned(state, horizon=5).change
    assert change.horizon is None
    assert change.unmarked == {RED}
    assert not change.applied(state).is_news(8, RED)
