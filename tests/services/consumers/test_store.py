"""The consumer store on PostgreSQL and MariaDB."""

import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.errors import ConcurrentUpdate, ServiceError
from support.consumers import store_laws
from support.consumers.store_laws import C1, C2, C3, body


@pytest.mark.parametrize("check", store_laws.WRITES)
def test_store_obeys_the_laws_of_writes(upgraded: sa.Engine, check: Any) -> None:
    store = ConsumerStore(upgraded)
    check(store)


@pytest.mark.parametrize("check", store_laws.SCHEMAS)
def test_schema_obeys_the_laws(engine: sa.Engine, check: Any) -> None:
    check(engine)


def test_deadlock_in_a_callers_transaction_raises_service_error(upgraded: sa.Engine) -> None:
    # The database aborts one of two deadlocked transactions, with all of its changes.
    store = ConsumerStore(upgraded)
    store.post_allocations({consumer: body(p1={"VCPU": 1}) for consumer in (C1, C2)})
    transactions = upgraded.execution_options(isolation_level="READ COMMITTED")
    both = threading.Barrier(2, timeout=30)

    def write(*names: str) -> str:
        with transactions.connect() as connection:
            inside = ConsumerStore(connection)
            inside.put_allocations(names[0], body(1, p1={"VCPU": 2}))
            both.wait()
            try:
                inside.put_allocations(names[1], body(1, p1={"VCPU": 2}))
            except ServiceError as error:
                return str(error)
            connection.commit()
            return "done"

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = sorted(pool.map(write, (C1, C2), (C2, C1)))
    assert results[0] == "done"
    assert "aborted the transaction" in results[1]
    assert "eadlock" in results[1]
    assert store.usages("p")["usages"]["INSTANCE"] == {"consumer_count": 2, "VCPU": 4}


def test_foreign_key_of_types_is_added_without_checking_consumers(engine: sa.Engine) -> None:
    # Otherwise the upgrade would fail on the consumer whose type does not exist.
    store = ConsumerStore(engine)
    store.upgrade("0005")
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO consumers (uuid, generation, project, {}, consumer_type_id) "
            "VALUES ('{}', 1, 'p', 'u', 77)".format(
                engine.dialect.identifier_preparer.quote("user"), C1
            )
        )
    with meanwhile(engine, "ALTER TABLE consumers ADD CONSTRAINT", lambda: None) as altering:
        store.upgrade("0006")
    (statement,) = altering
    with engine.connect() as connection:
        kinds = connection.exec_driver_sql("SELECT consumer_type_id FROM consumers")
        assert kinds.scalars().all() == [77]
        if engine.dialect.name == "postgresql":
            checked = "SELECT convalidated FROM pg_constraint WHERE conname = 'fk_consumers_type'"
            assert connection.exec_driver_sql(checked).scalars().all() == [False]
        else:
            # Without this, MariaDB would copy the table.
            assert statement.endswith("ALGORITHM=INPLACE")


def test_concurrent_writes_lose_no_update(upgraded: sa.Engine) -> None:
    # Writers add to the same consumers in different orders and retry conflicts.
    store = ConsumerStore(upgraded)
    store.post_allocations({consumer: body(p1={"VCPU": 1}) for consumer in (C1, C2, C3)})

    def add(number: int) -> None:
        names = [C1, C2, C3] if number % 2 else [C3, C2, C1]
        while True:
            wanted = {name: store.get_allocations(name) for name in names}
            for each in wanted.values():
                (provider,) = each["allocations"].values()
                provider["resources"]["VCPU"] += 1
                each["consumer_type"] = f"TYPE_{number}"
            try:
                return store.post_allocations(wanted)
            except ConcurrentUpdate:
                continue

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(add, range(12)))
    for consumer in (C1, C2, C3):
        found = store.get_allocations(consumer)
        assert found["consumer_generation"] == 13
        (provider,) = found["allocations"].values()
        assert provider["resources"] == {"VCPU": 13}


def test_writer_of_a_removed_type_creates_it_again(upgraded: sa.Engine) -> None:
    store = ConsumerStore(upgraded)
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    store.delete_allocations(C1)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with upgraded.begin() as connection:
            assert ConsumerStore(connection).remove_unused_types() == ["INSTANCE"]
            writing = pool.submit(store.put_allocations, C1, body(p1={"VCPU": 1}))
            with pytest.raises(concurrent.futures.TimeoutError):
                writing.result(0.5)
        writing.result(30)
    assert store.types() == {"INSTANCE": 1, "UNKNOWN": 0}


@contextlib.contextmanager
def meanwhile(
    engine: sa.Engine, beginning: str, act: Callable[[], object], when: str = "before"
) -> Iterator[list[str]]:
    """Run the action once, at the first statement with this beginning; yield all such statements."""
    seen: list[str] = []

    def hook(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith(beginning):
            seen.append(statement)
            if len(seen) == 1:
                act()

    sa.event.listen(engine, f"{when}_cursor_execute", hook)
    yield seen
    sa.event.remove(engine, f"{when}_cursor_execute", hook)


@pytest.fixture
def other(upgraded: sa.Engine) -> Iterator[sa.Engine]:
    """Yield an engine without the events of the first one."""
    made = sa.create_engine(upgraded.url)
    yield made
    made.dispose()


def make_unused(store: ConsumerStore, kind: str = "INSTANCE") -> None:
    store.put_allocations(C3, body(kind=kind, p1={"VCPU": 1}))
    store.delete_allocations(C3)


def test_removal_of_types_waits_for_a_writer_that_creates_types(
    upgraded: sa.Engine, other: sa.Engine
) -> None:
    # Another writer commits the type after this one looked it up and before it has the lock.
    store = ConsumerStore(upgraded)
    removing: list[concurrent.futures.Future[list[str]]] = []

    def remove() -> None:
        removing.append(pool.submit(ConsumerStore(other).remove_unused_types))
        with pytest.raises(concurrent.futures.TimeoutError):
            removing[0].result(0.5)

    locking = "SELECT steelyard_consumers_version"
    with (
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        meanwhile(upgraded, locking, lambda: make_unused(ConsumerStore(other))) as turns,
        meanwhile(upgraded, "INSERT", remove, "after"),
    ):
        store.put_allocations(C1, body(p1={"VCPU": 1}))
    assert removing[0].result(30) == []
    assert len(turns) == 1
    assert store.types() == {"INSTANCE": 1, "UNKNOWN": 0}


def test_writer_retries_when_its_type_is_removed_before_use(
    upgraded: sa.Engine, other: sa.Engine
) -> None:
    store = ConsumerStore(upgraded)
    make_unused(store)
    with meanwhile(
        upgraded, "INSERT INTO consumers", ConsumerStore(other).remove_unused_types
    ) as inserts:
        store.put_allocations(C1, body(p1={"VCPU": 1}))
    assert len(inserts) == 2
    make_unused(store, "MIGRATION")
    with meanwhile(
        upgraded, "UPDATE consumers", ConsumerStore(other).remove_unused_types
    ) as updates:
        store.put_allocations(C1, body(1, kind="MIGRATION", p1={"VCPU": 1}))
    assert len(updates) == 2
    assert store.types() == {"INSTANCE": 0, "MIGRATION": 1, "UNKNOWN": 0}


def test_writer_retries_when_another_program_removes_its_type(
    upgraded_postgresql: sa.Engine,
) -> None:
    # Other programs do not take the lock. On MariaDB, INSERT IGNORE locks an existing row.
    other = upgraded_postgresql
    with contextlib.closing(ConsumerStore(other.url)) as store:
        engine: Any = store._database

        def remove() -> None:
            with other.begin() as connection:
                connection.exec_driver_sql("DELETE FROM consumer_types WHERE name = 'INSTANCE'")

        missing = "SELECT steelyard_consumers_version"
        with (
            meanwhile(engine, missing, lambda: make_unused(ConsumerStore(other))) as turns,
            meanwhile(engine, "INSERT INTO consumer_types", remove, "after"),
        ):
            store.put_allocations(C1, body(p1={"VCPU": 1}))
        assert len(turns) == 2
        assert store.types() == {"INSTANCE": 1, "UNKNOWN": 0}


def test_callers_transaction_stays_usable_when_a_type_is_removed(
    upgraded: sa.Engine, other: sa.Engine
) -> None:
    store = ConsumerStore(upgraded)
    make_unused(store)
    transactions = upgraded.execution_options(isolation_level="READ COMMITTED")
    with transactions.begin() as connection:
        inside = ConsumerStore(connection)
        inside.put_allocations(C2, body(kind="UNKNOWN", p1={"VCPU": 1}))
        with (
            meanwhile(upgraded, "INSERT INTO consumers", ConsumerStore(other).remove_unused_types),
            pytest.raises(ConcurrentUpdate) as raised,
        ):
            inside.put_allocations(C1, body(p1={"VCPU": 1}))
        inside.put_allocations(C1, body(p1={"VCPU": 1}))
    assert str(raised.value) == (
        "another transaction removed consumer type 'INSTANCE'; retry the write, in a new "
        "transaction if this one is REPEATABLE READ"
    )
    assert store.types() == {"INSTANCE": 1, "UNKNOWN": 1}


def make_servers_of_the_host(engine: sa.Engine) -> None:
    """Create a table of the host service that references the consumers of the store."""
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE notes (x INTEGER)")
        connection.exec_driver_sql(
            "CREATE TABLE servers (consumer INTEGER, CONSTRAINT fk_servers_consumer "
            "FOREIGN KEY (consumer) REFERENCES consumers (id))"
        )
        connection.exec_driver_sql("INSERT INTO servers SELECT id FROM consumers")


def test_foreign_key_of_the_host_is_reported_without_retries(engine: sa.Engine) -> None:
    store = ConsumerStore(engine)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    make_servers_of_the_host(engine)
    message = r"^database error: .*fk_servers_consumer"
    with meanwhile(engine, "DELETE FROM consumers", lambda: None) as deletes:
        with pytest.raises(ServiceError, match=message):
            store.delete_allocations(C1)
        assert len(deletes) == 1
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO notes VALUES (1)")
            with pytest.raises(ServiceError, match=message):
                ConsumerStore(connection).delete_allocations(C1)
            connection.exec_driver_sql("INSERT INTO notes VALUES (2)")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM notes").scalar() == 2


def test_foreign_key_of_the_host_on_consumers_is_reported(engine: sa.Engine) -> None:
    store = ConsumerStore(engine)
    store.upgrade()
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE numbers (id INTEGER PRIMARY KEY)")
        connection.exec_driver_sql(
            "ALTER TABLE consumers ADD CONSTRAINT fk_of_host "
            "FOREIGN KEY (generation) REFERENCES numbers (id)"
        )
    with pytest.raises(ServiceError, match=r"^database error: .*fk_of_host"):
        store.put_allocations(C1, body(p1={"VCPU": 1}))


def test_removal_of_types_does_not_wait_for_open_transactions(
    upgraded: sa.Engine, other: sa.Engine
) -> None:
    # Nor do writers wait for the removal.
    store = ConsumerStore(upgraded)
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    make_unused(store, "OLD")
    make_unused(store, "BUSY")
    with concurrent.futures.ThreadPoolExecutor(2) as pool, other.begin() as connection:
        inside = ConsumerStore(connection)
        inside.put_allocations(C2, body(p1={"VCPU": 1}))
        inside.put_allocations(C3, body(kind="BUSY", p1={"VCPU": 1}))
        assert pool.submit(store.remove_unused_types).result(10) == ["OLD"]
        pool.submit(store.put_allocations, C1, body(1, p1={"VCPU": 2})).result(10)
    assert store.types() == {"BUSY": 1, "INSTANCE": 2, "UNKNOWN": 0}


def test_removal_of_types_in_an_old_snapshot_keeps_types_in_use(
    upgraded: sa.Engine, other: sa.Engine
) -> None:
    # In REPEATABLE READ, a transaction does not see consumers that are newer than it.
    store = ConsumerStore(upgraded)
    make_unused(store)
    make_unused(store, "OLD")
    old = other.execution_options(isolation_level="REPEATABLE READ")
    with old.begin() as connection:
        inside = ConsumerStore(connection)
        assert inside.types() == {"INSTANCE": 0, "OLD": 0, "UNKNOWN": 0}
        store.put_allocations(C1, body(p1={"VCPU": 1}))
        assert inside.remove_unused_types() == ["OLD"]
    assert store.types() == {"INSTANCE": 1, "UNKNOWN": 0}
