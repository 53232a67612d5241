"""Random calls of two projects and an operator, and the invariants of tags after each step."""

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pytest
import sqlalchemy as sa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from steelyard import errors
from steelyard.tags import decode, encode
from steelyard.tags.codec import Tag
from steelyard.tags.database import model
from steelyard.tags.names import DEFAULT_PREFIXES, MOST, Clashes, Owner
from steelyard.tags.plans import Plan, PlanAction
from steelyard.tags.reconciliation import Reconciliation
from steelyard.tags.service import Asking, Caller, Operator
from steelyard.tags.states.requests import StillBeingCreated
from steelyard.tags.states.values import Instance, Kind, Outcome, State, StateChange, Status
from support.tags.failing_service import (
    STOPPED,
    UNSURE,
    Backend,
    Crash,
    Fault,
    Faults,
    Service,
    Store,
    Tracker,
)

USER, SYSTEM = DEFAULT_PREFIXES
# Few names, so that calls conflict; some look alike, or need encoding.
NAMES = ["a", "A ", "e\u0301_*~%+", "high", "low"]
MANY = [f"tag {number}" for number in range(MOST + 5)]
TOO_LONG = "\U0001f600" * 20
CLASHES = Clashes.parse(["high, low"])
FOREIGN = ["cyclades:user:a_b", "cyclades:user:/41", "cyclades:user:/ff", "other:a", "cyclades:"]
HERE = [Instance("1", "vm-1", "p", "u"), Instance("2", "vm-2", "q", "u")]
NEW = Instance("3", "vm-3", "p", "u")

Where = tuple[str, Tag]
"""The id of an instance, and one of its tags."""

names = st.sampled_from([NAMES[0], NAMES[0], NAMES[0], *NAMES])
owners = st.sampled_from([Owner.USER, Owner.USER, Owner.USER, Owner.SYSTEM])
servers = st.sampled_from([HERE[0], HERE[0], HERE[0], HERE[0], HERE[1], NEW])
tags_by_hand = st.one_of(
    st.builds(encode, names, st.sampled_from([USER, USER, USER, SYSTEM])),
    st.builds(encode, names, st.just(USER)),
    st.sampled_from(FOREIGN),
)
between = [Fault.CONCURRENT_CALLS_BEFORE, Fault.OUTCOME_BEFORE_RECORD]
faults = st.one_of(
    st.just([]),
    st.lists(st.sampled_from([None, *Fault]), max_size=2),
    st.lists(st.sampled_from(between), min_size=1, max_size=2),
)


class Tags(RuleBasedStateMachine):
    """Two projects and an operator with three instances, at a backend that others use, too."""

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
        tracker = Tracker(self.store, self.backend)
        tracker.note = self.noted
        self.service.jobs = tracker
        self.backend.others = self.run_concurrent_calls
        self.backend.tell = self.deliver_in_reverse
        self.between: list[Callable[[], object]] = []
        """The concurrent calls to run while a request is sent to the backend."""
        self.known: dict[str, Instance] = {}
        self.changed: set[str] = set()
        """The ids of the instances that may have changed since the last step."""
        self.prefix: str | None = None
        """The prefix of the tags that the current call may change."""
        self.names: set[str] = set()
        """All names of tags that were ever used."""
        self.notes = 0
        """The number of outcomes that the service has applied; calls poll for some, too."""
        self.told: set[int] = set()
        """The jobs whose outcomes the service has applied."""
        self.latest: dict[Where, Outcome] = {}
        """The last job of each tag that the service knows to have succeeded."""
        self.confirmed: set[Where] = set()
        """The tags that the backend was ever known to have."""
        self.came_back: set[Where] = set()
        """The tags that no call added: their deletion failed, or they were added by hand."""
        self.begun_after: dict[str, int] = {}
        """The last finished job when an instance was registered again, by the instance's id."""
        self.unknown: set[Where] = set()
        """The tags of operations whose jobs were not recorded. Their recorded status may be wrong
        until they are reconciled."""

    @initialize()
    def register_instances(self) -> None:
        self.backend.memory.adopt({each.name: [] for each in HERE})
        for each in HERE:
            self.service.register(each)

    # Calls of users and of the system

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
        status = there.get(Tag(DEFAULT_PREFIXES.of(owner), name))
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
    def rejected_requests_change_nothing(
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
    def register_another_instance_of_the_name(self) -> None:
        """Replace an instance by a new one, which earlier jobs must not change."""
        server = HERE[1]
        self.store.forget(server.id)
        self.service.register(server)
        self.begun_after[server.id] = self.store.state(server.id).horizon
        self.latest = {where: each for where, each in self.latest.items() if where[0] != server.id}
        self.unknown |= {
            (server.id, Tag(prefix, name)) for prefix in DEFAULT_PREFIXES for name in self.names
        }
        self.changed.add(server.id)

    @rule()
    def schedule_concurrent_reconciliation(self) -> None:
        """Schedule a reconciliation between the reads and the writes of another one."""
        self.between.append(lambda: self.reconcile(give_up_after=3600.0))

    @rule(name=names, kind=st.sampled_from([Kind.ADD, Kind.DELETE]), by_hand=st.booleans())
    def schedule_concurrent_change(self, name: str, kind: Kind, by_hand: bool) -> None:
        """Schedule a change between the steps of the next call, perhaps of the same tag."""
        if by_hand:
            self.between.append(
                lambda: self.backend.by_hand(kind, HERE[0].name, [encode(name, USER)])
            )
        else:
            asking = Operator(Owner.USER)
            self.between.append(lambda: getattr(self.service, kind.value)(asking, HERE[0].id, name))

    # Jobs of the backend

    @rule(most=st.integers(1, 3))
    def run_jobs(self, most: int) -> None:
        self.backend.memory.run(most)

    @precondition(lambda self: self.backend.over())
    @rule(data=st.data())
    def lose_job(self, data: st.DataObject) -> None:
        self.backend.lose(data.draw(st.sampled_from(sorted(self.backend.over()))))

    @precondition(lambda self: self.unfinished_jobs())
    @rule(data=st.data())
    def fail_job(self, data: st.DataObject) -> None:
        self.backend.memory.fail(data.draw(st.sampled_from(self.unfinished_jobs())))

    @rule(
        tags=st.lists(tags_by_hand, min_size=1, max_size=2, unique=True),
        kind=st.sampled_from([Kind.ADD, Kind.DELETE]),
        server=st.sampled_from(HERE),
    )
    def change_tags_by_hand(self, tags: list[str], kind: Kind, server: Instance) -> None:
        number = self.backend.by_hand(kind, server.name, tags)
        self.names |= {name for _, name in self.backend.numbered[number].tags}

    # Outcomes, polls and reconciliations

    @precondition(lambda self: self.backend.over())
    @rule(data=st.data())
    def deliver_outcome(self, data: st.DataObject) -> None:
        """Deliver any outcome: late, out of order, or repeatedly."""
        self.service.jobs.apply(data.draw(st.sampled_from(list(self.backend.over().values()))))

    @rule()
    def poll_jobs(self) -> None:
        self.service.jobs.poll()

    @rule(give_up_after=st.sampled_from([0.0, 3600.0]), others=st.booleans(), working=st.booleans())
    def reconcile_all(self, give_up_after: float, others: bool, working: bool) -> None:
        """Reconcile all instances while jobs run, and perhaps others change the tags."""
        before = self.confirmed_and_present()
        self.backend.others_after_reading, self.backend.working = others, working
        self.reconcile(give_up_after)
        self.backend.others_after_reading, self.backend.working = False, False
        if not working:
            self.check_nothing_confirmed_is_lost(before)

    @rule(
        shuffle=st.randoms(use_true_random=False).map(lambda random: random.shuffle),
        reconciled=st.booleans(),
    )
    def finish_all_jobs(self, shuffle: Callable[[list[Outcome]], object], reconciled: bool) -> None:
        self.backend.memory.run()
        self.deliver_all(shuffle)
        # An outcome may have been ignored because its job was not recorded yet.
        self.service.jobs.poll()
        for server in self.store.instances():
            self.check_agreement(server)
        if reconciled:
            self.check_reconciliation_is_final()

    def check_reconciliation_is_final(self) -> None:
        """Check that the second reconciliation of an idle backend changes nothing."""
        self.reconcile(give_up_after=0.0)
        self.unknown.clear()
        for server in self.store.instances():
            self.check_agreement(server)
            assert self.store.state(server.id).operations == ()
        there = self.everything(), self.store.snapshots(10)
        for plan in self.reconcile(give_up_after=0.0):
            assert plan.change == StateChange()
            assert {step.action for step in plan.steps} <= {PlanAction.LEFT}
        assert (self.everything(), self.store.snapshots(10)) == there

    # Invariants

    @invariant()
    def check_changed_instances(self) -> None:
        """Check the invariants of the instances that have changed since the last step."""
        if self.changed:
            self.known = {each.id: each for each in self.store.instances()}
        for server in [self.known[each] for each in sorted(self.changed & self.known.keys())]:
            state = self.store.state(server.id)
            self.unknown |= {
                (server.id, key)
                for each in state.operations
                if each.job is None
                for key in each.tags
            }
            self.check_calls_respect_the_limit(server, state)
            self.check_pending_tags_have_operations(state)
            self.check_active_tags_were_seen_at_the_backend(server, state)
            self.check_tags_without_operations_are_as_last_seen(server, state)
            self.check_tags_to_be_deleted_are_missing(server, state)
            self.check_names_are_unchanged(state)
        self.changed.clear()

    def check_calls_respect_the_limit(self, server: Instance, state: State) -> None:
        """Check the limit for the tags that calls added; restored ones do not count."""
        mine = {(server.id, key) for key in state.tags if key[0] == USER}
        assert len(mine - self.came_back) <= MOST

    def check_pending_tags_have_operations(self, state: State) -> None:
        """Check that an operation adds each PENDADD tag; after a crash, it may never finish."""
        adding = {key for each in state.operations if each.kind.adds for key in each.tags}
        for key, status in state.tags.items():
            assert status is Status.ACTIVE or key in adding

    def check_active_tags_were_seen_at_the_backend(self, server: Instance, state: State) -> None:
        for key, status in state.tags.items():
            assert status is Status.PENDADD or (server.id, key) in self.confirmed

    def check_tags_without_operations_are_as_last_seen(
        self, server: Instance, state: State
    ) -> None:
        """Check that no earlier outcome restores a deleted tag, or removes a present one."""
        pending = {key for each in state.operations for key in each.tags}
        seen = {key: each for (id_, key), each in self.latest.items() if id_ == server.id}
        for key in (seen.keys() | state.tags.keys()) - pending:
            there = key in seen and seen[key].kind.adds
            assert state.tags.get(key) is (Status.ACTIVE if there else None)

    def check_tags_to_be_deleted_are_missing(self, server: Instance, state: State) -> None:
        """Check this against all outcomes of earlier jobs."""
        for key in {key for each in state.operations for key in each.tags}:
            pending = [each for each in state.operations if key in each.tags]
            latest = self.latest.get((server.id, key))
            jobs = {each.job or 0: each for each in pending}
            if 0 not in jobs and max(jobs) > (latest.job if latest else 0):
                assert jobs[max(jobs)].kind.adds or key not in state.tags

    def check_names_are_unchanged(self, state: State) -> None:
        for prefix, name in state.tags:
            assert name in self.names
            assert prefix in (USER, SYSTEM)

    def teardown(self) -> None:
        self.finish_all_jobs(list, reconciled=True)

    # Helpers

    def reconcile(self, give_up_after: float) -> list[Plan]:
        work = Reconciliation(self.store, self.backend, DEFAULT_PREFIXES, give_up_after)
        return [plan for plans in work.applied() for plan in plans]

    def confirmed_and_present(self) -> set[Where]:
        """Return the ACTIVE tags that the backend has."""
        return {
            (server.id, key)
            for server in self.store.instances()
            for key, status in self.store.state(server.id).tags.items()
            if status is Status.ACTIVE
            and encode(key[1], key[0]) in self.backend.memory.tags([server.name])[server.name]
        }

    def check_nothing_confirmed_is_lost(self, before: set[Where]) -> None:
        """Check that only tags with a pending deletion are missing."""
        deleting = {
            (server.id, key)
            for server, each in self.store.pending()
            for key in each.tags
            if not each.kind.adds
        }
        assert before - deleting <= self.everything().keys()

    def deliver_in_reverse(self) -> None:
        self.backend.memory.run()
        self.deliver_all(list.reverse)

    def deliver_all(self, shuffle: Callable[[list[Outcome]], object] = list) -> None:
        missing = [each for job, each in self.backend.over().items() if job not in self.told]
        shuffle(missing)
        for outcome in missing:
            self.service.jobs.apply(outcome)

    def check_agreement(self, server: Instance) -> None:
        """Check, after all outcomes, that the database has the tags of the backend."""
        state = self.store.state(server.id)
        there = set()
        for tag in self.backend.tags([server.name]).get(server.name, ()):
            with contextlib.suppress(errors.InvalidTag):
                there.add(decode(tag))
        for each in state.operations:
            assert each.job is None
            assert self.unknown.issuperset((server.id, key) for key in each.tags)
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
        """Call as the instance's project or as the operator, and ignore expected failures."""
        self.names |= set(names)
        self.prefix = DEFAULT_PREFIXES.of(owner)
        self.faults.to_come, self.faults.happened = list(faults), []
        before = self.without_job()
        try:
            yield Caller(server.project, "u") if owner is Owner.USER else Operator(owner)
        except (errors.BadRequest, errors.NotFound, errors.Conflict, errors.ServiceError, Crash):
            pass
        finally:
            self.faults.to_come, self.faults.now, self.prefix = [], None, None
        if not STOPPED.intersection(self.faults.happened):
            unsure = [fault for fault in self.faults.happened if fault in UNSURE]
            assert len(self.without_job() - before) <= len(unsure)

    def without_job(self) -> set[str]:
        """Return the ids of the pending operations without a recorded job."""
        return {each.id for _, each in self.store.pending() if each.job is None}

    def run_concurrent_calls(self) -> None:
        faults, prefix = dataclasses.replace(self.faults), self.prefix
        asks, self.between = self.between, []
        for ask in asks:
            with self.call(HERE[0], Owner.USER, (), NAMES):
                ask()
        self.prefix = prefix
        vars(self.faults).update(vars(faults))

    def adopted(self, servers: Sequence[Instance]) -> None:
        """Record that the service knows the tags of the backend, and no others."""
        for server in servers:
            there = set()
            for tag in self.backend.last_read.get(server.name, ()):
                with contextlib.suppress(errors.InvalidTag):
                    there.add(decode(tag))
            seen = {key for id_, key in self.latest if id_ == server.id}
            horizon = self.backend.read_up_to
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
        """Check that a transaction changes only permitted tags, within the limit."""
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
        for where in ((server, key) for key in outcome.tags):
            if where not in self.latest or self.latest[where].job < outcome.job:
                self.latest[where] = outcome
            if outcome.kind.adds:
                self.confirmed.add(where)

    def unfinished_jobs(self) -> list[int]:
        return sorted(self.backend.numbered.keys() - self.backend.over().keys())

    def rows(self, server: Instance) -> Mapping[Tag, Status]:
        return {key: status for (id_, key), status in self.everything().items() if id_ == server.id}

    def everything(self) -> dict[Where, Status]:
        found = sa.select(model.instances.c.id, model.tags).join(
            model.tags, model.tags.c.instance_id == model.instances.c.number
        )
        with self.engine.connect() as connection:
            return {
                (row.id, Tag(row.prefix, row.name)): Status(row.status)
                for row in connection.execute(found)
            }
