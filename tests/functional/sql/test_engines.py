"""Stores on URLs, engines and connections, valid and invalid."""

import concurrent.futures
import pathlib
import sys
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.consumers.model import allocations, consumers
from steelyard.errors import BadRequest, MissingExtra, ServiceError
from support.consumers.store_laws import C1, body

pytestmark = pytest.mark.usefixtures("closed_databases")

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "invalid database URL: expected one such as sqlite:///consumers.db"),
        (f"ada:{SECRET}@h/db", "invalid database URL: expected"),
        (f"postgresql+psycopg://ada:{SECRET}", "invalid database URL: expected"),
        (f"postgresql+psycopg://ada:{SECRET}@h:port/db", "invalid database URL: expected"),
        (f"postgres://ada:{SECRET}@h/db", "invalid database URL 'postgres://…': expected one such"),
        (f"postgres://ada:{SECRET}/2@h/db", "postgresql+psycopg://user@host/name"),
        (f"postgres://h/db?password={SECRET}", "mysql+pymysql://user@host/name"),
        (f"mssql+pyodbc://ada:{SECRET}@h/db", "invalid database URL 'mssql+pyodbc://…': expected"),
        (
            f"postgresql+what://ada:{SECRET}@h/db",
            "invalid database URL 'postgresql+what://…': expected",
        ),
        (
            f"postgresql+asyncpg://ada:{SECRET}@h/db",
            "the driver is for asyncio, and stores are synchronous; use po",
        ),
        (f"mysql+aiomysql://ada:{SECRET}@h/db", "use mysql+pymysql://"),
        ("sqlite+aiosqlite:///a.db", "'sqlite+aiosqlite://…': the driver is for asyncio"),
        (f"mysql+pymysql://ada:{SECRET}@h/", "missing database name; use mysql+pymysql://us"),
        (f"mariadb+pymysql://ada:{SECRET}@h", "use mariadb+pymysql://user@host/name"),
        ("sqlite:///a.db?timeout=abc", "the driver rejects it: could not convert string to"),
    ],
)
def test_store_rejects_invalid_url_without_quoting_its_password(written: str, message: str) -> None:
    # The error quotes no part of the URL that may contain a password.
    for given in (written, as_url(written)):
        with pytest.raises(BadRequest) as raised:
            ConsumerStore(given)
        assert message in str(raised.value)
        assert SECRET not in str(raised.value)
        assert "hunter" not in repr(raised.value.__cause__)


def as_url(written: str) -> Any:
    try:
        return sa.make_url(written)
    except (sa.exc.ArgumentError, ValueError):
        return written


@pytest.mark.parametrize(
    ("written", "module", "advice"),
    [
        ("mysql://h/db", "MySQLdb", "use mysql+pymysql:// and run {install} no-such-mysql"),
        ("mysql+pymysql://h/db", "pymysql", "run {install} no-such-mysql"),
        ("mariadb+pymysql://h/db", "pymysql", "run {install} no-such-mysql"),
        ("postgresql+psycopg2://h/db", "psycopg2", "use postgresql+psycopg://"),
        ("sqlite+pysqlcipher:///a.db", "pysqlcipher3", "use sqlite://"),
    ],
)
def test_store_without_the_driver_names_the_one_to_install(
    monkeypatch: Any, requirements: Any, written: str, module: str, advice: str
) -> None:
    requirements("no-such-mysql; extra == 'mysql'", "pytest; extra == 'postgresql'")
    monkeypatch.setitem(sys.modules, module, None)
    scheme = written.partition(":")[0]
    with pytest.raises(MissingExtra) as raised:
        ConsumerStore(written)
    assert str(raised.value) == (
        f"missing database driver '{module}' for {scheme}://; "
        f"{advice.format(install=f'{sys.executable} -m pip install')}"
    )


def test_store_with_an_installed_driver_that_lacks_a_module_reports_the_module(
    monkeypatch: Any, requirements: Any
) -> None:
    requirements("pytest; extra == 'postgresql'")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        MissingExtra,
        match=r"cannot load the database driver for postgresql\+psycopg://: .* psycopg halted",
    ):
        ConsumerStore("postgresql+psycopg://h/db")


def test_store_with_a_driver_without_its_library_reports_the_import_error(
    monkeypatch: Any, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('no pq wrapper\\navailable')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "psycopg", raising=False)
    with pytest.raises(MissingExtra, match=r"for postgresql\+psycopg://: no pq wrapper ava"):
        ConsumerStore("postgresql+psycopg://h/db")


def test_parameter_unknown_to_the_driver_is_rejected_on_connecting(url: str) -> None:
    # Drivers check parameters only when they connect.
    engine = sa.make_url(url)
    store = ConsumerStore(engine.update_query_dict({"uri": "true"}))
    store.upgrade()

    def connect(*args: object, **_arguments: object) -> None:
        raise TypeError("got an unexpected keyword argument 'foo'")

    made: Any = ConsumerStore(url)
    made._database.dialect.connect = connect
    with pytest.raises(BadRequest, match="the driver rejects it: got an unexpected keyword"):
        made.usages("p")


@pytest.mark.parametrize("given", [pathlib.Path("consumers.db"), None, 5, sa.MetaData()])
def test_store_rejects_other_types(given: Any) -> None:
    with pytest.raises(
        BadRequest, match=f"invalid argument of type '{type(given).__name__}' for a store: "
    ):
        ConsumerStore(given)


@pytest.mark.parametrize("level_of", ["engine", "connection"])
def test_store_rejects_autocommit_connection(url: str, level_of: str) -> None:
    level: Any = {"isolation_level": "AUTOCOMMIT"}
    made = sa.create_engine(url, **level if level_of == "engine" else {})
    options = {} if level_of == "engine" else level
    with (
        made.connect().execution_options(**options) as connection,
        pytest.raises(BadRequest, match="AUTOCOMMIT; pass a connection with another level"),
    ):
        ConsumerStore(connection)


def test_threads_share_an_in_memory_database() -> None:
    for written in ("sqlite://", "sqlite:///:memory:", "sqlite:///file:a?mode=memory&uri=true"):
        store = ConsumerStore(written)
        store.upgrade()

        def add(number: int, store: ConsumerStore = store) -> None:
            consumer = f"00000000-0000-4000-8000-0000000001{number:02}"
            store.put_allocations(consumer, body(p1={"VCPU": 1}))

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(add, range(40)))
        assert store.count("p") == 40


@pytest.mark.parametrize(("query", "milliseconds"), [("", 10_000), ("?timeout=3", 3000)])
def test_store_sets_the_lock_timeout_of_sqlite(url: str, query: str, milliseconds: int) -> None:
    timeout = sa.text("PRAGMA busy_timeout")
    store = ConsumerStore(url + query)
    store.upgrade()
    found = store.reading(lambda one: one.execute(timeout).scalar())
    assert found == milliseconds


def test_upgrade_sets_wal_mode(url: str) -> None:
    # The mode belongs to the file, so other programs use it too.
    ConsumerStore(url).upgrade()
    with sa.create_engine(url).connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_store_enforces_foreign_keys(url: str) -> None:
    # Each connection of the store enforces foreign keys.
    store = ConsumerStore(url)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 1}))

    def insert_orphan(connection: sa.Connection) -> None:
        row = {"resource_provider": C1, "resource_class": "VCPU", "used": 1}
        connection.execute(sa.insert(allocations).values(consumer_id=99, **row))

    with pytest.raises(ServiceError, match="FOREIGN KEY constraint failed"):
        store.in_a_transaction(insert_orphan)
    store.in_a_transaction(lambda connection: connection.execute(sa.delete(consumers)))
    left = sa.select(sa.func.count()).select_from(allocations)
    assert store.reading(lambda connection: connection.execute(left).scalar()) == 0


def test_file_without_a_database_raises_service_error(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, and no database of anybody's. " * 50)
    for ask in (ConsumerStore.upgrade, ConsumerStore.current):
        with pytest.raises(ServiceError, match="database error: file is not a database"):
            ask(ConsumerStore(f"sqlite:///{path}"))


def test_no_connection_becomes_free(url: str) -> None:
    ConsumerStore(url).upgrade()
    small = sa.create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.01)
    with small.connect(), pytest.raises(ServiceError, match=r"no database connection available"):
        ConsumerStore(small).put_allocations(C1, body(p1={"VCPU": 1}))
