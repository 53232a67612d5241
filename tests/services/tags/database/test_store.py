"""The store of tags on PostgreSQL and MariaDB."""

import concurrent.futures
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.errors import BadRequest, Conflict, ServiceError
from steelyard.tags import TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.names import MOST
from steelyard.tags.states import requests
from steelyard.tags.states.requests import TagRules
from steelyard.tags.states.values import Instance, StateChange, TagMark
from support.tags import reconciliation_laws, schema_laws, store_laws
from support.tags.patient_service import ACTIVE, CALLER, USER, made, put

PATIENCE = 20


@pytest.fixture
def store(upgraded: sa.Engine) -> TagStore:
    """Return a store without instances that belongs to the backend in memory."""
    store = TagStore(upgraded)
    store.record_backend(MemoryBackend().identity())
    return store


@pytest.mark.parametrize("check", [*store_laws.OPERATIONS, *reconciliation_laws.RECONCILIATIONS])
def test_store_law_holds(store: TagStore, check: Any) -> None:
    check(store)


@pytest.mark.parametrize("check", schema_laws.SCHEMAS)
def test_schema_law_holds(engine: sa.Engine, check: Any) -> None:
    check(engine)


def test_schema_coexists_with_a_host_service(engine: sa.Engine, tmp_path: Any) -> None:
    schema_laws.check_schema_is_independent_of_the_host_service(engine, tmp_path / "history")


@pytest.fixture
def pool() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        yield pool


def test_change_locks_only_its_instance(
    upgraded: sa.Engine, store: TagStore, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    # A transaction removes and restores the tags of 'this', between two other instances.
    for name in ("before", "this", "behind"):
        store.register(Instance(name, name, "p", "u"))
        put(store, name, b=ACTIVE, c=ACTIVE)
    with upgraded.connect().execution_options(isolation_level="READ COMMITTED") as connection:
        inside = TagStore(connection)
        there = inside.state("this").tags
        inside.change("this", lambda state: (StateChange(removed=frozenset(there)), None))
        inside.change("this", lambda state: (StateChange(there), None))
        others = [
            pool.submit(put, store, name, **{tag: ACTIVE})
            for name in ("before", "behind")
            for tag in ("a", "z", "\U0010fffd")
        ]
        others.append(pool.submit(store.register, Instance("new", "new", "p", "u")))
        for each in others:
            each.result(timeout=PATIENCE)
        waiting = pool.submit(store.change, "this", lambda state: (StateChange(), len(state.tags)))
        assert not concurrent.futures.wait([waiting], timeout=0.3).done
        put(inside, "this", d=ACTIVE)
        connection.commit()
        assert waiting.result(timeout=PATIENCE) == 3
    assert len(store.state("before").tags) == len(store.state("behind").tags) == 5


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_transaction_of_the_caller_counts_the_current_tags(
    upgraded: sa.Engine, store: TagStore, level: str
) -> None:
    # With a stale snapshot, the transaction would add a tag beyond the limit.
    service, _ = made(store, "s1")
    put(store, "s1", **{str(number): ACTIVE for number in range(MOST - 1)})
    transactions = upgraded.execution_options(isolation_level=level)
    with transactions.connect() as connection:
        connection.execute(sa.text("SELECT count(*) FROM instance_tags")).scalar()
        if level == "SERIALIZABLE" and upgraded.dialect.name == "mysql":
            connection.rollback()  # its read locks would block the addition below
        service.add(CALLER, "s1", "the last one")
        with pytest.raises(
            (BadRequest, ServiceError), match=r"at most 50|roll (it )?back and retry"
        ):
            TagStore(connection).change(
                "s1",
                lambda state: (
                    StateChange(),
                    requests.adding(state, TagRules(USER), [Tag(USER, "one more")]),
                ),
            )
        connection.rollback()
    assert len(service.tags(CALLER, "s1")) == MOST


def test_concurrent_registrations_of_one_instance_succeed_once(store: TagStore) -> None:
    both = threading.Barrier(8, timeout=PATIENCE)

    def register(number: int) -> int:
        won = 0
        for turn in range(10):
            both.wait()
            try:
                store.register(Instance(f"{number % 2} {turn}", f"vm{turn}", "p", str(number)))
                won += 1
            except Conflict:
                pass
        return won

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(register, range(8))) == 10
    assert len(store.instances()) == 10


def test_prune_keeps_a_mark_renewed_by_another_transaction(
    upgraded: sa.Engine, store: TagStore, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    store.register(Instance("s1", "vm", "p", "u"))
    key, newer = Tag(USER, "red"), TagMark(2, there=False)
    store.change("s1", lambda state: (StateChange(marked={key: TagMark(1, there=True)}), None))
    store_laws.age(store, "s1")
    with upgraded.connect() as connection:
        inside = TagStore(connection)
        inside.change("s1", lambda state: (StateChange(marked={key: newer}), None))
        pruning = pool.submit(store.prune, 3600)
        concurrent.futures.wait([pruning], timeout=0.3)
        connection.commit()
    assert pruning.result(timeout=PATIENCE) == 0
    assert store.state("s1").marks == {key: newer}


def test_reconciliation_skips_an_instance_changed_by_another_transaction(
    upgraded: sa.Engine, store: TagStore, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    # Reconciliation reads the instance before the change is committed, and waits for its lock.
    service, _ = made(store, "s1")
    put(store, "s1", red=ACTIVE)
    with upgraded.connect() as connection:
        put(TagStore(connection), "s1", blue=ACTIVE)
        reconciling = pool.submit(lambda: [*service.jobs.reconciliation().applied()])
        assert not concurrent.futures.wait([reconciling], timeout=0.5).done
        connection.commit()
    ((plan,),) = reconciling.result(timeout=PATIENCE)
    assert [step.why for step in plan.steps] == ["it changed during the reconciliation"]
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE, "red": ACTIVE}


def test_connection_error_omits_the_password(upgraded: sa.Engine) -> None:
    url = upgraded.url.set(username="steelyard_nobody", password="hunter2")
    with pytest.raises(ServiceError) as raised:
        TagStore(url).instances()
    story = "".join(traceback.format_exception(raised.value))
    # The traceback quotes the first line of this test.
    assert "hunter2" not in story.replace('password="hunter2"', "")
