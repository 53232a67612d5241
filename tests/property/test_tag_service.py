"""What holds of instances' tags, whatever goes wrong between the database and the backend."""

import collections
import contextlib
import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import hypothesis
import pytest
import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from steelyard import errors
from steelyard.tags import TagService, TagStore, decode, encode, model
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import DEFAULT_PREFIXES, MOST, Clashes, Owner
from steelyard.tags.plans import Action, Plan
from steelyard.tags.reconciliation import Reconciliation
from steelyard.tags.service import Asking, Caller, Operator
from steelyard.tags.states import (
    Change,
    Instance,
    Key,
    Kind,
    Outcome,
    State,
    Status,
    StillBeingCreated,
)
from steelyard.tags.store import Snapshot

USER, SYSTEM = DEFAULT_PREFIXES
# Few, so that calls meet; some look like others, or have to be encoded.
NAMES = ["a", "A ", "e\u0301_*~%+", "high", "low"]
MANY = [f"tag {number}" for number in range(MOST + 5)]
TOO_LONG = "\U0001f600" * 20
CLASHES = Clashes.parse(["high, low"])
FOREIGN = ["cyclades:user:a_b", "cyclades:user:/41", "cyclades:user:/ff", "other:a", "cyclades:"]
HERE = [Instance("1", "vm-1", "p", "u"), Instance("2", "vm-2", "q", "u")]
NEW = Instance("3", "vm-3", "p", "u")

Where = tuple[str, Key]
"""The id of an instance, and a tag of it."""

names = st.sampled_from([NAMES[0], NAMES[0], NAMES[0], *NAMES])
owners = st.sampled_from([Owner.USER, Owner.USER, Owner.USER, Owner.SYSTEM])
servers = st.sampled_from([HERE[0], HERE[0], HERE[0], HERE[0], HERE[1], NEW])
tags_by_hand = st.one_of(
    st.builds(encode, names, st.sampled_from([USER, USER, USER, SYSTEM])),
    st.builds(encode, names, st.just(USER)),
    st.sampled_from(FOREIGN),
)


class Crash(BaseException):
    """The process has gone."""


class Fault(enum.Enum):
    """What goes wrong with one submission, or comes between its steps."""

    REFUSED = enum.auto()
    REFUSED_AND_NOT_UNDONE = enum.auto()
    REFUSED_AND_CRASHED = enum.auto()
    CRASH_ONCE_UNDONE = enum.auto()
    UNKNOWN = enum.auto()
    UNKNOWN_AND_CRASHED = enum.auto()
    UNKNOWN_THOUGH_DONE = enum.auto()
    BROKEN_THOUGH_DONE = enum.auto()
    CRASH_BEFORE = enum.auto()
    CRASH_AFTER = enum.auto()
    NOT_RECORDED = enum.auto()
    CRASH_ONCE_RECORDED = enum.auto()
    OTHERS_BEFORE = enum.auto()
    TOLD_BEFORE_RECORDED = enum.auto()


# After these, rows stay as they were written, and nobody knows a number.
STOPPED = {
    Fault.REFUSED_AND_NOT_UNDONE,
    Fault.REFUSED_AND_CRASHED,
    Fault.CRASH_ONCE_UNDONE,
    Fault.UNKNOWN_AND_CRASHED,
    Fault.CRASH_BEFORE,
    Fault.CRASH_AFTER,
    Fault.CRASH_ONCE_RECORDED,
}
# After these, that holds for the one operation.
UNSURE = {
    Fault.UNKNOWN,
    Fault.UNKNOWN_THOUGH_DONE,
    Fault.BROKEN_THOUGH_DONE,
    Fault.NOT_RECORDED,
}
BEFORE: Mapping[Fault | None, BaseException] = {
    Fault.REFUSED: errors.BackendRefused("no"),
    Fault.REFUSED_AND_NOT_UNDONE: errors.BackendRefused("no"),
    Fault.REFUSED_AND_CRASHED: errors.BackendRefused("no"),
    Fault.CRASH_ONCE_UNDONE: errors.BackendRefused("no"),
    Fault.UNKNOWN: errors.OutcomeUnknown("no answer"),
    Fault.UNKNOWN_AND_CRASHED: errors.OutcomeUnknown("no answer"),
    Fault.CRASH_BEFORE: Crash(),
}
AFTER: Mapping[Fault | None, BaseException] = {
    Fault.UNKNOWN_THOUGH_DONE: errors.OutcomeUnknown("no answer"),
    Fault.BROKEN_THOUGH_DONE: RuntimeError("a bug"),
    Fault.CRASH_AFTER: Crash(),
}
UNDOING: Mapping[Fault | None, BaseException] = {
    Fault.REFUSED_AND_NOT_UNDONE: errors.ServiceError("the database has gone"),
    Fault.REFUSED_AND_CRASHED: Crash(),
    Fault.UNKNOWN_AND_CRASHED: Crash(),
}
# With one that is undone; others behind it are not.
UNDONE: Mapping[Fault | None, BaseException] = {Fault.CRASH_ONCE_UNDONE: Crash()}
between = [Fault.OTHERS_BEFORE, Fault.TOLD_BEFORE_RECORDED]
faults = st.one_of(
    st.just([]),
    st.lists(st.sampled_from([None, *Fault]), max_size=2),
    st.lists(st.sampled_from(between), min_size=1, max_size=2),
)


@dataclasses.dataclass
class Faults:
    """What is to go wrong with the submissions to come, and what does now."""

    to_come: list[Fault | None] = dataclasses.field(default_factory=list)
    now: Fault | None = None
    happened: list[Fault | None] = dataclasses.field(default_factory=list)

    def next(self) -> None:
        self.now = self.to_come.pop(0) if self.to_come else None
        self.happened.append(self.now)


class Backend(TagBackend):
    """Jobs that wait, in a memory; it fails as it is told, and keeps what it is asked for."""

    def __init__(self, faults: Faults) -> None:
        self.memory = MemoryBackend(patient=True)
        self.numbered: dict[int, Outcome] = {}
        """What there is to tell of each job if it succeeds."""
        self.others: Callable[[], None]
        self.tell: Callable[[], None]
        self.looked: Mapping[str, frozenset[str]] = {}
        self.looked_up_to = 0
        """What it has been seen to have, the last time."""
        self.others_after_a_look = False
        self.working = False
        """Whether it does a job whenever it is asked how things are."""
        self._ended: dict[int, Outcome] = {}
        self._faults = faults

    def identity(self) -> BackendIdentity:
        return self.memory.identity()

    def create(self, instance: str, tags: Sequence[str]) -> int:
        return self._asked(Kind.CREATE, instance, tags)

    def add(self, instance: str, tags: Sequence[str]) -> int:
        assert tags
        return self._asked(Kind.ADD, instance, tags)

    def delete(self, instance: str, tags: Sequence[str]) -> int:
        assert tags
        return self._asked(Kind.DELETE, instance, tags)

    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        self._work()
        return self.memory.jobs(numbers)

    def horizon(self) -> int:
        self._work()
        self.looked_up_to = self.memory.horizon()
        return self.looked_up_to

    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        self._work()
        found, up_to = self.memory.tags(instances), self.looked_up_to
        if self.others_after_a_look:
            self.others()  # they may look as well
        self.looked, self.looked_up_to = found, up_to
        return found

    def batches(self, instance: str, tags: Sequence[str]) -> list[Sequence[str]]:
        return [tags[start : start + 20] for start in range(0, len(tags), 20)]

    def by_hand(self, kind: Kind, instance: str, tags: Sequence[str]) -> int:
        """What is asked of the backend itself, past the service."""
        keys = set()
        for tag in tags:
            with contextlib.suppress(errors.InvalidTag):
                keys.add(decode(tag))
        number = getattr(self.memory, kind.value)(instance, tags)
        self.numbered[number] = Outcome(number, instance, kind, frozenset(keys), succeeded=True)
        return int(number)

    def over(self) -> dict[int, Outcome]:
        """What there is to tell of the jobs that have ended."""
        for number, status in self.jobs(self.numbered).items():
            if status in (JobStatus.SUCCEEDED, JobStatus.FAILED):
                succeeded = status is JobStatus.SUCCEEDED
                self._ended[number] = dataclasses.replace(
                    self.numbered[number], succeeded=succeeded
                )
        return self._ended

    def lose(self, number: int) -> None:
        """A job that is over, of which there is still to tell."""
        self.over()
        self.memory.lose(number)

    def _work(self) -> None:
        if self.working:
            self.memory.run(1)

    def _asked(self, kind: Kind, instance: str, tags: Sequence[str]) -> int:
        for tag in tags:
            prefix, name = decode(tag)
            assert encode(name, prefix) == tag
            assert tag.isascii()
        self._faults.next()
        fault = self._faults.now
        if fault is Fault.OTHERS_BEFORE:
            self.others()
        if fault in BEFORE:
            raise BEFORE[fault]
        number = self.by_hand(kind, instance, tags)
        if fault in AFTER:
            raise AFTER[fault]
        if fault is Fault.TOLD_BEFORE_RECORDED:
            self.others()
            self.tell()
        return number


class Store(TagStore):
    """Fails as it is told, and has every transaction watched."""

    def __init__(self, engine: sa.Engine, faults: Faults) -> None:
        super().__init__(engine)
        self.watch: Callable[..., contextlib.AbstractContextManager[None]]
        self.adopted: Callable[[Sequence[Instance]], None]
        self.settling = False
        self._faults = faults

    def register(self, instance: Instance, change: Change | None = None) -> None:
        with self.watch(instance.id):
            super().register(instance, change)

    def change(
        self,
        instance: str,
        decide: Callable[[State], tuple[Change, Any]],
        being: Instance | None = None,
    ) -> Any:
        self._fail(UNDOING)
        with self.watch(instance, by_a_call=not self.settling):
            answer = super().change(instance, decide, being)
        self._fail(UNDONE)
        return answer

    def change_named(self, name: str, decide: Callable[[State], Change]) -> bool:
        with self.watch(name.removeprefix("vm-"), by_a_call=False):
            return super().change_named(name, decide)

    def change_unchanged(self, changes: Sequence[tuple[Snapshot, Change]]) -> set[str]:
        with contextlib.ExitStack() as stack:
            for snapshot, _ in changes:
                watching = self.watch(snapshot.instance.id, by_a_call=False, alone=False)
                stack.enter_context(watching)
            missed = super().change_unchanged(changes)
            self.adopted(
                [snapshot.instance for snapshot, _ in changes if snapshot.instance.id not in missed]
            )
        return missed

    def record_job(self, operation: str, job: int) -> None:
        if self._faults.now is Fault.NOT_RECORDED:
            raise errors.ServiceError("the database has gone")
        super().record_job(operation, job)
        if self._faults.now is Fault.CRASH_ONCE_RECORDED:
            raise Crash

    def _fail(self, how: Mapping[Fault | None, BaseException]) -> None:
        failure = how.get(self._faults.now)
        if failure is not None:
            raise failure


class Service(TagService):
    """Has every outcome noted that it is told of."""

    note: Callable[[Outcome], None]

    def settle(self, outcome: Outcome, being: Instance | None = None) -> None:
        self.note(outcome)
        assert isinstance(self.store, Store)
        self.store.settling = True
        try:
            super().settle(outcome, being)
        finally:
            self.store.settling = False


class Tags(RuleBasedStateMachine):
    """Two projects and an operator, on three instances, at a backend that others use as well."""

    def __init__(self, engine: sa.Engine) -> None:
        super().__init__()
        with engine.begin() as connection:
            for table in reversed(model.metadata.sorted_tables):
                connection.execute(sa.delete(table))
        self.engine = engine
        self.faults = Faults()
        self.backend = Backend(self.faults)
        store = Store(engine, self.faults)
        store.record_backend(self.backend.identity())
        self.service = Service(store, self.backend, clashes=CLASHES)
        assert isinstance(self.service.store, Store)
        self.store = self.service.store
        self.store.watch = self.watched
        self.store.adopted = self.adopted
        self.service.note = self.noted
        self.backend.others = self.others_ask
        self.backend.tell = self.the_last_is_told_first
        self.between: list[Callable[[], object]] = []
        """What others do while a call is on its way to the backend."""
        self.known: dict[str, Instance] = {}
        self.changed: set[str] = set()
        """The instances whose rows may be others than after the step before."""
        self.prefix: str | None = None
        """Whose tags the call that is being made may touch."""
        self.names: set[str] = set()
        """All that anybody has ever called a tag."""
        self.notes = 0
        """How often the service has been told of a job, or has asked about one: calls do so too."""
        self.told: set[int] = set()
        """The jobs that the service has been told the outcome of."""
        self.latest: dict[Where, Outcome] = {}
        """The last job by tag that the service has been told has succeeded."""
        self.confirmed: set[Where] = set()
        """The tags that the backend has ever been known to have."""
        self.came_back: set[Where] = set()
        """The tags that are there without a call that has added them: they came back when their
        deletion failed, or somebody added them at the backend."""
        self.begun_after: dict[str, int] = {}
        """The last job that was over when an instance was registered again."""
        self.unknown: set[Where] = set()
        """The tags that were changed by an operation whose number nobody has written down: what
        is known of these may be wrong until they are reconciled."""

    @initialize()
    def there_are_instances(self) -> None:
        self.backend.memory.adopt({each.name: [] for each in HERE})
        for each in HERE:
            self.service.register(each)

    # What users and the system itself ask for

    @rule(name=names, server=servers, owner=owners, faults=faults)
    def add(self, name: str, server: Instance, owner: Owner, faults: list[Fault | None]) -> None:
        there = self.rows(server)
        notes = self.notes
        with self.call(server, owner, faults, [name]) as asking:
            new = self.service.add(asking, server.id, name)
            assert new is ((self.prefix, name) not in there) or self.notes > notes

    @rule(data=st.data(), server=servers, owner=owners, faults=faults)
    def delete(
        self, data: st.DataObject, server: Instance, owner: Owner, faults: list[Fault | None]
    ) -> None:
        there = self.rows(server)
        mine = sorted(name for prefix, name in there if prefix == DEFAULT_PREFIXES.of(owner))
        name = data.draw(st.sampled_from([*mine, NAMES[0]]))
        status = there.get((DEFAULT_PREFIXES.of(owner), name))
        notes = self.notes
        with self.call(server, owner, faults) as asking:
            try:
                self.service.delete(asking, server.id, name)
                assert status is Status.ACTIVE or self.notes > notes
            except errors.NotFound:
                assert status is None or self.notes > notes
            except StillBeingCreated:
                assert any(each.kind is Kind.CREATE for _, each in self.store.pending())
            except errors.Conflict:
                assert status is Status.PENDADD or self.notes > notes

    @rule(
        wanted=st.one_of(
            st.lists(names, max_size=4),
            st.sampled_from([MANY[:MOST], MANY[3 : MOST + 3], MANY[: MOST + 1], MANY[:19]]),
        ),
        server=servers,
        owner=owners,
        faults=faults,
    )
    def replace(
        self, wanted: list[str], server: Instance, owner: Owner, faults: list[Fault | None]
    ) -> None:
        with self.call(server, owner, faults, wanted) as asking:
            self.service.replace(asking, server.id, wanted)

    @rule(server=servers, owner=owners, faults=faults)
    def clear(self, server: Instance, owner: Owner, faults: list[Fault | None]) -> None:
        with self.call(server, owner, faults) as asking:
            self.service.clear(asking, server.id)

    @precondition(lambda self: NEW.id not in self.known)
    @rule(tags=st.lists(names, max_size=3), faults=faults)
    def create(self, tags: list[str], faults: list[Fault | None]) -> None:
        with self.call(NEW, Owner.USER, faults, tags):
            self.service.create(Caller(NEW.project, "u"), NEW.name, tags, NEW.id)

    @rule(
        name=names,
        malformed=st.sampled_from(["", "a/b", "a,b", "a\n", "a" * 61, "\ud800", " "]),
        server=servers,
        owner=owners,
    )
    def what_is_refused_changes_nothing(
        self, name: str, malformed: str, server: Instance, owner: Owner
    ) -> None:
        before, jobs = self.everything(), len(self.backend.numbered)
        stranger, asking = Caller("stranger", "u", owner), Caller(HERE[0].project, "u", owner)
        strange_asks: list[Callable[[], object]] = [
            lambda: self.service.add(stranger, server.id, name),
            lambda: self.service.delete(stranger, server.id, name),
            lambda: self.service.replace(stranger, server.id, [name]),
            lambda: self.service.clear(stranger, server.id),
            lambda: self.service.tags(stranger, server.id),
            lambda: self.service.status(stranger, server.id, name),
        ]
        for ask in strange_asks:
            with pytest.raises(errors.NotFound, match="no instance"):
                ask()
        malformed_asks: list[Callable[[], object]] = [
            lambda: self.service.add(asking, HERE[0].id, malformed),
            lambda: self.service.replace(asking, HERE[0].id, ["b", malformed]),
            lambda: self.service.create(asking, "vm-4", ["b", malformed]),
            lambda: self.service.create(asking, "vm-4", [TOO_LONG]),
        ]
        for ask in malformed_asks:
            with pytest.raises(errors.InvalidTag):
                ask()
        assert (self.everything(), len(self.backend.numbered)) == (before, jobs)

    @rule()
    def one_is_forgotten_and_another_has_its_name(self) -> None:
        """What was done before is nothing to it, however late it is told; what is there shows."""
        server = HERE[1]
        self.store.forget(server.id)
        self.service.register(server)
        self.begun_after[server.id] = self.store.state(server.id).horizon
        self.latest = {where: each for where, each in self.latest.items() if where[0] != server.id}
        self.unknown |= {
            (server.id, (prefix, name)) for prefix in DEFAULT_PREFIXES for name in self.names
        }
        self.changed.add(server.id)

    @rule()
    def another_is_going_to_reconcile(self) -> None:
        """After somebody has looked at the backend, and before that is written."""
        self.between.append(lambda: self.reconcile(give_up_after=3600.0))

    @rule(name=names, kind=st.sampled_from([Kind.ADD, Kind.DELETE]), by_hand=st.booleans())
    def others_are_going_to_ask(self, name: str, kind: Kind, by_hand: bool) -> None:
        """Between the steps of a call to come, which names the same tag perhaps."""
        if by_hand:
            self.between.append(
                lambda: self.backend.by_hand(kind, HERE[0].name, [encode(name, USER)])
            )
        else:
            asking = Operator(Owner.USER)
            self.between.append(lambda: getattr(self.service, kind.value)(asking, HERE[0].id, name))

    # What the backend does

    @rule(most=st.integers(1, 3))
    def some_jobs_are_done(self, most: int) -> None:
        self.backend.memory.run(most)

    @precondition(lambda self: self.backend.over())
    @rule(data=st.data())
    def nothing_more_is_known_of_a_job(self, data: st.DataObject) -> None:
        self.backend.lose(data.draw(st.sampled_from(sorted(self.backend.over()))))

    @precondition(lambda self: self.under_way())
    @rule(data=st.data())
    def a_job_fails(self, data: st.DataObject) -> None:
        self.backend.memory.fail(data.draw(st.sampled_from(self.under_way())))

    @rule(
        tags=st.lists(tags_by_hand, min_size=1, max_size=2, unique=True),
        kind=st.sampled_from([Kind.ADD, Kind.DELETE]),
        server=st.sampled_from(HERE),
    )
    def somebody_changes_it_by_hand(self, tags: list[str], kind: Kind, server: Instance) -> None:
        number = self.backend.by_hand(kind, server.name, tags)
        self.names |= {name for _, name in self.backend.numbered[number].keys}

    # What the service is told

    @precondition(lambda self: self.backend.over())
    @rule(data=st.data())
    def it_is_told_of_a_job(self, data: st.DataObject) -> None:
        """Any that is over: late, in another order, and again."""
        self.service.settle(data.draw(st.sampled_from(list(self.backend.over().values()))))

    @rule()
    def it_asks_about_jobs(self) -> None:
        self.service.poll()

    @rule(give_up_after=st.sampled_from([0.0, 3600.0]), others=st.booleans(), working=st.booleans())
    def it_is_reconciled(self, give_up_after: float, others: bool, working: bool) -> None:
        """While jobs are done, and perhaps others change what has been looked at."""
        before = self.confirmed_and_there()
        self.backend.others_after_a_look, self.backend.working = others, working
        self.reconcile(give_up_after)
        self.backend.others_after_a_look, self.backend.working = False, False
        if not working:
            self.check_nothing_confirmed_is_lost(before)

    @rule(
        shuffle=st.randoms(use_true_random=False).map(lambda random: random.shuffle),
        reconciled=st.booleans(),
    )
    def all_is_told_at_last(
        self, shuffle: Callable[[list[Outcome]], object], reconciled: bool
    ) -> None:
        self.backend.memory.run()
        self.all_is_told(shuffle)
        # What it was told before it knew the number has perhaps said nothing.
        self.service.poll()
        for server in self.store.instances():
            self.check_agreement(server)
        if reconciled:
            self.reconcile_at_last()

    def reconcile_at_last(self) -> None:
        """Once the backend is quiet: both agree about everything, and there is nothing to do."""
        self.reconcile(give_up_after=0.0)
        self.unknown.clear()
        for server in self.store.instances():
            self.check_agreement(server)
            assert self.store.state(server.id).operations == ()
        there = self.everything(), self.store.snapshots(10)
        for plan in self.reconcile(give_up_after=0.0):
            assert plan.change == Change()
            assert {step.action for step in plan.steps} <= {Action.LEFT}
        assert (self.everything(), self.store.snapshots(10)) == there

    # What holds

    @invariant()
    def everything_holds(self) -> None:
        """Where anything has changed since the step before."""
        if self.changed:
            self.known = {each.id: each for each in self.store.instances()}
        for server in [self.known[each] for each in sorted(self.changed & self.known.keys())]:
            state = self.store.state(server.id)
            self.unknown |= {
                (server.id, key)
                for each in state.operations
                if each.job is None
                for key in each.keys
            }
            self.no_call_has_added_more_than_the_limit(server, state)
            self.what_is_being_added_is_waiting_for_an_operation(state)
            self.what_is_active_has_been_seen_at_the_backend(server, state)
            self.what_nothing_is_under_way_for_is_as_it_was_seen_last(server, state)
            self.what_is_going_to_be_deleted_is_not_there(server, state)
            self.names_are_as_they_were_given(state)
        self.changed.clear()

    def no_call_has_added_more_than_the_limit(self, server: Instance, state: State) -> None:
        """What came back and what was added by hand is beside that."""
        mine = {(server.id, key) for key in state.tags if key[0] == USER}
        assert len(mine - self.came_back) <= MOST

    def what_is_being_added_is_waiting_for_an_operation(self, state: State) -> None:
        """One that adds it. After a crash it may wait for ever, until it is reconciled."""
        adding = {key for each in state.operations if each.kind.adds for key in each.keys}
        for key, status in state.tags.items():
            assert status is Status.ACTIVE or key in adding

    def what_is_active_has_been_seen_at_the_backend(self, server: Instance, state: State) -> None:
        for key, status in state.tags.items():
            assert status is Status.PENDADD or (server.id, key) in self.confirmed

    def what_nothing_is_under_way_for_is_as_it_was_seen_last(
        self, server: Instance, state: State
    ) -> None:
        """So no older outcome brings back what has been deleted, or takes away what is there."""
        pending = {key for each in state.operations for key in each.keys}
        seen = {key: each for (id_, key), each in self.latest.items() if id_ == server.id}
        for key in (seen.keys() | state.tags.keys()) - pending:
            there = key in seen and seen[key].kind.adds
            assert state.tags.get(key) is (Status.ACTIVE if there else None)

    def what_is_going_to_be_deleted_is_not_there(self, server: Instance, state: State) -> None:
        """Whatever is told of what the backend has done before that."""
        for key in {key for each in state.operations for key in each.keys}:
            pending = [each for each in state.operations if key in each.keys]
            latest = self.latest.get((server.id, key))
            jobs = {each.job or 0: each for each in pending}
            if 0 not in jobs and max(jobs) > (latest.job if latest else 0):
                assert jobs[max(jobs)].kind.adds or key not in state.tags

    def names_are_as_they_were_given(self, state: State) -> None:
        for prefix, name in state.tags:
            assert name in self.names
            assert prefix in (USER, SYSTEM)

    def teardown(self) -> None:
        self.all_is_told_at_last(list, reconciled=True)

    # How all that is done and seen

    def reconcile(self, give_up_after: float) -> list[Plan]:
        work = Reconciliation(self.store, self.backend, DEFAULT_PREFIXES, give_up_after)
        return [plan for plans in work.carried_out() for plan in plans]

    def confirmed_and_there(self) -> set[Where]:
        """What is known here to be at the backend, and is."""
        return {
            (server.id, key)
            for server in self.store.instances()
            for key, status in self.store.state(server.id).tags.items()
            if status is Status.ACTIVE
            and encode(key[1], key[0]) in self.backend.memory.tags([server.name])[server.name]
        }

    def check_nothing_confirmed_is_lost(self, before: set[Where]) -> None:
        """But for what somebody has deleted meanwhile, with an operation that tells of it."""
        deleting = {
            (server.id, key)
            for server, each in self.store.pending()
            for key in each.keys
            if not each.kind.adds
        }
        assert before - deleting <= self.everything().keys()

    def the_last_is_told_first(self) -> None:
        self.backend.memory.run()
        self.all_is_told(list.reverse)

    def all_is_told(self, shuffle: Callable[[list[Outcome]], object] = list) -> None:
        missing = [each for job, each in self.backend.over().items() if job not in self.told]
        shuffle(missing)
        for outcome in missing:
            self.service.settle(outcome)

    def check_agreement(self, server: Instance) -> None:
        """Once all jobs are over and told of, the database has what the backend has."""
        state = self.store.state(server.id)
        there = set()
        for tag in self.backend.tags([server.name]).get(server.name, ()):
            with contextlib.suppress(errors.InvalidTag):
                there.add(decode(tag))
        for each in state.operations:
            assert each.job is None
            assert self.unknown.issuperset((server.id, key) for key in each.keys)
        known = {key for key in there.union(state.tags) if (server.id, key) not in self.unknown}
        assert dict.fromkeys(known & there, Status.ACTIVE) == {
            key: status for key, status in state.tags.items() if key in known
        }

    @contextlib.contextmanager
    def call(
        self,
        server: Instance,
        owner: Owner,
        faults: Iterable[Fault | None] = (),
        names: Iterable[str] = (),
    ) -> Iterator[Asking]:
        """A call of the instance's project, or of the operator; it may fail as it may."""
        self.names |= set(names)
        self.prefix = DEFAULT_PREFIXES.of(owner)
        self.faults.to_come, self.faults.happened = list(faults), []
        before = self.without_number()
        try:
            yield Caller(server.project, "u") if owner is Owner.USER else Operator(owner)
        except (errors.BadRequest, errors.NotFound, errors.Conflict, errors.ServiceError, Crash):
            pass
        finally:
            self.faults.to_come, self.faults.now, self.prefix = [], None, None
        if not STOPPED.intersection(self.faults.happened):
            unsure = [fault for fault in self.faults.happened if fault in UNSURE]
            assert len(self.without_number() - before) <= len(unsure)

    def without_number(self) -> set[str]:
        """The operations of which nobody knows more than that they have been begun."""
        return {each.id for _, each in self.store.pending() if each.job is None}

    def others_ask(self) -> None:
        faults, prefix = dataclasses.replace(self.faults), self.prefix
        asks, self.between = self.between, []
        for ask in asks:
            with self.call(HERE[0], Owner.USER, (), NAMES):
                ask()
        self.prefix = prefix
        vars(self.faults).update(vars(faults))

    def adopted(self, servers: Sequence[Instance]) -> None:
        """What the backend has is known to be there now, and nothing else is."""
        for server in servers:
            there = set()
            for tag in self.backend.looked.get(server.name, ()):
                with contextlib.suppress(errors.InvalidTag):
                    there.add(decode(tag))
            seen = {key for id_, key in self.latest if id_ == server.id}
            horizon = self.backend.looked_up_to
            for key in there | seen:
                before = self.latest.get((server.id, key))
                self.latest[server.id, key] = Outcome(
                    max(horizon, before.job if before else 0),
                    server.name,
                    Kind.ADD if key in there else Kind.DELETE,
                    frozenset([key]),
                    succeeded=True,
                )
            self.confirmed |= {(server.id, key) for key in there}

    @contextlib.contextmanager
    def watched(self, server: str, *, by_a_call: bool = True, alone: bool = True) -> Iterator[None]:
        """A transaction: it touches what it may, and whatever it adds has room."""
        self.changed.add(server)
        before = self.everything()
        yield
        after = self.everything()
        for each, key in before.keys() ^ after.keys():
            assert each == server or not alone
            assert not by_a_call or self.prefix == key[0]
        added = set(after.keys() - before.keys())
        calls = {where for where in added if after[where] is Status.PENDADD}
        self.came_back = (self.came_back & after.keys()) | (added - calls)
        counts = collections.Counter((each, prefix) for each, (prefix, _) in after)
        for each, (prefix, _) in calls:
            assert prefix != USER or counts[each, prefix] <= MOST

    def noted(self, outcome: Outcome) -> None:
        self.notes += 1
        self.told.add(outcome.job)
        server = outcome.instance.removeprefix("vm-")
        if not outcome.succeeded or outcome.job <= self.begun_after.get(server, 0):
            return
        for where in ((server, key) for key in outcome.keys):
            if where not in self.latest or self.latest[where].job < outcome.job:
                self.latest[where] = outcome
            if outcome.kind.adds:
                self.confirmed.add(where)

    def under_way(self) -> list[int]:
        return sorted(self.backend.numbered.keys() - self.backend.over().keys())

    def rows(self, server: Instance) -> Mapping[Key, Status]:
        return {key: status for (id_, key), status in self.everything().items() if id_ == server.id}

    def everything(self) -> dict[Where, Status]:
        found = sa.select(model.instances.c.id, model.tags).join(
            model.tags, model.tags.c.instance_id == model.instances.c.number
        )
        with self.engine.connect() as connection:
            return {
                (row.id, (row.prefix, row.name)): Status(row.status)
                for row in connection.execute(found)
            }


@pytest.fixture
def engine(tmp_path: Any) -> Iterator[sa.Engine]:
    engine = sa.create_engine(f"sqlite:///{tmp_path}/tags.db", poolclass=sa.StaticPool)
    TagStore(engine).upgrade()
    yield engine
    engine.dispose()


def test_tags(engine: sa.Engine) -> None:
    machine: Any = functools.partial(Tags, engine)
    # The same examples in each run; a longer hunt for others is for a person to begin.
    found = hypothesis.settings(max_examples=50, stateful_step_count=50, derandomize=True)
    run_state_machine_as_test(machine, settings=found)


Ask = Callable[[TagService, Asking], object]

# How often each asks the backend, which takes 20 tags at once, where there are the first 30.
ASKS: Sequence[tuple[int, Instance, Ask]] = [
    (1, HERE[0], lambda service, asking: service.add(asking, HERE[0].id, NAMES[0])),
    (1, HERE[0], lambda service, asking: service.delete(asking, HERE[0].id, MANY[0])),
    (2, HERE[0], lambda service, asking: service.clear(asking, HERE[0].id)),
    (3, HERE[0], lambda service, asking: service.replace(asking, HERE[0].id, MANY[20:55])),
    (1, NEW, lambda service, _: service.create(Caller("p", "u"), NEW.name, ["b"], NEW.id)),
]


def asked(machine: Tags, server: Instance, ask: Ask, faults: Iterable[Fault | None] = ()) -> None:
    with machine.call(server, Owner.USER, faults, [NAMES[0], "b", *MANY]) as asking:
        ask(machine.service, asking)
    machine.everything_holds()


def reconciled(machine: Tags, *_: object) -> None:
    machine.it_is_reconciled(give_up_after=0.0, others=False, working=False)
    machine.everything_holds()


# What comes next: nothing but outcomes, the same call, or somebody who looks what has come of it.
NEXT: Sequence[Callable[[Tags, Instance, Ask], None]] = [
    lambda machine, server, ask: None,
    asked,
    reconciled,
]


@pytest.mark.parametrize("fault", Fault)
def test_whatever_goes_wrong_at_whichever_step(engine: sa.Engine, fault: Fault) -> None:
    """Of every call; chance finds the rare ones seldom."""
    for often, server, ask in ASKS:
        for before in range(often):
            for follow in NEXT:
                machine = Tags(engine)
                machine.there_are_instances()
                asked(machine, HERE[0], lambda to, who: to.replace(who, HERE[0].id, MANY[:30]))
                machine.all_is_told_at_last(list, reconciled=False)
                machine.everything_holds()
                asked(machine, server, ask, [None] * before + [fault])
                assert machine.faults.happened[before] is fault
                # Of what nobody knows it stays under way until somebody does.
                assert fault not in UNSURE or machine.without_number()
                follow(machine, server, ask)
                machine.all_is_told_at_last(list.reverse, reconciled=False)
                machine.everything_holds()
                machine.teardown()
