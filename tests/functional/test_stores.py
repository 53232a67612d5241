"""Stores on SQLite: their transactions, and how their tables come and go."""

import concurrent.futures
import contextlib
import itertools
import pathlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import any_store
import pytest
import sqlalchemy as sa
from any_store import KINDS
from consumer_stores import C1, C2, body

from steelyard.consumers import ConsumerStore
from steelyard.errors import Conflict, ServiceError

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "consumers.db"


@pytest.fixture
def url(path: pathlib.Path) -> str:
    return f"sqlite:///{path}"


def ordinary(url: str) -> sa.Engine:
    return sa.create_engine(url)


def committing(url: str) -> sa.Engine:
    return sa.create_engine(url, isolation_level="AUTOCOMMIT")


def with_events(url: str) -> sa.Engine:
    """As SQLAlchemy's documentation tells to do."""
    engine = sa.create_engine(url)

    def take_over(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    sa.event.listen(engine, "connect", take_over)
    sa.event.listen(engine, "begin", begin)
    return engine


ENGINES = [ordinary, committing, with_events]


@contextlib.contextmanager
def somebody_else_writing(path: pathlib.Path) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", ENGINES)
@pytest.mark.parametrize("check", any_store.CHECKS)
def test_the_tables(url: str, kind: Any, make: Any, check: Any) -> None:
    if check is any_store.check_the_caller_decides_on_an_upgrade and make is committing:
        pytest.skip("such a connection is refused")
    check(make(url), kind)


def test_threads_upgrade_a_database_each(tmp_path: pathlib.Path) -> None:
    stores = [
        kind(f"sqlite:///{tmp_path}/{number}.db")
        for number, kind in zip(range(24), itertools.cycle(KINDS), strict=False)
    ]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda store: store.upgrade(), stores))
    assert [store.current() for store in stores] == [store.history()[-1][0] for store in stores]
    for number, kind in zip(range(24), itertools.cycle(KINDS), strict=False):
        there = any_store.tables(sa.create_engine(f"sqlite:///{tmp_path}/{number}.db"), kind)
        assert set(there) == set(kind.metadata.tables)


@pytest.mark.parametrize("make", ENGINES)
def test_a_delete_removes_nobody_else(url: str, make: Any) -> None:
    """Somebody deletes the same consumer, and creates another one, which SQLite gives its id."""
    engine = make(url)
    store = ConsumerStore(engine)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    other = ConsumerStore(f"{url}?timeout=0.01")
    written = []

    def meanwhile(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("DELETE FROM allocations"):
            with contextlib.suppress(ServiceError):
                other.delete_allocations(C1)
                other.put_allocations(C2, body(p1={"VCPU": 1}))
                written.append(C2)

    sa.event.listen(engine, "before_cursor_execute", meanwhile)
    store.delete_allocations(C1)
    assert other.get_allocations(C1) == {"allocations": {}}
    assert bool(other.get_allocations(C2)["allocations"]) == bool(written)


@pytest.mark.parametrize("make", ENGINES)
def test_a_write_on_any_engine_is_whole(url: str, make: Any) -> None:
    store = ConsumerStore(make(url))
    store.upgrade()
    store.put_allocations(C2, body(p1={"VCPU": 1}))
    with pytest.raises(Conflict):
        store.post_allocations({C1: body(p1={"VCPU": 1}), C2: body(9, p1={"VCPU": 1})})
    assert store.get_allocations(C1) == {"allocations": {}}
    store.post_allocations({C1: body(p1={"VCPU": 1}), C2: body(1, p1={"VCPU": 1})})
    assert store.count("p") == 2


@pytest.mark.parametrize("make", ENGINES)
def test_threads_add_on_any_engine(url: str, make: Any) -> None:
    """Each reads and writes in one transaction: there is nothing to conflict with."""
    store = ConsumerStore(make(url))
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 1}))

    def add(connection: sa.Connection) -> None:
        inside = ConsumerStore(connection)
        inside.put_allocations(C1, {**inside.get_allocations(C1), "user_id": "other"})

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(store.in_a_transaction, [add] * 20))
    assert store.get_allocations(C1)["consumer_generation"] == 21


@pytest.mark.parametrize("make", [ordinary, with_events])
def test_a_connection_that_has_not_begun(url: str, make: Any) -> None:
    engine = make(url)
    with engine.connect() as connection:
        store = ConsumerStore(connection)
        store.upgrade()
        store.put_allocations(C1, body(p1={"VCPU": 1}))
        connection.rollback()
        assert store.current() is None


def test_reading_on_a_connection_leaves_no_lock(url: str) -> None:
    ConsumerStore(url).upgrade()
    other = ConsumerStore(f"{url}?timeout=0.01")
    with sa.create_engine(url).connect() as connection:
        inside = ConsumerStore(connection)
        assert inside.usages("p") == {"usages": {}}
        assert inside.current() == other.history()[-1][0]
        other.put_allocations(C1, body(p1={"VCPU": 1}))
        inside.put_allocations(C2, body(p1={"VCPU": 1}))
        assert inside.count("p") == 2
        connection.rollback()
    assert other.count("p") == 1


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_who_reads_waits_for_nobody(url: str, path: pathlib.Path, journal: str) -> None:
    """Not even where the mode of the file cannot be set now."""
    ConsumerStore(sa.create_engine(url)).upgrade()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
    store = ConsumerStore(f"{url}?timeout=0.01")
    with somebody_else_writing(path):
        assert store.current() == store.history()[-1][0]
        assert store.usages("p") == {"usages": {}}
        with sa.create_engine(f"{url}?timeout=0.01").connect() as connection:
            assert ConsumerStore(connection).current() == store.current()


def test_who_has_waited_long_enough_is_told(url: str, path: pathlib.Path) -> None:
    """Once: SQLite has waited already."""
    ConsumerStore(url).upgrade()
    engine = sa.create_engine(f"{url}?timeout=0.01")
    failures: list[Any] = []
    sa.event.listen(engine, "handle_error", failures.append)
    advice = "database is locked; somebody else is writing to it: try again, and wait longer"
    with somebody_else_writing(path):
        for store in (ConsumerStore(engine), ConsumerStore(f"{url}?timeout=0.01")):
            with pytest.raises(ServiceError, match=advice):
                store.put_allocations(C1, body(p1={"VCPU": 1}))
            with pytest.raises(ServiceError, match=advice):
                store.upgrade()
        assert len(failures) == 2
        with engine.connect() as connection:
            with pytest.raises(ServiceError, match=advice):
                ConsumerStore(connection).put_allocations(C1, body(p1={"VCPU": 1}))
            assert connection.exec_driver_sql("SELECT 1").scalar() == 1


class Deadlock(Exception):
    sqlstate = "40P01"


def given_up(_connection: sa.Connection) -> None:
    raise sa.exc.OperationalError("UPDATE", {}, Deadlock("deadlock detected"))


def test_a_transaction_that_is_given_up_is_begun_again(monkeypatch: Any, url: str) -> None:
    """After pauses that differ, and at once when it is no use any more."""
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr("random.uniform", random.Random(1).uniform)
    store = ConsumerStore(url)
    for do in (store.in_a_transaction, store.reading):
        pauses.clear()
        with pytest.raises(ServiceError, match="given up the transaction 5 times: deadlock") as e:
            do(given_up)
        assert type(e.value) is ServiceError
        assert [pause > 0 for pause in pauses] == [False, True, True, True, True]
        assert 2 * pauses[1] != pauses[2]
    attempts: Iterator[Callable[[sa.Connection], None]] = iter([given_up, lambda _connection: None])
    store.in_a_transaction(lambda connection: next(attempts)(connection))  # noqa: PLW0108
    assert list(attempts) == []


def test_a_transaction_of_the_callers_that_is_given_up_is_over(url: str) -> None:
    ConsumerStore(url).upgrade()
    with sa.create_engine(url).connect() as connection:
        store = ConsumerStore(connection)
        store.put_allocations(C1, body(p1={"VCPU": 1}))
        for do in (store.in_a_transaction, store.reading):
            with pytest.raises(ServiceError, match="deadlock detected; roll it back, and begin it"):
                do(given_up)
            with pytest.raises(ServiceError, match="is over: roll it back, and begin it again"):
                store.usages("p")
            with pytest.raises(sa.exc.PendingRollbackError):
                connection.exec_driver_sql("SELECT 1")
            connection.rollback()
        assert store.usages("p") == {"usages": {}}


def test_what_has_failed_is_told_even_if_it_cannot_be_undone(url: str) -> None:
    def work(connection: sa.Connection) -> None:
        connection.exec_driver_sql("ROLLBACK")
        raise KeyError("mine")

    with sa.create_engine(url).connect() as connection:
        with pytest.raises(KeyError, match="mine"):
            ConsumerStore(connection).in_a_transaction(work)
        with pytest.raises(sa.exc.PendingRollbackError):
            connection.exec_driver_sql("SELECT 1")


def test_text_that_the_database_has_no_bytes_for(url: str) -> None:
    def work(_connection: sa.Connection) -> None:
        "a日本".encode("latin-1")

    with pytest.raises(ServiceError, match="cannot keep '日本': its characters are those of lat"):
        ConsumerStore(url).in_a_transaction(work)
