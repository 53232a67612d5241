"""Plans of reconciliation for recorded tags, tags at the backend, and pending operations."""

import pytest

from steelyard.tags.backends.base import JobStatus
from steelyard.tags.codec import Tag, encode
from steelyard.tags.names import DEFAULT_PREFIXES, Owner
from steelyard.tags.plans import Look, Plan, PlanAction, Step, forgetting, plan_reconciliation
from steelyard.tags.states.values import (
    Instance,
    Kind,
    Operation,
    State,
    StateChange,
    Status,
    TagMark,
)

USER, SYSTEM = DEFAULT_PREFIXES
VM = Instance("s", "vm", "p", "u")
RED = Tag(USER, "red")
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD


def operation(kind: Kind, *names: str, prefix: str = USER, job: int | None = 7) -> Operation:
    tags = tuple(Tag(prefix, name) for name in names or ("red",))
    return Operation(f"{kind}-{prefix}{'-'.join(names)}", kind, prefix, tags, 0.0, job)


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
        (None, (), True, PlanAction.CREATED, ACTIVE),
        (PENDADD, (), True, PlanAction.ACTIVATED, ACTIVE),
        (ACTIVE, (), False, PlanAction.DELETED, None),
        (PENDADD, (), False, PlanAction.DELETED, None),
        (PENDADD, (Kind.ADD,), True, PlanAction.ACTIVATED, ACTIVE),
        (PENDADD, (Kind.ADD,), False, PlanAction.LEFT, PENDADD),
        (PENDADD, (Kind.CREATE,), False, PlanAction.LEFT, PENDADD),
        (ACTIVE, (Kind.ADD,), False, PlanAction.LEFT, ACTIVE),
        (None, (Kind.DELETE,), True, PlanAction.LEFT, None),
        (None, (Kind.DELETE,), False, None, None),
        (PENDADD, (Kind.DELETE,), True, PlanAction.DELETED, None),
        (PENDADD, (Kind.DELETE,), False, PlanAction.DELETED, None),
        (PENDADD, (Kind.DELETE, Kind.ADD), True, PlanAction.LEFT, PENDADD),
        (PENDADD, (Kind.DELETE, Kind.ADD), False, PlanAction.LEFT, PENDADD),
    ],
)
def test_plan_resolves_difference_of_tag(
    here: Status | None,
    kinds: tuple[Kind, ...],
    there: bool,
    action: PlanAction | None,
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
def test_lost_operations_finish_with_the_tags_of_the_backend(kind: Kind, there: bool) -> None:
    over = operation(kind, job=None)
    state = State({RED: PENDADD} if kind is Kind.ADD else {}, (over,))
    then = planned(state, *(["red"] if there else []), over=(over,)).change.applied(state)
    assert then == State({RED: ACTIVE} if there else {})


def test_foreign_tags_are_listed_and_left_alone() -> None:
    found = plan_reconciliation(VM, State(), Look({"other:a", f"{USER}/41", f"{USER}a_b"}))
    assert found.change == StateChange()
    assert [(step.action, step.tag) for step in found.steps] == [
        (PlanAction.LEFT, f"{USER}/41"),
        (PlanAction.LEFT, f"{USER}a_b"),
        (PlanAction.LEFT, "other:a"),
    ]


def test_plan_for_one_owner_keeps_the_horizon() -> None:
    ours = operation(Kind.ADD, "lost")
    theirs = operation(Kind.ADD, "lost", prefix=SYSTEM)
    state = State({Tag(USER, "lost"): PENDADD, Tag(SYSTEM, "lost"): PENDADD}, (ours, theirs))
    look = Look({encode("new", USER), encode("new", SYSTEM)}, lost(ours, theirs), 9)
    found = plan_reconciliation(VM, state, look, owners=[Owner.SYSTEM])
    assert {(step.action, step.prefix, step.tag) for step in found.steps} == {
        (PlanAction.CREATED, SYSTEM, "new"),
        (PlanAction.DELETED, SYSTEM, "lost"),
    }
    assert found.change.horizon is None
    assert found.change.ended == {theirs.id}
    assert plan_reconciliation(VM, state, look).change.horizon == 9


def test_instance_with_lost_creation_is_forgotten() -> None:
    creation = operation(Kind.CREATE)
    state = State({RED: PENDADD}, (creation,))
    found = plan_reconciliation(VM, state, Look(None, lost(creation)))
    assert found.change.forgotten
    assert found.steps == (Step(PlanAction.FORGOTTEN, "it was never created"),)
    still = plan_reconciliation(VM, state, Look(None))
    assert still.change == StateChange()
    assert still.steps == (Step(PlanAction.LEFT, "it is still being created"),)


def test_tags_of_instance_missing_at_the_backend_are_kept() -> None:
    # The configured backend may be the wrong one.
    blue = operation(Kind.ADD, "blue")
    state = State({RED: ACTIVE, Tag(USER, "blue"): PENDADD}, (blue,))
    found = plan_reconciliation(VM, state, Look(None, lost(blue), 9))
    assert found.change.applied(state) == State({RED: ACTIVE})
    assert found.steps == (Step(PlanAction.LEFT, "the backend does not have the instance"),)


def test_outcomes_up_to_the_horizon_are_no_news() -> None:
    found = planned(State(), horizon=9)
    state = found.change.applied(State())
    assert not state.is_news(9, RED)
    assert state.is_news(10, RED)
    assert planned(state, horizon=9).change == StateChange()


def test_mark_that_contradicts_the_backend_is_corrected() -> None:
    # After a failed deletion, the mark decides whether the tag is restored.
    state = State(marks={RED: TagMark(12, there=False)})
    assert planned(state, "red", horizon=9).change.marked == {RED: TagMark(12, there=True)}
    assert planned(state, horizon=9).change.marked == {}


def test_mark_up_to_the_horizon_is_deleted() -> None:
    state = State({RED: PENDADD}, (operation(Kind.ADD),), {RED: TagMark(3, there=False)})
    assert planned(state, horizon=9).change.unmarked == set()
    gone = planned(State(marks={RED: TagMark(9, there=True)}), horizon=9).change
    assert gone.unmarked == {RED}
    assert gone.marked == {}


def test_plan_for_one_owner_sets_marks_instead_of_the_horizon() -> None:
    over = operation(Kind.DELETE)
    state = State({Tag(USER, "gone"): ACTIVE}, (over,), {Tag(USER, "old"): TagMark(3, there=False)})
    look = Look({encode("new", USER)}, lost(over), 9)
    change = plan_reconciliation(VM, state, look, owners=[Owner.USER]).change
    assert change.marked == {
        RED: TagMark(9, there=False),
        Tag(USER, "gone"): TagMark(9, there=False),
        Tag(USER, "new"): TagMark(9, there=True),
    }
    assert change.unmarked == set()


def test_instance_with_failed_creation_is_forgotten_although_the_name_exists() -> None:
    creation = operation(Kind.CREATE)
    state = State({RED: PENDADD}, (creation,))
    look = Look({encode("theirs", USER)}, {creation.id: JobStatus.FAILED}, 9)
    assert plan_reconciliation(VM, state, look).change.forgotten


def test_tags_with_pending_operations_are_marked_as_at_the_backend() -> None:
    # The operation may have finished before the tags were read.
    state = State({RED: PENDADD}, (operation(Kind.ADD, job=None),))
    assert planned(state, horizon=9).change.marked == {RED: TagMark(9, there=False)}
    assert planned(state, "red", horizon=9).change.marked == {RED: TagMark(9, there=True)}


def test_smaller_horizon_of_the_backend_is_ignored() -> None:
    state = State(horizon=9, marks={RED: TagMark(8, there=False)})
    change = planned(state, horizon=5).change
    assert change.horizon is None
    assert change.unmarked == {RED}
    assert not change.applied(state).is_news(8, RED)


def test_forgetting_forgets_an_instance_that_the_backend_lost() -> None:
    state = State({RED: ACTIVE}, (operation(Kind.ADD, "new"),))
    plan = plan_reconciliation(VM, state, Look(None))
    assert (plan.change.forgotten, [step.action for step in plan.steps]) == (
        False,
        [PlanAction.LEFT],
    )
    forgotten = forgetting(plan)
    assert forgotten.change.forgotten
    why = "the backend does not have the instance"
    assert forgotten.steps == (Step(PlanAction.FORGOTTEN, why),)
    assert forgetting(forgotten) == forgotten


@pytest.mark.parametrize(
    ("state", "there"),
    [
        (State({RED: ACTIVE}), frozenset()),
        (State({RED: PENDADD}, (operation(Kind.CREATE),)), None),
    ],
    ids=["an instance that the backend has", "one that is being created"],
)
def test_forgetting_keeps_other_plans(state: State, there: frozenset[str] | None) -> None:
    plan = plan_reconciliation(VM, state, Look(there))
    assert forgetting(plan) == plan
