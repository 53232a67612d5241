"""Transactions and schema changes of stores on SQLite."""

import concurrent.futures
import contextlib
import itertools
import pathlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.errors import ConcurrentUpdate, ServiceError
from support.consumers.store_laws import C1, C2, body
from support.sql import store_laws
from support.sql.store_laws import KINDS

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
    """Create an engine with the events that SQLAlchemy's documentation recommends."""
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
def locked_by_a_writer(path: pathlib.Path) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def cases() -> Iterator[tuple[Any, Any]]:
    """Yield each law with each kind of engine that it applies to."""
    for check in store_laws.CHECKS:
        for make in ENGINES:
            # The processes create their engines from the URL.
            if check is store_laws.check_processes_upgrade_concurrently and make is not ordinary:
                continue
            # Stores reject AUTOCOMMIT connections.
            if check is store_laws.check_upgrade_in_a_callers_transaction and make is committing:
                continue
            yield check, make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("check", "make"), list(cases()))
def test_store_obeys_the_laws_of_schemas(url: str, kind: Any, make: Any, check: Any) -> None:
    check(make(url), kind)


def test_threads_upgrade_separate_databases(tmp_path: pathlib.Path) -> None:
    stores = [
        kind(f"sqlite:///{tmp_path}/{number}.db")
        for number, kind in zip(range(12), itertools.cycle(KINDS), strict=False)
    ]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda store: store.upgrade(), stores))
    assert [store.current() for store in stores] == [store.history()[-1][0] for store in stores]
    for number, kind in zip(range(12), itertools.cycle(KINDS), strict=False):
        found = store_laws.tables(sa.create_engine(f"sqlite:///{tmp_path}/{number}.db"), kind)
        assert set(found) == set(kind.metadata.tables)


@pytest.mark.parametrize("make", ENGINES)
def test_delete_keeps_a_new_consumer_with_the_same_id(url: str, make: Any) -> None:
    # Another store deletes the consumer and creates one to which SQLite gives the same id.
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
def test_failed_write_changes_nothing(url: str, make: Any) -> None:
    store = ConsumerStore(make(url))
    store.upgrade()
    store.put_allocations(C2, body(p1={"VCPU": 1}))
    with pytest.raises(ConcurrentUpdate):
        store.post_allocations({C1: body(p1={"VCPU": 1}), C2: body(9, p1={"VCPU": 1})})
    assert store.get_allocations(C1) == {"allocations": {}}
    store.post_allocations({C1: body(p1={"VCPU": 1}), C2: body(1, p1={"VCPU": 1})})
    assert store.count("p") == 2


@pytest.mark.parametrize("make", ENGINES)
def test_threads_update_a_consumer_without_lost_updates(url: str, make: Any) -> None:
    # Each thread reads and writes in one transaction, so there are no conflicts.
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
def test_store_begins_the_transaction_of_the_connection(url: str, make: Any) -> None:
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
def test_reader_does_not_wait_for_a_writer(url: str, path: pathlib.Path, journal: str) -> None:
    # The lock also prevents setting the journal mode.
    ConsumerStore(sa.create_engine(url)).upgrade()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
    store = ConsumerStore(f"{url}?timeout=0.01")
    with locked_by_a_writer(path):
        assert store.current() == store.history()[-1][0]
        assert store.usages("p") == {"usages": {}}
        with sa.create_engine(f"{url}?timeout=0.01").connect() as connection:
            assert ConsumerStore(connection).current() == store.current()


def test_lock_timeout_raises_service_error(url: str, path: pathlib.Path) -> None:
    # The store does not retry, because SQLite has already waited.
    ConsumerStore(url).upgrade()
    engine = sa.create_engine(f"{url}?timeout=0.01")
    failures: list[Any] = []
    sa.event.listen(engine, "handle_error", failures.append)
    advice = "database is locked; another connection is writing: retry, or wait longer"
    with locked_by_a_writer(path):
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


def test_text_outside_the_character_set_raises_service_error(url: str) -> None:
    def work(_connection: sa.Connection) -> None:
        "a日本".encode("latin-1")

    store = ConsumerStore(url)
    store.upgrade()
    with pytest.raises(ServiceError, match="cannot store '日本': its character set is lat"):
        store.in_a_transaction(work)
