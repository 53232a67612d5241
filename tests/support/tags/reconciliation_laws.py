"""Laws of reconciliation for every database."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping

import pytest
import sqlalchemy as sa

from steelyard.errors import NotFound
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.states.values import Instance, State
from support.tags.patient_service import ACTIVE, CALLER, PENDADD, USER, done, made, ours, put


@contextlib.contextmanager
def statements() -> Iterator[list[str]]:
    """Yield a list that collects the statements of the block."""
    seen = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
            seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


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
    dry = [plan for plans in service.jobs.reconciliation().planned() for plan in plans]
    assert [store.state(f"s{number}") for number in range(1, 6)] == before
    assert [plan for plans in service.jobs.reconciliation().applied() for plan in plans] == dry
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
    backend.run()  # without applying the outcome
    service.jobs.reconciliation().applied_to(["s3"])
    assert service.tags(CALLER, "s3") == {"under way": ACTIVE}
    assert store.pending() == []


def check_instance_changed_meanwhile_is_left_alone(store: TagStore) -> None:
    service, backend = made(store, "s1", "s2")
    backend.adopt({f"{server}.example.org": [ours("red")] for server in ("s1", "s2")})
    read = backend.tags

    def tags(instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        found = read(instances)
        put(store, "s1", blue=ACTIVE)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "tags", tags)
        plans = service.jobs.reconciliation().applied_to(["s1", "s2"])
    assert [[step.why for step in plan.steps] for plan in plans] == [
        ["it changed during the reconciliation"],
        ["the backend has it"],
    ]
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE}
    assert service.tags(CALLER, "s2") == {"red": ACTIVE}
    service.jobs.reconciliation().applied_to(["s1"])
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}


def check_instance_replaced_meanwhile_is_left_alone(store: TagStore) -> None:
    # Some databases reuse the number of a deleted row.
    service, backend = made(store, "s1")
    backend.adopt({"s1.example.org": [ours("secret")]})
    read = backend.tags

    def tags(instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        found = read(instances)
        store.forget("s1")
        store.register(Instance("s2", "s1.example.org", "q", "v"))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "tags", tags)
        (plan,) = service.jobs.reconciliation().applied_to(["s1"])
    assert [step.why for step in plan.steps] == ["it changed during the reconciliation"]
    assert store.state("s2") == State()


def check_instance_of_others_is_never_taken_for_a_failed_creation(store: TagStore) -> None:
    # Another program creates an instance of the same name first, so the creation fails.
    service, backend = made(store)
    for finish in (
        lambda: [*service.jobs.reconciliation().applied()],
        service.jobs.poll,
        lambda: service.add(CALLER, "s1", "mine"),
    ):
        service.create(CALLER, "vm", ["red"], "s1")
        backend.adopt({"vm": [ours("theirs")]})
        backend.run()
        with contextlib.suppress(NotFound):
            finish()
        with pytest.raises(NotFound):
            service.tags(CALLER, "s1")
        backend.remove("vm")


def check_forgetting_jobs_of_a_reinstalled_backend(store: TagStore) -> None:
    # A reinstalled backend numbers its jobs from 1 again.
    service, backend = made(store, "s1")
    for name in ("kept", "lost"):
        service.add(CALLER, "s1", name)
        done(service, backend)
    service.delete(CALLER, "s1", "lost")
    service.add(CALLER, "s1", "under way")
    [*service.jobs.reconciliation().applied()]
    service.create(CALLER, "new", ["red"], "s2")
    assert store.last_job() > 0
    store.forget_jobs()
    assert store.last_job() == 0
    kept = {Tag(USER, "kept"): ACTIVE, Tag(USER, "under way"): PENDADD}
    assert store.state("s1") == State(kept)
    reinstalled = MemoryBackend()
    reinstalled.adopt({"s1.example.org": [ours("kept")]})
    service = TagService(store, reinstalled)
    [*service.jobs.reconciliation().applied()]
    assert [each.id for each in store.instances()] == ["s1"]  # the other was never created
    assert service.tags(CALLER, "s1") == {"kept": ACTIVE}
    service.delete(CALLER, "s1", "kept")
    service.jobs.poll()
    assert service.tags(CALLER, "s1") == {}


def check_number_of_statements_is_constant(store: TagStore) -> None:
    # The number depends neither on the tags nor on the changes, for a few hundred instances.
    servers = [f"s{number:03}" for number in range(250)]
    service, backend = made(store, *servers)
    everywhere = {f"{server}.example.org" for server in servers}
    reading, writing = 5, 4  # each includes a check of the recorded backend
    for names, most in [
        (["a", "b", "c"], reading + writing),
        ([], reading + writing),
        (["a"], reading + writing),
        (["a"], reading),
    ]:
        backend.adopt({name: map(ours, names) for name in everywhere})
        with statements() as seen:
            plans = service.jobs.reconciliation().applied_to(servers)
        assert len(plans) == len(servers)
        assert len(seen) == most
        for server in (servers[0], servers[-1]):
            assert service.tags(CALLER, server) == dict.fromkeys(names, ACTIVE)


RECONCILIATIONS = [
    check_reconciliation,
    check_instance_changed_meanwhile_is_left_alone,
    check_instance_replaced_meanwhile_is_left_alone,
    check_instance_of_others_is_never_taken_for_a_failed_creation,
    check_forgetting_jobs_of_a_reinstalled_backend,
    check_number_of_statements_is_constant,
]
