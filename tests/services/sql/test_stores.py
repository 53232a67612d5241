"""Transactions and schema changes of stores on PostgreSQL and MariaDB."""

import concurrent.futures
import threading
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.consumers.model import consumers
from steelyard.errors import BadRequest, ConcurrentUpdate, Conflict, ServiceError
from steelyard.sql.stores import Store
from support.consumers.store_laws import C1, C2, body
from support.services import databases
from support.sql import store_laws

# Queries that end, or list the statements that end, every other connection to the database.
KILLING = {
    "postgresql": (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ),
    "mysql": (
        "SELECT concat('KILL ', id) FROM information_schema.processlist "
        "WHERE db = database() AND id <> connection_id()"
    ),
}


@pytest.mark.parametrize("kind", store_laws.KINDS)
@pytest.mark.parametrize("check", store_laws.CHECKS)
def test_store_obeys_the_laws_of_schemas(engine: sa.Engine, kind: Any, check: Any) -> None:
    check(engine, kind)


def test_finished_upgrade_releases_the_lock(engine: sa.Engine) -> None:
    # Neither a failed upgrade nor one in a finished transaction keeps the lock.
    small = sa.create_engine(engine.url, pool_size=1, max_overflow=0)
    for _ in range(2):
        with pytest.raises(Conflict, match="nowhere"):
            ConsumerStore(small).upgrade("nowhere")
        with engine.begin() as connection:
            ConsumerStore(connection).upgrade()
        ConsumerStore(small).upgrade()
    small.dispose()


@pytest.mark.parametrize("kind", store_laws.KINDS)
def test_upgrade_waits_for_one_in_a_transaction(engine: sa.Engine, kind: type[Store]) -> None:
    # On PostgreSQL, the lock is held until the commit; MariaDB commits each revision.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:
            kind(connection).upgrade()
            upgrading = pool.submit(kind(engine).upgrade)
            concurrent.futures.wait([upgrading], timeout=1)
        upgrading.result(30)
    assert kind(engine).current() == kind(engine).history()[-1][0]


def test_deadlock_in_a_callers_transaction_ends_it(engine: sa.Engine) -> None:
    # MariaDB undoes the caller's earlier changes too, so later ones must fail.
    store = ConsumerStore(engine)
    store.upgrade()
    store.post_allocations({consumer: body(p1={"VCPU": 1}) for consumer in (C1, C2)})
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE notes (writer VARCHAR(9), text VARCHAR(9))")
    transactions = engine.execution_options(isolation_level="READ COMMITTED")
    both = threading.Barrier(2, timeout=30)

    def write(writer: str, *names: str) -> str:
        note = "INSERT INTO notes VALUES ('{}', '{}')"
        with transactions.connect() as connection:
            inside = ConsumerStore(connection)
            connection.exec_driver_sql(note.format(writer, "before"))
            inside.put_allocations(names[0], body(1, p1={"VCPU": 2}))
            both.wait()
            try:
                inside.put_allocations(names[1], body(1, p1={"VCPU": 2}))
            except ServiceError:
                with pytest.raises(sa.exc.PendingRollbackError):
                    connection.exec_driver_sql(note.format(writer, "after"))
                with pytest.raises(ServiceError, match="the transaction on this connection has fa"):
                    inside.usages("p")
                with pytest.raises(sa.exc.PendingRollbackError):
                    connection.commit()
                connection.rollback()
                connection.exec_driver_sql(note.format(writer, "retried"))
            connection.commit()
        return writer

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ("one", "two"), (C1, C2), (C2, C1)))
    with engine.connect() as connection:
        notes = connection.execute(sa.text("SELECT text FROM notes ORDER BY text")).scalars().all()
    assert notes == ["before", "retried"]


def test_deadlocked_transaction_is_retried(upgraded: sa.Engine) -> None:
    # The database aborts one of two transactions; its changes are made once.
    store = ConsumerStore(upgraded)
    store.post_allocations({consumer: body(p1={"VCPU": 1}) for consumer in (C1, C2)})
    both, begun = threading.Barrier(2, timeout=30), []

    def write(first: str, second: str) -> None:
        def work(connection: sa.Connection) -> None:
            begun.append(first)
            _count_up(connection, first)
            if len(begun) <= 2:
                both.wait()
            _count_up(connection, second)

        store.in_a_transaction(work)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (C1, C2), (C2, C1)))
    assert len(begun) == 3
    assert [store.get_allocations(each)["consumer_generation"] for each in (C1, C2)] == [3, 3]


def _count_up(connection: sa.Connection, consumer: str) -> None:
    more = sa.update(consumers).values(generation=consumers.c.generation + 1)
    connection.execute(more.where(consumers.c.uuid == consumer))


# Statements that fail with a deadlock, a serialization failure or, on MariaDB, a lock timeout.
ABORTING = {
    "postgresql": (
        "DO $$ BEGIN RAISE 'deadlock detected' USING ERRCODE = '40P01'; END $$",
        "DO $$ BEGIN RAISE 'could not serialize access' USING ERRCODE = '40001'; END $$",
    ),
    "mysql": (
        "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'deadlock'",
        "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1020, MESSAGE_TEXT = 'record has changed'",
        "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'lock wait timeout'",
    ),
}


def test_transaction_aborted_five_times_raises_service_error(upgraded: sa.Engine) -> None:
    for statement in ABORTING[upgraded.dialect.name]:
        begun: list[str] = []

        def work(connection: sa.Connection, statement: str = statement, begun: Any = begun) -> None:
            begun.append(statement)
            connection.exec_driver_sql(statement)

        with pytest.raises(ServiceError, match="aborted the transaction 5 times: "):
            ConsumerStore(upgraded).in_a_transaction(work)
        assert begun == [statement] * 5


def test_missing_tables_error_names_the_upgrade_command(engine: sa.Engine) -> None:
    for ask in (ConsumerStore(engine).types, lambda: ConsumerStore(engine).usages("p")):
        with pytest.raises(ServiceError, match=r"database error: .*; run 'steelyard db upgrade'"):
            ask()


def test_store_rejects_autocommit_connection(engine: sa.Engine) -> None:
    ConsumerStore(engine.execution_options(isolation_level="AUTOCOMMIT")).upgrade()
    made = sa.create_engine(engine.url, isolation_level="AUTOCOMMIT")
    for other in (made, engine.execution_options(isolation_level="AUTOCOMMIT")):
        with other.connect() as connection, pytest.raises(BadRequest, match="AUTOCOMMIT"):
            ConsumerStore(connection)
    store = ConsumerStore(made)
    store.put_allocations(C2, body(p1={"VCPU": 1}))
    with pytest.raises(ConcurrentUpdate):
        store.post_allocations({C1: body(p1={"VCPU": 1}), C2: body(9, p1={"VCPU": 1})})
    assert store.get_allocations(C1) == {"allocations": {}}
    made.dispose()


def test_store_reconnects_after_the_server_closed_a_connection(engine: sa.Engine) -> None:
    store: Any = ConsumerStore(engine.url)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for (statement,) in connection.exec_driver_sql(KILLING[engine.dialect.name]).all():
            if isinstance(statement, str):
                connection.exec_driver_sql(statement)
    assert store.count("p") == 1
    store._database.dispose()


def write_existing(store: ConsumerStore) -> None:
    store.put_allocations(C1, store.get_allocations(C1) | {"user_id": "other"})


def create_new(store: ConsumerStore) -> None:
    store.put_allocations(C2, body(p1={"VCPU": 1}))


def delete_existing(store: ConsumerStore) -> None:
    store.delete_allocations(C1)


@pytest.mark.parametrize(
    ("change", "consumer", "generation"),
    [
        (write_existing, C1, 1),
        (create_new, C2, None),
        (delete_existing, C1, 1),
        (delete_existing, C1, None),
    ],
)
def test_write_in_an_outdated_snapshot_asks_for_a_new_transaction(
    upgraded: sa.Engine, change: Any, consumer: str, generation: int | None
) -> None:
    # In REPEATABLE READ it cannot see later writes, so reading again does not help.
    store = ConsumerStore(upgraded)
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    with upgraded.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        inside = ConsumerStore(connection)
        assert inside.count("p") == 1
        change(store)
        with pytest.raises((ConcurrentUpdate, ServiceError)) as raised:
            inside.put_allocations(consumer, body(generation, p1={"VCPU": 2}))
    message = str(raised.value)
    assert "retry in a new transaction" in message or "roll it back and retry" in message


def test_text_outside_the_character_set_raises_service_error() -> None:
    latin = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with databases.own_database(databases.needed("postgresql"), latin) as engine:
        store = ConsumerStore(engine)
        store.upgrade()
        with pytest.raises(ServiceError, match="cannot store '日本': its character set is"):
            store.put_allocations(C1, {**body(p1={"VCPU": 1}), "project_id": "日本"})
        store.put_allocations(C1, {**body(p1={"VCPU": 1}), "project_id": "é"})
        assert store.count("é") == 1


def test_store_without_a_database_name_is_rejected() -> None:
    url = databases.needed("mariadb").set(database="")
    with pytest.raises(BadRequest, match="missing database name"):
        ConsumerStore(url)
    engine = sa.create_engine(url)
    with pytest.raises(ServiceError, match="or the connection has no database selected"):
        ConsumerStore(engine).upgrade()
    engine.dispose()


def test_parameter_unknown_to_the_driver_is_rejected() -> None:
    url = databases.needed("mariadb").set(database="none").update_query_dict({"foo": "1"})
    with pytest.raises(BadRequest, match=r"the driver rejects it: .*'foo'"):
        ConsumerStore(url).usages("p")
