"""What stores take: URLs, engines, connections; and how they say no."""

import concurrent.futures
import pathlib
import sys
from typing import Any

import pytest
import sqlalchemy as sa
from consumer_stores import C1, body

from steelyard.consumers import ConsumerStore
from steelyard.consumers.model import allocations, consumers
from steelyard.errors import BadRequest, MissingExtra, ServiceError

pytestmark = pytest.mark.usefixtures("closed_databases")

SECRET = "hunter2"


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f"sqlite:///{tmp_path}/consumers.db"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "what was given is no URL of a database; write one such as sqlite:///consumers.db"),
        (f"ada:{SECRET}@h/db", "what was given is no URL of a database"),
        (f"postgresql+psycopg://ada:{SECRET}", "what was given is no URL of a database"),
        (f"postgresql+psycopg://ada:{SECRET}@h:port/db", "what was given is no URL of a database"),
        (f"postgres://ada:{SECRET}@h/db", "postgres://… is no URL of a database; write one such"),
        (f"postgres://ada:{SECRET}/2@h/db", "postgresql+psycopg://user@host/name"),
        (f"postgres://h/db?password={SECRET}", "mysql+pymysql://user@host/name"),
        (f"mssql+pyodbc://ada:{SECRET}@h/db", "mssql+pyodbc://… is no URL of a database"),
        (f"postgresql+what://ada:{SECRET}@h/db", "postgresql+what://… is no URL of a database"),
        (f"postgresql+asyncpg://ada:{SECRET}@h/db", "is for asyncio, and a store is not: write po"),
        (f"mysql+aiomysql://ada:{SECRET}@h/db", "write mysql+pymysql://"),
        ("sqlite+aiosqlite:///a.db", "sqlite+aiosqlite:// is for asyncio, and a store is not"),
        (f"mysql+pymysql://ada:{SECRET}@h/", "the URL names no database: write mysql+pymysql://us"),
        (f"mariadb+pymysql://ada:{SECRET}@h", "write mariadb+pymysql://user@host/name"),
        ("sqlite:///a.db?timeout=abc", "not as its driver wants it: could not convert string to"),
    ],
)
def test_a_url_that_cannot_be_used(written: str, said: str) -> None:
    """Nothing of it is shown that may be a password."""
    for given in (written, as_url(written)):
        with pytest.raises(BadRequest) as raised:
            ConsumerStore(given)
        assert said in str(raised.value)
        assert SECRET not in str(raised.value)
        assert "hunter" not in repr(raised.value.__cause__)


def as_url(written: str) -> Any:
    try:
        return sa.make_url(written)
    except (sa.exc.ArgumentError, ValueError):
        return written


@pytest.mark.parametrize(
    ("written", "module", "said"),
    [
        ("mysql://h/db", "MySQLdb", "write mysql+pymysql:// and run {install} no-such-mysql"),
        ("mysql+pymysql://h/db", "pymysql", "run {install} no-such-mysql"),
        ("mariadb+pymysql://h/db", "pymysql", "run {install} no-such-mysql"),
        ("postgresql+psycopg2://h/db", "psycopg2", "write postgresql+psycopg://"),
        ("sqlite+pysqlcipher:///a.db", "pysqlcipher3", "write sqlite://"),
    ],
)
def test_store_without_the_driver_names_the_one_to_install(
    monkeypatch: Any, requirements: Any, written: str, module: str, said: str
) -> None:
    requirements("no-such-mysql; extra == 'mysql'", "pytest; extra == 'postgresql'")
    monkeypatch.setitem(sys.modules, module, None)
    scheme = written.partition(":")[0]
    with pytest.raises(MissingExtra) as raised:
        ConsumerStore(written)
    assert str(raised.value) == (
        f"a database at {scheme}:// needs '{module}': the driver is not installed; "
        f"{said.format(install=f'{sys.executable} -m pip install')}"
    )


def test_store_with_an_installed_driver_that_lacks_a_module_reports_the_module(
    monkeypatch: Any, requirements: Any
) -> None:
    requirements("pytest; extra == 'postgresql'")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"psycopg:// cannot be loaded: .* psycopg halted"):
        ConsumerStore("postgresql+psycopg://h/db")


def test_a_driver_that_lacks_its_library(monkeypatch: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('no pq wrapper\\navailable')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "psycopg", raising=False)
    with pytest.raises(MissingExtra, match=r"psycopg:// cannot be loaded: no pq wrapper ava"):
        ConsumerStore("postgresql+psycopg://h/db")


def test_a_parameter_that_a_driver_does_not_take(url: str) -> None:
    """It is looked at only when the database is connected to."""
    engine = sa.make_url(url)
    store = ConsumerStore(engine.update_query_dict({"uri": "true"}))
    store.upgrade()

    def connect(*args: object, **_arguments: object) -> None:
        raise TypeError("got an unexpected keyword argument 'foo'")

    made: Any = ConsumerStore(url)
    made._database.dialect.connect = connect
    with pytest.raises(BadRequest, match="not as its driver wants it: got an unexpected keyword"):
        made.usages("p")


@pytest.mark.parametrize("given", [pathlib.Path("consumers.db"), None, 5, sa.MetaData()])
def test_what_is_nothing_of_sqlalchemys(given: Any) -> None:
    with pytest.raises(BadRequest, match=f"a store takes a URL, .*, no {type(given).__name__}; "):
        ConsumerStore(given)


@pytest.mark.parametrize("when", ["the engine is made", "it is an option"])
def test_a_connection_that_commits_by_itself_is_refused(url: str, when: str) -> None:
    level: Any = {"isolation_level": "AUTOCOMMIT"}
    made = sa.create_engine(url, **level if when == "the engine is made" else {})
    asked = {} if when == "the engine is made" else level
    with (
        made.connect().execution_options(**asked) as connection,
        pytest.raises(BadRequest, match="AUTOCOMMIT; give one with another level, such as"),
    ):
        ConsumerStore(connection)


def test_threads_share_a_database_in_memory() -> None:
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
def test_how_long_sqlite_waits(url: str, query: str, milliseconds: int) -> None:
    asked = sa.text("PRAGMA busy_timeout")
    found = ConsumerStore(url + query).reading(lambda one: one.execute(asked).scalar())
    assert found == milliseconds


def test_a_file_has_a_log_that_is_written_ahead(url: str) -> None:
    """It is the file's: also for who opens it without a store."""
    ConsumerStore(url).upgrade()
    with sa.create_engine(url).connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_a_consumer_takes_its_allocations_along(url: str) -> None:
    """Whoever removes one by hand, and the store: foreign keys are looked at on each connection."""
    store = ConsumerStore(url)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 1}))

    def of_nobody(connection: sa.Connection) -> None:
        said = {"resource_provider": C1, "resource_class": "VCPU", "used": 1}
        connection.execute(sa.insert(allocations).values(consumer_id=99, **said))

    with pytest.raises(ServiceError, match="FOREIGN KEY constraint failed"):
        store.in_a_transaction(of_nobody)
    store.in_a_transaction(lambda connection: connection.execute(sa.delete(consumers)))
    left = sa.select(sa.func.count()).select_from(allocations)
    assert store.reading(lambda connection: connection.execute(left).scalar()) == 0


def test_a_file_that_is_no_database(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, and no database of anybody's. " * 50)
    for ask in (ConsumerStore.upgrade, ConsumerStore.current):
        with pytest.raises(ServiceError, match="cannot do it: file is not a database"):
            ask(ConsumerStore(f"sqlite:///{path}"))


def test_no_connection_becomes_free(url: str) -> None:
    ConsumerStore(url).upgrade()
    small = sa.create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.01)
    with small.connect(), pytest.raises(ServiceError, match=r"no connection .* has become free"):
        ConsumerStore(small).put_allocations(C1, body(p1={"VCPU": 1}))
