"""Laws of outcomes and failed operations, over arbitrary states and histories."""

import dataclasses
import itertools
from collections.abc import Iterable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from steelyard.errors import Conflict
from steelyard.tags.codec import Tag
from steelyard.tags.states import outcomes, requests
from steelyard.tags.states.requests import TagRules
from steelyard.tags.states.values import Kind, Operation, Outcome, State, Status, TagMark
from support.examples import examples

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

USER, SYSTEM = "cyclades:user:", "cyclades:system:"
NAMES = "ab"
RULES = TagRules(USER)

prefixes = st.sampled_from([USER, SYSTEM])
some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(tuple)
keys = st.builds(Tag, prefixes, st.sampled_from(NAMES))
kinds = st.sampled_from([Kind.ADD, Kind.DELETE])
numbers = st.integers(1, 9)


def operation(
    id: str,  # noqa: A002
    kind: Kind,
    names: Iterable[str],
    job: int | None,
    prefix: str = USER,
) -> Operation:
    return Operation(id, kind, prefix, tuple(Tag(prefix, name) for name in names), 0.0, job)


@st.composite
def any_states(draw: st.DrawFn) -> State:
    """Draw any state, including those that no calls and outcomes lead to."""
    jobs = draw(st.lists(st.one_of(st.none(), numbers), max_size=4))
    seen = set()
    operations = []
    for number, job in enumerate(jobs):
        if job not in seen or job is None:
            kind = draw(st.sampled_from([Kind.ADD, Kind.DELETE, Kind.CREATE]))
            names, prefix = draw(some_names), draw(prefixes)
            operations.append(operation(str(number), kind, names, job, prefix))
        seen.add(job)
    marks = st.builds(TagMark, numbers, st.booleans())
    return State(
        draw(st.dictionaries(keys, st.sampled_from(Status))),
        tuple(operations),
        draw(st.dictionaries(keys, marks)),
        draw(st.integers(0, 5)),
    )


any_outcomes = st.builds(
    Outcome,
    numbers,
    st.just("vm"),
    st.sampled_from(Kind),
    st.frozensets(keys, max_size=3),
    st.booleans(),
)


def state_after(state: State, *results: Outcome) -> State:
    for outcome in results:
        state = outcomes.applying(state, outcome).applied(state)
    return state


class History:
    """Calls on an instance, jobs of other clients, and their results at the backend."""

    def __init__(self) -> None:
        self.state = State()
        self.truth: set[Tag] = set()
        self.results: list[Outcome] = []
        """The outcome of each job, in order."""

    def call(self, kind: Kind, names: tuple[str, ...], *, numbered: bool) -> None:
        """Make a call; its job number may be recorded later, after outcomes have arrived."""
        there = self.state.of(USER)
        if kind.adds:
            try:
                new = requests.adding(self.state, RULES, requests.wanted(RULES, names))
            except Conflict:
                return
            names = tuple(tag.name for tag in new)
        else:
            names = tuple(name for name in names if there.get(name) is Status.ACTIVE)
        if names:
            job = len(self.results) + 1
            begun = operation(str(job), kind, names, job if numbered else None)
            self.state = requests.beginning(begun).applied(self.state)
            self.run_job(kind, names)

    def number(self) -> None:
        """Record the job numbers of all operations."""
        numbered = [dataclasses.replace(each, job=int(each.id)) for each in self.state.operations]
        self.state = dataclasses.replace(self.state, operations=tuple(numbered))

    def run_job(self, kind: Kind, names: tuple[str, ...], *, fails: bool = False) -> None:
        """Run a job at once, because the backend runs jobs in their order."""
        mine = frozenset(Tag(USER, name) for name in names)
        succeeds = not fails and (kind.adds or mine <= self.truth)
        if succeeds:
            self.truth = self.truth | mine if kind.adds else self.truth - mine
        self.results.append(Outcome(len(self.results) + 1, "vm", kind, mine, succeeds))

    def fail_the_last(self, before: set[Tag]) -> None:
        self.truth = before
        self.results[-1] = dataclasses.replace(self.results[-1], succeeded=False)


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, list[Outcome]]:
    """Draw a history and those of its outcomes that were not applied yet."""
    history = History()
    done: list[int] = []
    for _ in range(draw(st.integers(1, 12))):
        before, count = history.truth, len(history.results)
        names = draw(some_names)
        step = draw(st.sampled_from(["call", "call", "job", "apply", "apply", "number"]))
        if step == "call":
            history.call(draw(kinds), names, numbered=draw(st.booleans()))
        elif step == "number":
            history.number()
        elif step == "job":
            history.run_job(draw(kinds), names)
        elif history.results:
            done.append(draw(st.integers(0, count - 1)))
            history.state = state_after(history.state, history.results[done[-1]])
        if len(history.results) > count and draw(st.integers(0, 4)) == 0:
            history.fail_the_last(before)
    left = [each for number, each in enumerate(history.results) if number not in done]
    return history, left


@given(any_states(), any_outcomes)
def test_outcome_applied_twice_has_the_same_effect(state: State, outcome: Outcome) -> None:
    once = state_after(state, outcome)
    assert state_after(once, outcome) == once


@settings(max_examples=examples(150))
@given(histories(), st.data())
def test_tags_converge_to_those_of_the_backend(
    history: tuple[History, list[Outcome]], data: st.DataObject
) -> None:
    # Outcomes are reordered and repeated. An operation whose outcome arrived before its job number
    # is still pending, because the outcome could belong to an older job; it is applied again.
    world, left = history
    again = data.draw(st.lists(st.sampled_from(world.results), max_size=3)) if world.results else []
    world.number()
    state = state_after(world.state, *data.draw(st.permutations([*left, *again])))
    state = state_after(state, *(world.results[int(each.id) - 1] for each in state.operations))
    assert state.tags == dict.fromkeys(world.truth, Status.ACTIVE)
    assert state.operations == ()


@given(st.lists(st.tuples(kinds, some_names), min_size=1, max_size=4))
def test_order_of_successful_outcomes_does_not_matter(
    jobs: list[tuple[Kind, tuple[str, ...]]],
) -> None:
    # All jobs are submitted before the first outcome arrives.
    submitted = [
        operation(str(job), kind, names, job) for job, (kind, names) in enumerate(jobs, start=1)
    ]
    state = requests.beginning(*submitted).applied(State())
    results = [
        Outcome(each.job or 0, "vm", each.kind, frozenset(each.tags), True) for each in submitted
    ]
    in_order = state_after(state, *results)
    for order in itertools.permutations(results):
        assert state_after(state, *order) == in_order


@given(any_states(), keys, numbers, any_outcomes)
def test_older_outcome_does_not_restore_a_deleted_tag(
    state: State, key: Tag, job: int, outcome: Outcome
) -> None:
    deletion = Operation("deletion", Kind.DELETE, key.prefix, (key,), 0.0, job)
    others = tuple(each for each in state.operations if each.job != job)
    earlier = {each: mark for each, mark in state.marks.items() if each != key}
    state = dataclasses.replace(state, operations=(*others, deletion), marks=earlier)
    deleted = state_after(state, Outcome(job, "vm", Kind.DELETE, frozenset(deletion.tags), True))
    if outcome.job <= job and not any(key in each.tags for each in deleted.operations):
        assert key not in deleted.tags
        assert key not in state_after(deleted, outcome).tags


@given(any_states(), any_outcomes, prefixes)
def test_outcome_changes_no_tags_of_another_owner(
    state: State, outcome: Outcome, prefix: str
) -> None:
    assume(outcome.kind is not Kind.REMOVE)  # deletes the tags of all owners
    mine = frozenset(key for key in outcome.tags if key[0] == prefix)
    theirs = tuple(
        each for each in state.operations if each.prefix != prefix and each.job == outcome.job
    )
    rest = tuple(each for each in state.operations if each not in theirs)
    before = dataclasses.replace(state, operations=rest)
    after = state_after(before, dataclasses.replace(outcome, tags=mine))
    for what in ("tags", "marks"):
        assert {key: each for key, each in getattr(after, what).items() if key[0] != prefix} == {
            key: each for key, each in getattr(before, what).items() if key[0] != prefix
        }
    assert [each for each in after.operations if each.prefix != prefix] == [
        each for each in before.operations if each.prefix != prefix
    ]


@given(any_states(), st.sampled_from([Kind.ADD, Kind.DELETE]), some_names)
def test_refused_operation_restores_the_state(
    state: State, kind: Kind, names: tuple[str, ...]
) -> None:
    # The backend refuses additions of new tags and deletions of active ones.
    wanted = None if kind.adds else Status.ACTIVE
    free = State({key: status for key, status in state.tags.items() if key[0] != USER})
    if wanted is not None:
        free = State({**free.tags, **{Tag(USER, name): wanted for name in names}})
    refused = operation("refused", kind, names, None)
    begun = requests.beginning(refused).applied(free)
    assert begun != free
    assert outcomes.failing(begun, [refused]).applied(begun) == free
