"""Stores on PostgreSQL and MariaDB: their transactions, and how their tables come and go."""

import concurrent.futures
import threading
from collections.abc import Iterator
from typing import Any

import any_store
import pytest
import sqlalchemy as sa
from consumer_stores import C1, C2, body
from services import databases

from steelyard.consumers import ConsumerStore
from steelyard.consumers.model import consumers
from steelyard.errors import BadRequest, Conflict, ServiceError

# What ends every other connection to the database.
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


@pytest.fixture(params=["postgresql", "mariadb"])
def engine(request: Any) -> Iterator[sa.Engine]:
    with databases.own_database(databases.needed(request.param)) as engine:
        yield engine


@pytest.mark.parametrize("kind", any_store.KINDS)
@pytest.mark.parametrize("check", any_store.CHECKS)
def test_the_tables(engine: sa.Engine, kind: Any, check: Any) -> None:
    check(engine, kind)


def test_nobody_keeps_the_turn_to_upgrade(engine: sa.Engine) -> None:
    """Whoever has failed, or has done it in a transaction that is over, is in nobody's way."""
    small = sa.create_engine(engine.url, pool_size=1, max_overflow=0)
    for _ in range(2):
        with pytest.raises(Conflict, match="nowhere"):
            ConsumerStore(small).upgrade("nowhere")
        with engine.begin() as connection:
            ConsumerStore(connection).upgrade()
        ConsumerStore(small).upgrade()
    small.dispose()


def test_a_transaction_that_is_given_up_is_over(engine: sa.Engine) -> None:
    """MariaDB has undone what the caller did before it too: what comes after must not be done."""
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
                with pytest.raises(ServiceError, match="the transaction on this connection is ove"):
                    inside.usages("p")
                with pytest.raises(sa.exc.PendingRollbackError):
                    connection.commit()
                connection.rollback()
                connection.exec_driver_sql(note.format(writer, "anew"))
            connection.commit()
        return writer

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ("one", "two"), (C1, C2), (C2, C1)))
    with engine.connect() as connection:
        notes = connection.execute(sa.text("SELECT text FROM notes ORDER BY text")).scalars().all()
    assert notes == ["anew", "before"]


def test_a_deadlock_is_begun_again(engine: sa.Engine) -> None:
    """The database gives up one of two that wait for each other; what it had done is done once."""
    store = ConsumerStore(engine)
    store.upgrade()
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


# What has the database say that there is a deadlock, that a transaction is too old, or, on MariaDB,
# that it has waited too long.
GIVING_UP = {
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


def test_what_is_always_given_up_is_told_in_the_end(engine: sa.Engine) -> None:
    for said in GIVING_UP[engine.dialect.name]:
        begun: list[str] = []

        def work(connection: sa.Connection, said: str = said, begun: Any = begun) -> None:
            begun.append(said)
            connection.exec_driver_sql(said)

        with pytest.raises(ServiceError, match="has given up the transaction 5 times: "):
            ConsumerStore(engine).in_a_transaction(work)
        assert begun == [said] * 5


def test_a_database_without_the_tables_says_so(engine: sa.Engine) -> None:
    for ask in (ConsumerStore(engine).types, lambda: ConsumerStore(engine).usages("p")):
        with pytest.raises(ServiceError, match=r"cannot do it: .*; steelyard db upgrade bri"):
            ask()


def test_a_connection_that_commits_by_itself_is_refused(engine: sa.Engine) -> None:
    ConsumerStore(engine.execution_options(isolation_level="AUTOCOMMIT")).upgrade()
    made = sa.create_engine(engine.url, isolation_level="AUTOCOMMIT")
    for other in (made, engine.execution_options(isolation_level="AUTOCOMMIT")):
        with other.connect() as connection, pytest.raises(BadRequest, match="AUTOCOMMIT"):
            ConsumerStore(connection)
    store = ConsumerStore(made)
    store.put_allocations(C2, body(p1={"VCPU": 1}))
    with pytest.raises(Conflict):
        store.post_allocations({C1: body(p1={"VCPU": 1}), C2: body(9, p1={"VCPU": 1})})
    assert store.get_allocations(C1) == {"allocations": {}}
    made.dispose()


def test_a_connection_that_the_server_has_closed(engine: sa.Engine) -> None:
    store: Any = ConsumerStore(engine.url)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for (said,) in connection.exec_driver_sql(KILLING[engine.dialect.name]).all():
            if isinstance(said, str):
                connection.exec_driver_sql(said)
    assert store.count("p") == 1
    store._database.dispose()


def written(store: ConsumerStore) -> None:
    store.put_allocations(C1, store.get_allocations(C1) | {"user_id": "other"})


def created(store: ConsumerStore) -> None:
    store.put_allocations(C2, body(p1={"VCPU": 1}))


def deleted(store: ConsumerStore) -> None:
    store.delete_allocations(C1)


@pytest.mark.parametrize(
    ("others", "consumer", "generation"),
    [(written, C1, 1), (created, C2, None), (deleted, C1, 1), (deleted, C1, None)],
)
def test_a_transaction_that_is_too_old(
    engine: sa.Engine, others: Any, consumer: str, generation: int | None
) -> None:
    """Of what others have written since it began it sees nothing: to read again is no use."""
    store = ConsumerStore(engine)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        inside = ConsumerStore(connection)
        assert inside.count("p") == 1
        others(store)
        with pytest.raises((Conflict, ServiceError)) as raised:
            inside.put_allocations(consumer, body(generation, p1={"VCPU": 2}))
    said = str(raised.value)
    assert "read its allocations again, in a new one" in said or "begin it again" in said


def test_a_database_for_few_letters() -> None:
    latin = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with databases.own_database(databases.needed("postgresql"), latin) as engine:
        store = ConsumerStore(engine)
        store.upgrade()
        with pytest.raises(ServiceError, match="cannot keep '日本': its characters are those of"):
            store.put_allocations(C1, {**body(p1={"VCPU": 1}), "project_id": "日本"})
        store.put_allocations(C1, {**body(p1={"VCPU": 1}), "project_id": "é"})
        assert store.count("é") == 1


def test_a_server_without_a_database() -> None:
    url = databases.needed("mariadb").set(database="")
    with pytest.raises(BadRequest, match="the URL names no database"):
        ConsumerStore(url)
    engine = sa.create_engine(url)
    with pytest.raises(ServiceError, match="or the connection names no database"):
        ConsumerStore(engine).upgrade()
    engine.dispose()


def test_a_parameter_that_a_driver_does_not_take() -> None:
    url = databases.needed("mariadb").set(database="none").update_query_dict({"foo": "1"})
    with pytest.raises(BadRequest, match=r"not as its driver wants it: .*'foo'"):
        ConsumerStore(url).usages("p")
