"""Laws of the store of tags for every database."""

import concurrent.futures
import dataclasses
import functools
import threading
import time
import unicodedata

import pytest
import sqlalchemy as sa

from steelyard.errors import (
    AdditionFailed,
    BadRequest,
    Conflict,
    InvalidTag,
    NotFound,
    OverQuota,
    WrongBackend,
)
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.database import model
from steelyard.tags.database.model import metadata
from steelyard.tags.names import LONGEST, MOST, Owner
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import (
    Instance,
    Kind,
    Operation,
    Outcome,
    State,
    StateChange,
    TagMark,
)
from support.tags.patient_service import ACTIVE, CALLER, PENDADD, USER, done, made, put

# Comparisons that fold case, accents, width, spaces or normal forms would find some of them equal.
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


def check_operations_change_tags(store: TagStore) -> None:
    service, backend = made(store, "s1", "s2")
    assert service.add(CALLER, "s1", "red") is True
    assert service.add(CALLER, "s1", "red") is False
    assert service.status(CALLER, "s1", "red") is PENDADD
    with pytest.raises(Conflict, match="cannot delete tag 'red': it is still being added"):
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


def check_creation_records_instance_with_tags(store: TagStore) -> None:
    service, backend = made(store)
    instance, then = service.create(CALLER, "vm", ["red", "blue"], "s1")
    assert then == {"red": PENDADD, "blue": PENDADD}
    assert store.instance("s1") == instance == Instance("s1", "vm", "p", "u")
    assert service.tags(CALLER, "s1") == {"red": PENDADD, "blue": PENDADD}
    done(service, backend)
    assert service.tags(CALLER, "s1") == {"red": ACTIVE, "blue": ACTIVE}
    backend.adopt({"stranger": ()})
    with pytest.raises(Conflict, match="cannot create instance 'stranger': the backend has it"):
        service.create(CALLER, "stranger", [], "s2")
    assert store.instances() == [instance]
    with pytest.raises(BadRequest, match="invalid instance name"):
        service.create(CALLER, "v" * 256)
    with pytest.raises(BadRequest, match="invalid server id 'x\\\\x00'"):
        service.create(CALLER, "vm2", [], "x\0")


def check_rejected_requests_change_nothing(store: TagStore) -> None:
    service, backend = made(store, "s1")
    service.replace(CALLER, "s1", ["safe", *map(str, range(MOST - 1))])
    done(service, backend)
    before = store.state("s1")
    with pytest.raises(BadRequest, match="at most 50,"):
        service.add(CALLER, "s1", "one more")
    with pytest.raises(BadRequest, match="at most 50,"):
        service.replace(CALLER, "s1", map(str, range(MOST + 1)))
    with pytest.raises(BadRequest, match="incompatible tags"):
        service.replace(CALLER, "s1", ["fast", "safe"])
    service.delete(CALLER, "s1", "0")
    backend.fail(store.pending()[0][1].job or 0)
    service.jobs.poll()
    assert store.state("s1") == before
    service.add(Operator(), "s1", "there is always room for the system")
    assert len(service.tags(CALLER, "s1")) == MOST
    service.replace(CALLER, "s1", ["safe"])
    done(service, backend)
    with pytest.raises(Conflict, match=r"cannot add tag 'fast': .* incompatible tag 'safe'"):
        service.add(CALLER, "s1", "fast")
    with pytest.raises(InvalidTag, match="when encoded"):
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
        removal = lambda state: (StateChange(removed=frozenset(state.tags)), None)  # noqa: E731
        assert store.change_named(name, removal)
        assert not store.state(name).tags


def check_longest_names_are_stored(store: TagStore) -> None:
    service, backend = made(store, "s1")
    fitting = ["n" * LONGEST, "🎉" * 9, "é" * 19]
    service.replace(CALLER, "s1", fitting)
    done(service, backend)
    assert service.tags(CALLER, "s1") == dict.fromkeys(fitting, ACTIVE)
    # These are too long for Ganeti, but not for every backend.
    put(store, "s1", **{"🎉" * LONGEST: ACTIVE, "🎉" * (LONGEST - 1) + "🎊": ACTIVE})
    assert len(store.state("s1").tags) == len(fitting) + 2
    longest = Instance("🎉" * 64, "🎉" * 255, "🎊" * 255, "🎈" * 255)
    store.register(longest)
    assert store.instance(longest.id) == longest
    prefix = "p" * 63 + ":"
    key, begun = Tag(prefix, "🎉" * LONGEST), time.time()
    operation = Operation("0" * 36, Kind.ADD, prefix, (Tag(prefix, key[1]),), begun, 2**62)
    change = StateChange(
        {key: PENDADD}, begun=(operation,), marked={key: TagMark(2**62, there=False)}
    )
    store.change(longest.id, lambda state: (change, None))
    assert store.state(longest.id) == change.applied(State())


def check_registering_a_taken_id_or_name_is_rejected(store: TagStore) -> None:
    first = Instance("s1", "vm1", "p", "u")
    store.register(first)
    for again in (first, Instance("s1", "vm2", "p", "u"), Instance("s2", "vm1", "q", "u")):
        with pytest.raises(
            Conflict, match=f"the instance id '{again.id}' or the name '{again.name}'"
        ):
            store.register(again)
    assert store.instances() == [first]


def check_unknown_instances_are_not_found(store: TagStore) -> None:
    # Some of these ids cannot be stored: NUL, lone surrogates, too long.
    service, _ = made(store, "s1")
    for unknown in ("", "s2", "s1\0", "s1\ud800", "s1\n", "s1 ", "S1", "s" * 1000, "s1' OR '1'='1"):
        for ask in (
            lambda: store.instance(unknown),  # noqa: B023
            lambda: store.state(unknown),  # noqa: B023
            lambda: service.tags(CALLER, unknown),  # noqa: B023
            lambda: service.add(CALLER, unknown, "red"),  # noqa: B023
            lambda: store.change(unknown, lambda state: (StateChange(), None)),  # noqa: B023
        ):
            with pytest.raises(NotFound, match=r"no instance .+"):
                ask()
        assert store.change_named(unknown, lambda state: (StateChange(), None)) is None
        outcome = Outcome(1, unknown, Kind.ADD, frozenset([Tag(USER, "red")]), succeeded=True)
        service.jobs.apply(outcome)
    assert [each.id for each in store.instances()] == ["s1"]


def check_forgetting_deletes_one_instance(store: TagStore) -> None:
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


def check_pending_operations_are_listed_oldest_first(store: TagStore) -> None:
    vm = Instance("s1", "vm", "p", "u")
    store.register(vm)
    begun = [
        Operation(f"o{n}", Kind.ADD, USER, (Tag(USER, f"t{n}"),), 1e9 + n / 3) for n in (2, 0, 1)
    ]
    store.change("s1", lambda state: (StateChange(begun=tuple(begun)), None))
    store.record_job("o1", 2**62)
    store.record_job("unknown", 7)
    o0, o1, o2 = sorted(begun, key=lambda each: each.id)
    o1 = dataclasses.replace(o1, job=2**62)
    assert store.pending() == [(vm, o0), (vm, o1), (vm, o2)]
    store.change("s1", lambda state: (StateChange(ended=frozenset(["o0", "o2"])), None))
    assert store.state("s1").operations == (o1,)


def check_pruning_deletes_old_marks(store: TagStore) -> None:
    for server in ("s1", "s2"):
        store.register(Instance(server, server, "p", "u"))
        marked = {Tag(USER, name): TagMark(1, there=True) for name in ("red", "blue")}
        store.change(server, functools.partial(_marked, marked))
    assert store.prune(3600) == 0
    age(store, "s1")
    newer = {Tag(USER, "red"): TagMark(2, there=False)}
    store.change("s1", lambda state: (StateChange(marked=newer), None))
    assert store.prune(3600) == 1
    assert store.state("s1").marks == newer
    assert len(store.state("s2").marks) == 2
    assert store.prune(-3600) == 3
    assert store.state("s2") == State()


def _marked(marks: dict[Tag, TagMark], state: State) -> tuple[StateChange, None]:
    return StateChange(marked=marks), None


def age(store: TagStore, server: str) -> None:
    """Make the marks of the server two hours older."""
    marks, instances = metadata.tables["tag_marks"], metadata.tables["tag_instances"]
    mine = sa.select(instances.c.number).where(instances.c.id == server).scalar_subquery()
    aged = sa.update(marks).where(marks.c.instance_id == mine)
    store.in_a_transaction(
        lambda connection: connection.execute(aged.values(seen=marks.c.seen - 7200))
    )


def check_concurrent_processes_record_one_backend(store: TagStore) -> None:
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


def check_move_waits_for_changes(store: TagStore) -> None:
    # Otherwise, it could miss an operation that was begun for the former backend.
    service, _ = made(store, "s1")
    begun = threading.Event()
    other = BackendIdentity("ganeti", "other.example.org")
    operation = Operation("o1", Kind.ADD, USER, (Tag(USER, "red"),), 1.0)

    def begin(state: State) -> tuple[StateChange, None]:
        begun.set()
        time.sleep(0.3)
        return StateChange({Tag(USER, "red"): PENDADD}, begun=(operation,)), None

    with concurrent.futures.ThreadPoolExecutor() as pool:
        changing = pool.submit(service.store.change, "s1", begin)
        assert begun.wait(20)
        with pytest.raises(Conflict, match="unfinished operations of memory 'in-process': 1"):
            store.move_to_backend(other)
        changing.result()
    assert store.backend() == service.administration.identity()
    assert [each for _, each in store.pending()] == [operation]


def check_failed_change_is_rolled_back(store: TagStore) -> None:
    store.register(Instance("s1", "vm", "p", "u"))
    put(store, "s1", red=ACTIVE)
    operation = Operation("o1", Kind.ADD, USER, (Tag(USER, "blue"),), 1.0)
    good = StateChange(
        {Tag(USER, "blue"): PENDADD}, frozenset([Tag(USER, "red")]), begun=(operation,)
    )
    store.change("s1", lambda state: (good, None))
    before = store.state("s1")
    # An operation with this id exists.
    bad = StateChange(
        {Tag(USER, "green"): PENDADD}, frozenset([Tag(USER, "blue")]), begun=(operation,)
    )
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


def check_project_stays_within_its_limit(store: TagStore) -> None:
    service, _ = made(store, "s1", "s2", "t")
    service.instances_per_project = 3
    store.forget("t")
    service.register(Instance("other", "t.example.org", "q", "u"))
    service.create(CALLER, "new", ["a"], "s3")
    before = store.instances()
    with pytest.raises(OverQuota, match="project 'p' has reached its limit of 3 instances"):
        service.create(CALLER, "newer", ["a"], "s4")
    assert store.instances() == before
    assert len(store.pending()) == 1
    done = store.register_all([Instance("x", "x", "p", "u")], 0, 3)
    assert done.refused == {"x": "project 'p' has reached its limit of 3 instances"}
    store.forget("s1")
    service.create(CALLER, "newer", ["a"], "s4")


def check_concurrent_registrations_stop_at_the_limit(store: TagStore) -> None:
    service, backend = made(store, "s1")
    names = [f"vm-{number}" for number in range(12)]
    backend.adopt(dict.fromkeys(names, ()))
    service.instances_per_project = 5

    def register(name: str) -> bool:
        try:
            service.register(Instance(name, name, "p", "u"))
        except OverQuota:
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(register, names)) == 4
    assert store.count() == 5


def check_registering_many_skips_taken_ids_and_names(store: TagStore) -> None:
    store.register(Instance("by another id", "known", "p", "u"))
    store.register(Instance("taken", "other", "p", "u"))
    wanted = [Instance(name, name, "p", "u") for name in ("new", "known", "taken", "NEW", "new ")]
    done = store.register_all(wanted, 7)
    assert [each.name for each in done.new] == ["new", "NEW", "new "]
    assert (done.known, done.refused) == (["known"], {"taken": "its ID is taken"})
    assert store.state("new").horizon == 7
    again = store.register_all(wanted, 9)
    assert (again.new, again.known) == ([], ["new", "known", "NEW", "new "])
    assert store.state("new").horizon == 7


def check_failed_addition_is_told_for_an_hour(store: TagStore) -> None:
    service, _ = made(store, "s1", "s2")
    red, reason = Tag(USER, "red"), "disk \x00 \u202e \ud800 full"
    for server in ("s1", "s2"):
        service.add(CALLER, server, "red")
        (operation,) = store.state(server).operations
        name = f"{server}.example.org"
        failed = Outcome(
            operation.job or 0, name, Kind.ADD, frozenset([red]), succeeded=False, reason=reason
        )
        service.jobs.apply(failed)
        service.jobs.apply(failed)
    told = r"disk \u0000 \u202e \ud800 full"
    assert store.failure("s1", red) == told
    assert store.failure("s1", Tag(USER, "RED")) is None
    with pytest.raises(AdditionFailed, match="no tag 'red': the backend could not add it: disk"):
        service.status(CALLER, "s1", "red")
    with pytest.raises(NotFound, match=r"no tag 'red'$"):
        service.status(Operator(), "s1", "red")
    service.add(CALLER, "s1", "red")
    assert store.failure("s1", red) is None
    assert store.prune(3600) == 0
    assert store.failure("s2", red) == told
    failures = metadata.tables["tag_failures"]
    older = sa.update(failures).values(seen=failures.c.seen - 3601)
    store.in_a_transaction(lambda connection: connection.execute(older))
    assert store.failure("s2", red) is None
    store.prune(3600)
    count = sa.select(sa.func.count()).select_from(failures)
    assert store.reading(lambda connection: connection.execute(count).scalar()) == 0


def check_failure_found_by_reconciliation_is_told(store: TagStore) -> None:
    service, backend = made(store, "s1")
    service.add(CALLER, "s1", "red")
    backend.fail(store.state("s1").operations[0].job or 0)
    list(service.jobs.reconciliation().applied())
    assert store.failure("s1", Tag(USER, "red")) == "the job was canceled"
    service.add(CALLER, "s1", "blue")
    lost = store.state("s1").operations[0].job or 0
    backend.fail(lost)
    backend.lose(lost)
    service.jobs.poll()
    assert store.failure("s1", Tag(USER, "blue")) == f"the backend knows no job {lost}"
    store.forget("s1")
    with pytest.raises(NotFound):
        store.failure("s1", Tag(USER, "blue"))


OPERATIONS = [
    check_operations_change_tags,
    check_creation_records_instance_with_tags,
    check_rejected_requests_change_nothing,
    check_names_are_kept_apart,
    check_instances_are_kept_apart,
    check_longest_names_are_stored,
    check_registering_a_taken_id_or_name_is_rejected,
    check_unknown_instances_are_not_found,
    check_forgetting_deletes_one_instance,
    check_pending_operations_are_listed_oldest_first,
    check_pruning_deletes_old_marks,
    check_concurrent_processes_record_one_backend,
    check_move_waits_for_changes,
    check_failed_change_is_rolled_back,
    check_owners_are_kept_apart,
    check_project_stays_within_its_limit,
    check_concurrent_registrations_stop_at_the_limit,
    check_registering_many_skips_taken_ids_and_names,
    check_failed_addition_is_told_for_an_hour,
    check_failure_found_by_reconciliation_is_told,
]
