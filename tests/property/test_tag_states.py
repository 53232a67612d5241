"""Laws of how tags change, over states and histories that are as odd as they can be."""

import dataclasses
import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steelyard.errors import BadRequest, Conflict
from steelyard.tags import states
from steelyard.tags.names import MOST
from steelyard.tags.states import Key, Kind, Mark, Operation, Outcome, Rules, State, Status

USER, SYSTEM = "cyclades:user:", "cyclades:system:"
NAMES = "ab"
RULES = Rules(USER)

prefixes = st.sampled_from([USER, SYSTEM])
some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(tuple)
keys = st.tuples(prefixes, st.sampled_from(NAMES))
kinds = st.sampled_from([Kind.ADD, Kind.DELETE])
numbers = st.integers(1, 9)


@st.composite
def any_states(draw: st.DrawFn) -> State:
    """Also such that no calls and outcomes lead to."""
    jobs = draw(st.lists(st.one_of(st.none(), numbers), max_size=4))
    seen = set()
    operations = []
    for number, job in enumerate(jobs):
        if job not in seen or job is None:
            kind = draw(st.sampled_from(Kind))
            names = draw(some_names)
            operations.append(Operation(str(number), kind, draw(prefixes), names, 0.0, job))
        seen.add(job)
    marks = st.builds(Mark, numbers, st.booleans())
    return State(
        draw(st.dictionaries(keys, st.sampled_from(Status))),
        tuple(operations),
        draw(st.dictionaries(keys, marks)),
        draw(st.integers(0, 5)),
    )


outcomes = st.builds(
    Outcome,
    numbers,
    st.just("vm"),
    st.sampled_from(Kind),
    st.frozensets(keys, max_size=3),
    st.booleans(),
)


def settled(state: State, *told: Outcome) -> State:
    for outcome in told:
        state = states.settling(state, outcome).applied(state)
    return state


class History:
    """Calls on an instance, jobs that others have asked for, and what the backend makes of them."""

    def __init__(self) -> None:
        self.state = State()
        self.truth: set[Key] = set()
        self.told: list[Outcome] = []
        """What there is to tell of each job, in their order."""

    def call(self, kind: Kind, names: tuple[str, ...], *, numbered: bool) -> None:
        """The number of the job may be written down later, when outcomes have come already."""
        there = self.state.of(USER)
        if kind.adds:
            try:
                names = states.adding(self.state, RULES, names)
            except Conflict:
                return
        else:
            names = tuple(name for name in names if there.get(name) is Status.ACTIVE)
        if names:
            job = len(self.told) + 1
            operation = Operation(str(job), kind, USER, names, 0.0, job if numbered else None)
            self.state = states.beginning(operation).applied(self.state)
            self.asked(kind, names)

    def number(self) -> None:
        """Every job is known by its number from now on."""
        numbered = [dataclasses.replace(each, job=int(each.id)) for each in self.state.operations]
        self.state = dataclasses.replace(self.state, operations=tuple(numbered))

    def asked(self, kind: Kind, names: tuple[str, ...], *, fails: bool = False) -> None:
        """The backend does one job after the other: it is as if each was done at once."""
        mine = frozenset((USER, name) for name in names)
        succeeds = not fails and (kind.adds or mine <= self.truth)
        if succeeds:
            self.truth = self.truth | mine if kind.adds else self.truth - mine
        self.told.append(Outcome(len(self.told) + 1, "vm", kind, mine, succeeds))

    def fail_the_last(self, before: set[Key]) -> None:
        self.truth = before
        self.told[-1] = dataclasses.replace(self.told[-1], succeeded=False)


@st.composite
def histories(draw: st.DrawFn) -> tuple[History, list[Outcome]]:
    """A history in which some outcomes have been told already, and those that have not."""
    history = History()
    done: list[int] = []
    for _ in range(draw(st.integers(1, 12))):
        before, count = history.truth, len(history.told)
        names = draw(some_names)
        what = draw(st.sampled_from(["call", "call", "hand", "tell", "tell", "number"]))
        if what == "call":
            history.call(draw(kinds), names, numbered=draw(st.booleans()))
        elif what == "number":
            history.number()
        elif what == "hand":
            history.asked(draw(kinds), names)
        elif history.told:
            done.append(draw(st.integers(0, count - 1)))
            history.state = settled(history.state, history.told[done[-1]])
        if len(history.told) > count and draw(st.integers(0, 4)) == 0:
            history.fail_the_last(before)
    left = [each for number, each in enumerate(history.told) if number not in done]
    return history, left


@given(any_states(), outcomes)
def test_to_be_told_twice_is_to_be_told_once(state: State, outcome: Outcome) -> None:
    once = settled(state, outcome)
    assert settled(once, outcome) == once


@settings(max_examples=600)
@given(histories(), st.data())
def test_in_the_end_the_rows_are_what_the_backend_has(
    history: tuple[History, list[Outcome]], data: st.DataObject
) -> None:
    """Whichever jobs have failed, in whatever order one is told of them, and however often.

    Whose outcome has come before its number, and could be an older one's, is asked about again.
    """
    world, left = history
    again = data.draw(st.lists(st.sampled_from(world.told), max_size=3)) if world.told else []
    world.number()
    state = settled(world.state, *data.draw(st.permutations([*left, *again])))
    state = settled(state, *(world.told[int(each.id) - 1] for each in state.operations))
    assert state.tags == dict.fromkeys(world.truth, Status.ACTIVE)
    assert state.operations == ()


@given(st.lists(st.tuples(kinds, some_names), min_size=1, max_size=4))
def test_successes_come_in_any_order(jobs: list[tuple[Kind, tuple[str, ...]]]) -> None:
    """Of jobs on the same tags, which have been asked for at the same time."""
    asked = [
        Operation(str(job), kind, USER, names, 0.0, job)
        for job, (kind, names) in enumerate(jobs, start=1)
    ]
    state = states.beginning(*asked).applied(State())
    told = [Outcome(each.job or 0, "vm", each.kind, each.keys, True) for each in asked]
    in_order = settled(state, *told)
    for order in itertools.permutations(told):
        assert settled(state, *order) == in_order


@given(any_states(), keys, numbers, outcomes)
def test_no_older_outcome_brings_back_what_has_been_deleted(
    state: State, key: Key, job: int, outcome: Outcome
) -> None:
    prefix, name = key
    deletion = Operation("deletion", Kind.DELETE, prefix, (name,), 0.0, job)
    others = tuple(each for each in state.operations if each.job != job)
    earlier = {each: mark for each, mark in state.marks.items() if each != key}
    state = dataclasses.replace(state, operations=(*others, deletion), marks=earlier)
    deleted = settled(state, Outcome(job, "vm", Kind.DELETE, deletion.keys, True))
    if outcome.job <= job and not any(each.touches(key) for each in deleted.operations):
        assert key not in deleted.tags
        assert key not in settled(deleted, outcome).tags


@given(any_states(), outcomes, prefixes)
def test_an_outcome_touches_no_tags_of_another_owner(
    state: State, outcome: Outcome, prefix: str
) -> None:
    mine = frozenset(key for key in outcome.keys if key[0] == prefix)
    theirs = tuple(
        each for each in state.operations if each.prefix != prefix and each.job == outcome.job
    )
    rest = tuple(each for each in state.operations if each not in theirs)
    before = dataclasses.replace(state, operations=rest)
    after = settled(before, dataclasses.replace(outcome, keys=mine))
    for what in ("tags", "marks"):
        assert {key: each for key, each in getattr(after, what).items() if key[0] != prefix} == {
            key: each for key, each in getattr(before, what).items() if key[0] != prefix
        }
    assert [each for each in after.operations if each.prefix != prefix] == [
        each for each in before.operations if each.prefix != prefix
    ]


@given(any_states(), st.sampled_from([Kind.ADD, Kind.DELETE]), some_names)
def test_what_is_refused_has_never_been_asked(
    state: State, kind: Kind, names: tuple[str, ...]
) -> None:
    """Where calls that may be are refused: of new tags, or of active ones."""
    wanted = None if kind.adds else Status.ACTIVE
    free = State({key: status for key, status in state.tags.items() if key[0] != USER})
    if wanted is not None:
        free = State({**free.tags, **{(USER, name): wanted for name in names}})
    operation = Operation("refused", kind, USER, names, 0.0)
    begun = states.beginning(operation).applied(free)
    assert begun != free
    assert states.failing(begun, [operation]).applied(begun) == free


counts = st.integers(0, MOST + 3)


@example(active=MOST + 1, pending=0, again=MOST + 1, new=0)
@given(counts, counts, counts, counts)
def test_the_limit(active: int, pending: int, again: int, new: int) -> None:
    """Name some of the tags that are there again, beside new ones.

    A call that names more tags than the limit is refused even if all of them are there.
    """
    names = [f"t{number}" for number in range(active + pending)]
    there = {
        (USER, name): Status.ACTIVE if number < active else Status.PENDADD
        for number, name in enumerate(names)
    }
    theirs = {(SYSTEM, name): Status.ACTIVE for name in names}
    wanted = [*names[:again], *(f"new{number}" for number in range(new))]
    state = State({**there, **theirs})
    left = {name for name, status in state.of(USER).items() if status is Status.PENDADD}
    for decide, count in (
        (states.adding, max(len(wanted), len(there) + new if new else 0)),
        (states.replacing, len(left.union(wanted))),
    ):
        if count > MOST:
            with pytest.raises(BadRequest, match=f"at most {MOST} tags, and would have"):
                decide(state, RULES, wanted)
        else:
            decide(state, RULES, wanted)
        decide(state, Rules(USER, most=None), wanted)
