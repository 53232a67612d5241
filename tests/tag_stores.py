"""What holds for a store of tags on every database."""

import concurrent.futures
import contextlib
import functools
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import alembic.command
import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.errors import BadRequest, Conflict, InvalidTag, NotFound, WrongBackend
from steelyard.tags import TagService, TagStore, model
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import encode
from steelyard.tags.model import metadata
from steelyard.tags.names import LONGEST, MOST, Clashes, Owner
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states import (
    Change,
    Instance,
    Key,
    Kind,
    Mark,
    Operation,
    Outcome,
    State,
    Status,
)

CALLER = Caller("p", "u")
USER = "cyclades:user:"
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD

# Whoever folds case, accents, width, spaces or normal forms takes some of them for the same.
ALIKE = [
    *(
        "a",
        "A",
        "á",
        unicodedata.normalize("NFD", "á"),
        "à",
        "\uff41",
        "a ",
        "a  ",
        " a",
        "a\u00a0",
    ),
    *("a\u200b", "\u0430", "ß", "ss", "SS", "ẞ", "i", "I", "\u0131", "İ", "ﬁ", "fi", "Å", "\u212b"),
    *("🎉", "🎊", "가", unicodedata.normalize("NFD", "가"), "a%", "a_", "a\\", "a'", 'a"'),
]


def made(store: TagStore, *servers: str) -> tuple[TagService, MemoryBackend]:
    """A service over the store, whose backend has these instances."""
    backend = MemoryBackend(patient=True)
    service = TagService(store, backend, clashes=Clashes.parse(["fast, safe"]))
    for server in servers:
        service.register(Instance(server, f"{server}.example.org", "p", "u"))
    backend.adopt({f"{server}.example.org": () for server in servers})
    return service, backend


def done(service: TagService, backend: MemoryBackend) -> None:
    """The backend does what it was asked, and the service hears of it."""
    backend.run()
    service.poll()


def put(store: TagStore, server: str, **tags: Status) -> None:
    change = Change({(USER, name): status for name, status in tags.items()})
    store.change(server, lambda state: (change, None))


def ours(name: str) -> str:
    return encode(name, USER)


@contextlib.contextmanager
def statements() -> Iterator[list[str]]:
    """What the databases are asked meanwhile."""
    seen = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
            seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


def check_operations(store: TagStore) -> None:
    service, backend = made(store, "s1", "s2")
    assert service.add(CALLER, "s1", "red") is True
    assert service.add(CALLER, "s1", "red") is False
    assert service.status(CALLER, "s1", "red") is PENDADD
    with pytest.raises(Conflict, match="'red' is still being added"):
        service.delete(CALLER, "s1", "red")
    done(service, backend)
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert service.replace(CALLER, "s1", ["red", "blue", "blue"]) == {
        "red": ACTIVE,
        "blue": PENDADD,
    }
    assert service.replace(CALLER, "s1", ["green"]) == {"blue": PENDADD, "green": PENDADD}
    done(service, backend)
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE, "green": ACTIVE}
    service.delete(CALLER, "s1", "blue")
    with pytest.raises(NotFound, match="no tag 'blue'"):
        service.status(CALLER, "s1", "blue")
    service.add(CALLER, "s1", "late")
    service.clear(CALLER, "s1")
    assert service.tags(CALLER, "s1") == {"late": PENDADD}
    done(service, backend)
    assert service.tags(CALLER, "s1") == {"late": ACTIVE}
    assert backend.tags(["s1.example.org"]) == {"s1.example.org": {USER + "late"}}
    assert service.tags(CALLER, "s2") == {}
    assert store.pending() == []


def check_creation(store: TagStore) -> None:
    service, backend = made(store)
    instance, then = service.create(CALLER, "vm", ["red", "blue"], "s1")
    assert then == {"red": PENDADD, "blue": PENDADD}
    assert store.instance("s1") == instance == Instance("s1", "vm", "p", "u")
    assert service.tags(CALLER, "s1") == {"red": PENDADD, "blue": PENDADD}
    done(service, backend)
    assert service.tags(CALLER, "s1") == {"red": ACTIVE, "blue": ACTIVE}
    backend.adopt({"stranger": ()})
    with pytest.raises(Conflict, match="the backend has an instance 'stranger' already"):
        service.create(CALLER, "stranger", [], "s2")
    assert store.instances() == [instance]
    with pytest.raises(BadRequest, match="the instance's name is"):
        service.create(CALLER, "v" * 256)
    with pytest.raises(BadRequest, match="the instance's id is 'x\\\\x00'"):
        service.create(CALLER, "vm2", [], "x\0")


def check_refusals(store: TagStore) -> None:
    """Nothing is changed by what is refused, in the database or by the backend."""
    service, backend = made(store, "s1")
    service.replace(CALLER, "s1", ["safe", *map(str, range(MOST - 1))])
    done(service, backend)
    before = store.state("s1")
    with pytest.raises(BadRequest, match="at most 50 tags"):
        service.add(CALLER, "s1", "one more")
    with pytest.raises(BadRequest, match="at most 50 tags"):
        service.replace(CALLER, "s1", map(str, range(MOST + 1)))
    with pytest.raises(BadRequest, match="do not go together"):
        service.replace(CALLER, "s1", ["fast", "safe"])
    service.delete(CALLER, "s1", "0")
    backend.fail(store.pending()[0][1].job or 0)
    service.poll()
    assert store.state("s1") == before
    service.add(Operator(), "s1", "there is always room for the system")
    assert len(service.tags(CALLER, "s1")) == MOST
    service.replace(CALLER, "s1", ["safe"])
    done(service, backend)
    with pytest.raises(Conflict, match="'fast' does not go together with 'safe'"):
        service.add(CALLER, "s1", "fast")
    with pytest.raises(InvalidTag, match=r"more than|too long"):
        service.add(CALLER, "s1", "🎉" * 10)
    assert service.tags(CALLER, "s1") == {"safe": ACTIVE}
    assert store.pending() == []


def check_names_are_kept_apart(store: TagStore) -> None:
    service, backend = made(store, "s1")
    left = sorted(ALIKE)
    assert list(service.replace(CALLER, "s1", ALIKE)) == left
    done(service, backend)
    assert service.tags(CALLER, "s1") == dict.fromkeys(ALIKE, ACTIVE)
    for name in ALIKE:
        service.delete(CALLER, "s1", name)
        left.remove(name)
        assert list(service.tags(CALLER, "s1")) == left
        done(service, backend)
        assert list(service.tags(CALLER, "s1")) == left


def check_instances_are_kept_apart(store: TagStore) -> None:
    alike = ["vm", "VM", "vm ", "vḿ", unicodedata.normalize("NFD", "vḿ"), "\uff56m", "vm🎉"]
    for name in alike:
        store.register(Instance(name, name, f"of {name}", "u"))
    assert {each.id: each.project for each in store.instances()} == {
        name: f"of {name}" for name in alike
    }
    service = TagService(store, MemoryBackend())
    for name in alike:
        assert store.instance(name).project == f"of {name}"
        for other in alike:
            if other != name:
                with pytest.raises(NotFound):
                    service.tags(Caller(f"of {other}", "u"), name)
        put(store, name, **{name.strip(): ACTIVE})
        assert store.change_named(name, lambda state: Change(removed=frozenset(state.tags)))
        assert not store.state(name).tags


def check_the_longest_names(store: TagStore) -> None:
    service, backend = made(store, "s1")
    fitting = ["n" * LONGEST, "🎉" * 9, "é" * 19]
    service.replace(CALLER, "s1", fitting)
    done(service, backend)
    assert service.tags(CALLER, "s1") == dict.fromkeys(fitting, ACTIVE)
    # No Ganeti takes that much; another backend may.
    put(store, "s1", **{"🎉" * LONGEST: ACTIVE, "🎉" * (LONGEST - 1) + "🎊": ACTIVE})
    assert len(store.state("s1").tags) == len(fitting) + 2
    longest = Instance("🎉" * 64, "🎉" * 255, "🎊" * 255, "🎈" * 255)
    store.register(longest)
    assert store.instance(longest.id) == longest
    prefix = "p" * 63 + ":"
    key, begun = (prefix, "🎉" * LONGEST), time.time()
    operation = Operation("0" * 36, Kind.ADD, prefix, (key[1],), begun, 2**62)
    change = Change({key: PENDADD}, begun=(operation,), marked={key: Mark(2**62, there=False)})
    store.change(longest.id, lambda state: (change, None))
    assert store.state(longest.id) == change.applied(State())


def check_registering_twice(store: TagStore) -> None:
    first = Instance("s1", "vm1", "p", "u")
    store.register(first)
    for again in (first, Instance("s1", "vm2", "p", "u"), Instance("s2", "vm1", "q", "u")):
        with pytest.raises(Conflict, match=f"the id '{again.id}' or the name '{again.name}'"):
            store.register(again)
    assert store.instances() == [first]


def check_who_is_not_known(store: TagStore) -> None:
    """That is also what cannot be in a database: NUL, halves of pairs, what is too long."""
    service, _ = made(store, "s1")
    for unknown in ("", "s2", "s1\0", "s1\ud800", "s1\n", "s1 ", "S1", "s" * 1000, "s1' OR '1'='1"):
        for ask in (
            lambda: store.instance(unknown),  # noqa: B023
            lambda: store.state(unknown),  # noqa: B023
            lambda: service.tags(CALLER, unknown),  # noqa: B023
            lambda: service.add(CALLER, unknown, "red"),  # noqa: B023
            lambda: store.change(unknown, lambda state: (Change(), None)),  # noqa: B023
        ):
            with pytest.raises(NotFound, match=r"there is no instance .+"):
                ask()
        assert store.change_named(unknown, lambda state: Change()) is False
        outcome = Outcome(1, unknown, Kind.ADD, frozenset([(USER, "red")]), succeeded=True)
        service.settle(outcome)
    assert [each.id for each in store.instances()] == ["s1"]


def check_forgetting(store: TagStore) -> None:
    service, backend = made(store, "s1", "s2")
    for server in ("s1", "s2"):
        service.add(CALLER, server, "old")
        done(service, backend)
        service.add(CALLER, server, "new")
    left = store.state("s2")
    store.forget("s1")
    with pytest.raises(NotFound):
        store.forget("s1")
    with pytest.raises(NotFound):
        service.tags(CALLER, "s1")
    assert store.state("s2") == left
    assert [instance.name for instance, _ in store.pending()] == ["s2.example.org"]
    store.register(Instance("s1", "s1.example.org", "p", "u"))
    assert store.state("s1") == State()


def check_what_is_under_way(store: TagStore) -> None:
    vm = Instance("s1", "vm", "p", "u")
    store.register(vm)
    begun = [Operation(f"o{n}", Kind.ADD, USER, (f"t{n}",), 1e9 + n / 3) for n in (2, 0, 1)]
    store.change("s1", lambda state: (Change(begun=tuple(begun)), None))
    store.record_job("o1", 2**62)
    store.record_job("unknown", 7)
    o0, o1, o2 = sorted(begun, key=lambda each: each.id)
    o1 = Operation(o1.id, o1.kind, o1.prefix, o1.names, o1.begun, 2**62)
    assert store.pending() == [(vm, o0), (vm, o1), (vm, o2)]
    store.change("s1", lambda state: (Change(ended=frozenset(["o0", "o2"])), None))
    assert store.state("s1").operations == (o1,)


def check_pruning(store: TagStore) -> None:
    for server in ("s1", "s2"):
        store.register(Instance(server, server, "p", "u"))
        marked = {(USER, name): Mark(1, there=True) for name in ("red", "blue")}
        store.change(server, functools.partial(_marked, marked))
    assert store.prune(3600) == 0
    age(store, "s1")
    newer = {(USER, "red"): Mark(2, there=False)}
    store.change("s1", lambda state: (Change(marked=newer), None))
    assert store.prune(3600) == 1
    assert store.state("s1").marks == newer
    assert len(store.state("s2").marks) == 2
    assert store.prune(-3600) == 3
    assert store.state("s2") == State()


def _marked(marks: dict[Key, Mark], state: State) -> tuple[Change, None]:
    return Change(marked=marks), None


def age(store: TagStore, server: str) -> None:
    """What has been seen of the server was seen two hours ago."""
    marks, instances = metadata.tables["tag_marks"], metadata.tables["tag_instances"]
    mine = sa.select(instances.c.number).where(instances.c.id == server).scalar_subquery()
    aged = sa.update(marks).where(marks.c.instance_id == mine)
    store.in_a_transaction(
        lambda connection: connection.execute(aged.values(seen=marks.c.seen - 7200))
    )


def check_reconciliation(store: TagStore) -> None:
    service, backend = made(store, "s1", "s2", "s3", "s4")
    for name in ("kept", "gone by hand"):
        service.add(CALLER, "s1", name)
    done(service, backend)
    hand = {"s1": ["kept", "by hand"], "s2": ["é 🎉 "], "s3": [], "s4": []}
    backend.adopt({f"{server}.example.org": map(ours, tags) for server, tags in hand.items()})
    service.add(CALLER, "s3", "under way")
    store.register(Instance("s5", "away.example.org", "p", "u"))
    put(store, "s5", kept=ACTIVE)
    before = [store.state(f"s{number}") for number in range(1, 6)]
    dry = [plan for plans in service.reconciliation().planned() for plan in plans]
    assert [store.state(f"s{number}") for number in range(1, 6)] == before
    assert [plan for plans in service.reconciliation().carried_out() for plan in plans] == dry
    assert {plan.instance.id: {(s.action.value, s.tag) for s in plan.steps} for plan in dry} == {
        "s1": {("created", "by hand"), ("deleted", "gone by hand")},
        "s2": {("created", "é 🎉 ")},
        "s3": {("left alone", "under way")},
        "s4": set(),
        "s5": {("left alone", "")},
    }
    assert service.tags(CALLER, "s1") == {"by hand": ACTIVE, "kept": ACTIVE}
    assert service.tags(CALLER, "s2") == {"é 🎉 ": ACTIVE}
    assert service.tags(CALLER, "s3") == {"under way": PENDADD}
    assert service.tags(CALLER, "s5") == {"kept": ACTIVE}
    backend.run()  # and nobody tells of it
    service.reconciliation().carried_out_for(["s3"])
    assert service.tags(CALLER, "s3") == {"under way": ACTIVE}
    assert store.pending() == []


def check_who_is_changed_meanwhile_is_left_alone(store: TagStore) -> None:
    service, backend = made(store, "s1", "s2")
    backend.adopt({f"{server}.example.org": [ours("red")] for server in ("s1", "s2")})
    look = backend.tags

    def tags(instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        found = look(instances)
        put(store, "s1", blue=ACTIVE)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "tags", tags)
        plans = service.reconciliation().carried_out_for(["s1", "s2"])
    assert [[step.why for step in plan.steps] for plan in plans] == [
        ["it was changed meanwhile"],
        ["the backend has it"],
    ]
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE}
    assert service.tags(CALLER, "s2") == {"red": ACTIVE}
    service.reconciliation().carried_out_for(["s1"])
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}


def check_who_has_the_name_of_another_meanwhile_is_left_alone(store: TagStore) -> None:
    """Also where the database gives the number of a row that has gone to the next one."""
    service, backend = made(store, "s1")
    backend.adopt({"s1.example.org": [ours("secret")]})
    look = backend.tags

    def tags(instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        found = look(instances)
        store.forget("s1")
        service.register(Instance("s2", "s1.example.org", "q", "v"))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "tags", tags)
        (plan,) = service.reconciliation().carried_out_for(["s1"])
    assert [step.why for step in plan.steps] == ["it was changed meanwhile"]
    assert store.state("s2") == State()


def check_an_instance_that_is_not_the_callers_is_never_theirs(store: TagStore) -> None:
    """Somebody creates one of the name at the backend first."""
    service, backend = made(store)
    for settle in (
        lambda: [*service.reconciliation().carried_out()],
        service.poll,
        lambda: service.add(CALLER, "s1", "mine"),
    ):
        service.create(CALLER, "vm", ["red"], "s1")
        backend.adopt({"vm": [ours("theirs")]})
        backend.run()
        with contextlib.suppress(NotFound):
            settle()
        with pytest.raises(NotFound):
            service.tags(CALLER, "s1")
        backend.remove("vm")


def check_jobs_are_forgotten(store: TagStore) -> None:
    """When a backend that counts from 1 again has taken the place of another one."""
    service, backend = made(store, "s1")
    for name in ("kept", "lost"):
        service.add(CALLER, "s1", name)
        done(service, backend)
    service.delete(CALLER, "s1", "lost")
    service.add(CALLER, "s1", "under way")
    [*service.reconciliation().carried_out()]
    service.create(CALLER, "new", ["red"], "s2")
    assert store.last_job() > 0
    store.forget_jobs()
    assert store.last_job() == 0
    kept = {(USER, "kept"): ACTIVE, (USER, "under way"): PENDADD}
    assert store.state("s1") == State(kept)
    anew = MemoryBackend()
    anew.adopt({"s1.example.org": [ours("kept")]})
    service = TagService(store, anew)
    [*service.reconciliation().carried_out()]
    assert [each.id for each in store.instances()] == ["s1"]  # the other has never come to be
    assert service.tags(CALLER, "s1") == {"kept": ACTIVE}
    service.delete(CALLER, "s1", "kept")
    service.poll()
    assert service.tags(CALLER, "s1") == {}


def check_many_are_reconciled_with_few_statements(store: TagStore) -> None:
    """So many for some hundred instances, however many tags they have, and whatever is done."""
    servers = [f"s{number:03}" for number in range(250)]
    service, backend = made(store, *servers)
    everywhere = {f"{server}.example.org" for server in servers}
    looking, writing = 5, 4  # with a look at the recorded backend each
    for names, most in [
        (["a", "b", "c"], looking + writing),
        ([], looking + writing),
        (["a"], looking + writing),
        (["a"], looking),
    ]:
        backend.adopt({name: map(ours, names) for name in everywhere})
        with statements() as seen:
            plans = service.reconciliation().carried_out_for(servers)
        assert len(plans) == len(servers)
        assert len(seen) == most
        for server in (servers[0], servers[-1]):
            assert service.tags(CALLER, server) == dict.fromkeys(names, ACTIVE)


def check_one_backend_is_recorded(store: TagStore) -> None:
    """However many processes record one at once."""
    alike = [BackendIdentity("ganeti", "one.example.org")] * 4
    different = [BackendIdentity("ganeti", f"{number}.example.org") for number in range(4)]

    def record(identity: BackendIdentity) -> bool:
        together.wait(20)
        try:
            store.record_backend(identity)
        except WrongBackend:
            return False
        return True

    for identities in (alike, different):
        for _ in range(5):
            forget_backend(store)
            together = threading.Barrier(len(identities))
            with concurrent.futures.ThreadPoolExecutor() as pool:
                done = list(pool.map(record, identities))
            owner = store.backend()
            assert done == [identity == owner for identity in identities]


def forget_backend(store: TagStore) -> None:
    store.in_a_transaction(lambda connection: connection.execute(sa.delete(model.backend)))


def check_a_move_waits_for_changes(store: TagStore) -> None:
    """So it sees each operation that has been begun for the former backend."""
    service, _ = made(store, "s1")
    begun = threading.Event()
    other = BackendIdentity("ganeti", "other.example.org")
    operation = Operation("o1", Kind.ADD, USER, ("red",), 1.0)

    def begin(state: State) -> tuple[Change, None]:
        begun.set()
        time.sleep(0.3)
        return Change({(USER, "red"): PENDADD}, begun=(operation,)), None

    with concurrent.futures.ThreadPoolExecutor() as pool:
        changing = pool.submit(service.store.change, "s1", begin)
        assert begun.wait(20)
        with pytest.raises(Conflict, match="unfinished operations of memory 'in-process': 1"):
            store.move_to_backend(other)
        changing.result()
    assert store.backend() == service.identity()
    assert [each for _, each in store.pending()] == [operation]


def check_a_change_is_done_as_a_whole(store: TagStore) -> None:
    store.register(Instance("s1", "vm", "p", "u"))
    put(store, "s1", red=ACTIVE)
    operation = Operation("o1", Kind.ADD, USER, ("blue",), 1.0)
    good = Change({(USER, "blue"): PENDADD}, frozenset([(USER, "red")]), begun=(operation,))
    store.change("s1", lambda state: (good, None))
    before = store.state("s1")
    # There is an operation with this id.
    bad = Change({(USER, "green"): PENDADD}, frozenset([(USER, "blue")]), begun=(operation,))
    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        store.change("s1", lambda state: (bad, None))
    assert store.state("s1") == before == good.applied(State())


def check_owners_are_kept_apart(store: TagStore) -> None:
    service, backend = made(store, "s1")
    system, caller = Operator(), Caller("p", "u", Owner.SYSTEM)
    service.add(CALLER, "s1", "red")
    service.add(system, "s1", "red")
    service.add(caller, "s1", "blue")
    done(service, backend)
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert (
        service.tags(system, "s1") == service.tags(caller, "s1") == {"red": ACTIVE, "blue": ACTIVE}
    )
    service.clear(CALLER, "s1")
    assert service.tags(system, "s1") == {"red": ACTIVE, "blue": ACTIVE}
    service.replace(system, "s1", [])
    done(service, backend)
    assert store.state("s1").tags == {}


def check_inside_a_transaction(engine: sa.Engine) -> None:
    """The caller's transaction decides; what fails inside it leaves the rest of it alone."""
    outside = TagStore(engine)
    outside.upgrade()
    outside.register(Instance("s1", "vm", "p", "u"))
    red = Change({(USER, "red"): ACTIVE})
    for end in ("rollback", "commit"):
        with engine.connect() as connection:
            store = TagStore(connection)
            with pytest.raises(ValueError, match="give the store a URL or an engine"):
                TagService(store, MemoryBackend())
            store.change("s1", lambda _: (red, None))
            with pytest.raises(Conflict):
                store.register(Instance("s2", "vm", "p", "u"))
            with pytest.raises(NotFound):
                store.change("s2", lambda _: (red, None))
            assert store.state("s1").tags == red.put
            getattr(connection, end)()
        there = {} if end == "rollback" else {(USER, "red"): ACTIVE}
        assert outside.state("s1").tags == there
    assert [each.id for each in outside.instances()] == ["s1"]


def check_migrations_inside_a_transaction(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        store = TagStore(connection)
        store.upgrade()
        assert store.current() == store.history()[-1][0]
        connection.commit()
    assert TagStore(engine).current() == store.history()[-1][0]


def check_migrations(engine: sa.Engine) -> None:
    """Up, down and up again, with what was there before operations were."""
    store = TagStore(engine)
    store.upgrade("0002")
    said: dict[str, Any] = {"number": 7, "id": "s1", "name": "vm", "project": "p", "user": "u"}
    tag = {"instance_id": 7, "prefix": USER, "name": "réd 🎉 ", "status": "ACTIVE"}
    with engine.begin() as connection:
        connection.execute(sa.insert(metadata.tables["tag_instances"]).values(said))
        connection.execute(sa.insert(metadata.tables["instance_tags"]).values(tag))
    there = State({(USER, "réd 🎉 "): ACTIVE})
    for _ in range(2):
        store.upgrade()
        assert store.current() == store.history()[-1][0]
        assert store.instance("s1") == Instance("s1", "vm", "p", "u")
        assert store.state("s1") == there
        assert set(metadata.tables) <= set(sa.inspect(engine).get_table_names())
        store.downgrade("0002")
    store.downgrade("base")
    assert not set(metadata.tables) & set(sa.inspect(engine).get_table_names())


def check_beside_consumers(engine: sa.Engine) -> None:
    consumers, store = ConsumerStore(engine), TagStore(engine)
    consumers.upgrade()
    store.upgrade()
    store.register(Instance("s1", "vm", "p", "u"))
    put(store, "s1", red=ACTIVE)
    consumers.downgrade("base")
    assert consumers.current() is None
    consumers.upgrade()
    assert store.state("s1").tags == {(USER, "red"): ACTIVE}
    store.downgrade("base")
    assert consumers.current() == consumers.history()[-1][0]
    assert consumers.types() == {"UNKNOWN": 0}


def check_beside_a_host(engine: sa.Engine, directory: Any) -> None:
    """A service with an alembic history of its own, and tags of its own, finds both untouched."""
    hosts = alembic.config.Config()
    hosts.set_main_option("script_location", str(directory))
    hosts.set_main_option("path_separator", "os")
    _write_history(directory)
    store = TagStore(engine)
    store.upgrade()
    store.register(Instance("s1", "vm", "p", "u"))
    with engine.connect() as connection:
        hosts.attributes["connection"] = connection
        alembic.command.upgrade(hosts, "head")
        connection.commit()
        store.downgrade("0003")
        store.upgrade()
        rows = connection.exec_driver_sql("SELECT version_num FROM alembic_version").all()
        assert list(map(tuple, rows)) == [("host1",)]
        assert connection.exec_driver_sql("SELECT count(*) FROM tags").scalar() == 0
        connection.rollback()
        alembic.command.downgrade(hosts, "base")
        connection.commit()
    assert store.instance("s1").name == "vm"
    assert store.current() == store.history()[-1][0]


def _write_history(directory: Any) -> None:
    (directory / "versions").mkdir(parents=True)
    (directory / "env.py").write_text(
        "from alembic import context\n"
        "context.configure(connection=context.config.attributes['connection'])\n"
        "with context.begin_transaction():\n"
        "    context.run_migrations()\n"
    )
    (directory / "versions" / "one.py").write_text(
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        "revision, down_revision = 'host1', None\n"
        "def upgrade():\n"
        "    op.create_table('tags', sa.Column('resource_id', sa.String(36), primary_key=True))\n"
        "def downgrade():\n"
        "    op.drop_table('tags')\n"
    )


def check_tables_of_others_are_refused(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE instance_tags (id INTEGER PRIMARY KEY)")
    with pytest.raises(Conflict, match="the tables instance_tags, which are not ours"):
        TagStore(engine).upgrade()


OPERATIONS = [
    check_operations,
    check_creation,
    check_refusals,
    check_names_are_kept_apart,
    check_instances_are_kept_apart,
    check_the_longest_names,
    check_registering_twice,
    check_who_is_not_known,
    check_forgetting,
    check_what_is_under_way,
    check_pruning,
    check_reconciliation,
    check_who_is_changed_meanwhile_is_left_alone,
    check_who_has_the_name_of_another_meanwhile_is_left_alone,
    check_an_instance_that_is_not_the_callers_is_never_theirs,
    check_jobs_are_forgotten,
    check_many_are_reconciled_with_few_statements,
    check_one_backend_is_recorded,
    check_a_move_waits_for_changes,
    check_a_change_is_done_as_a_whole,
    check_owners_are_kept_apart,
]
SCHEMAS = [
    check_migrations,
    check_beside_consumers,
    check_tables_of_others_are_refused,
    check_inside_a_transaction,
    check_migrations_inside_a_transaction,
]
