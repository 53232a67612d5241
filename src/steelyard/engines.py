"""Engines for stores: from URLs, or as they are given; and when SQLite's transactions begin."""

import sqlite3
from typing import Any, Literal

import sqlalchemy as sa

from steelyard import errors, extras

PATIENCE = 10
"""How many seconds SQLite waits for others, unless its URL has a ``?timeout=``."""

READING: Literal["BEGIN"] = "BEGIN"
WRITING: Literal["BEGIN IMMEDIATE"] = "BEGIN IMMEDIATE"
"""Who is going to write says so at once, and waits; else SQLite notices it too late."""

Purpose = Literal["BEGIN", "BEGIN IMMEDIATE"]

# Statements see what others have committed before each of them. What has been read is checked again
# where it is written: a generation, a unique name. SQLite lets nobody else write in between, once
# the transaction has begun for writing.
_ISOLATION: Literal["READ COMMITTED"] = "READ COMMITTED"

# How each kind of database is written in a URL, and the extra with its driver; SQLite needs none.
_KINDS = {
    "sqlite": ("sqlite", ""),
    "postgresql": ("postgresql+psycopg", "postgresql"),
    "mysql": ("mysql+pymysql", "mysql"),
    "mariadb": ("mariadb+pymysql", "mysql"),
}
_SUCH = (
    "is no URL of a database; write one such as sqlite:///consumers.db, "
    "postgresql+psycopg://user@host/name or mysql+pymysql://user@host/name"
)


def prepared(where: str | sa.URL | sa.Engine | sa.Connection) -> sa.Engine | sa.Connection:
    """What a store works on, if the transactions there can be transactions."""
    match where:
        case str() | sa.URL():
            return _at(where)
        case sa.Engine():
            return _given(where)
        case sa.Connection():
            if _autocommits(where):
                raise errors.BadRequest(
                    "the connection commits each statement by itself: its isolation level is "
                    "AUTOCOMMIT; give one with another level, such as READ COMMITTED, or the engine"
                )
            return where
    raise errors.BadRequest(
        f"a store takes a URL, an engine or a connection of SQLAlchemy's, no "
        f"{type(where).__name__}; write a file as sqlite:///file, and take the connection() of a "
        f"session"
    )


def begin(connection: sa.Connection, purpose: Purpose) -> None:
    """Begins the database's transaction, where an engine's has just begun.

    sqlite3 would begin one only with the first change: what is read before that could be changed by
    others.
    """
    if connection.dialect.name == "sqlite":
        if _has_begun(connection):  # by an event of the engine's, for whatever purpose
            connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql(purpose)


def join(connection: sa.Connection, purpose: Purpose) -> None:
    """Sees to it that what is written is written in the caller's transaction, and not before it.

    A savepoint in SQLite without a transaction is one itself. That is good enough for reading, and
    leaves no lock behind.
    """
    if connection.dialect.name == "sqlite" and purpose == WRITING:
        if not connection.in_transaction():
            connection.begin()
        if not _has_begun(connection):
            connection.exec_driver_sql(WRITING)


def _has_begun(connection: sa.Connection) -> bool:
    driver: Any = connection.connection.dbapi_connection
    return bool(driver.in_transaction)


def _given(engine: sa.Engine) -> sa.Engine:
    if engine.dialect.name != "sqlite":
        return engine.execution_options(isolation_level=_ISOLATION)
    # Unless it is needed, the level is left alone: to set it undoes what the engine's events do.
    if _autocommits(engine):
        return engine.execution_options(isolation_level="SERIALIZABLE")
    return engine


def _autocommits(given: sa.Engine | sa.Connection) -> bool:
    """Whether SQLAlchemy has been told so, of this one or of the engine when it was made."""
    level = given.get_execution_options().get("isolation_level")
    made_with = getattr(given.dialect, "_on_connect_isolation_level", None)
    return (level or made_with) == "AUTOCOMMIT"


def _at(url: str | sa.URL) -> sa.Engine:
    parsed = _parsed(url)
    embedded = parsed.get_backend_name() == "sqlite"
    options = _for_sqlite(parsed) if embedded else _for_a_server(parsed)
    try:
        engine = sa.create_engine(parsed, **options)
    except ImportError as error:
        raise _without_driver(parsed, error) from error
    except (TypeError, ValueError, sa.exc.ArgumentError) as error:
        raise _unwanted(error) from error
    sa.event.listen(engine, "do_connect", _connect)
    if embedded:
        sa.event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _parsed(url: str | sa.URL) -> sa.URL:
    """The URL, if it is of a driver that a store can use. No error shows more than its beginning.

    Where a URL is not written as it should be, a password may be anywhere in it.
    """
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise errors.BadRequest(f"what was given {_SUCH}") from None
    try:
        known = parsed.get_backend_name() in _KINDS and parsed.get_dialect()
    except sa.exc.NoSuchModuleError:
        known = False
    if not known:
        raise errors.BadRequest(f"{parsed.drivername}://… {_SUCH}")
    if known.is_async:
        ours, _ = _KINDS[parsed.get_backend_name()]
        raise errors.BadRequest(
            f"{parsed.drivername}:// is for asyncio, and a store is not: write {ours}://"
        )
    return parsed


def _for_a_server(url: sa.URL) -> dict[str, Any]:
    if not url.database and url.get_backend_name() != "postgresql":
        ours, _ = _KINDS[url.get_backend_name()]
        raise errors.BadRequest(f"the URL names no database: write {ours}://user@host/name")
    # A connection that has waited in the pool may have been closed by the server since.
    return {"isolation_level": _ISOLATION, "pool_pre_ping": True}


def _for_sqlite(url: sa.URL) -> dict[str, Any]:
    arguments: dict[str, Any] = {} if "timeout" in url.query else {"timeout": PATIENCE}
    named = url.database or ":memory:"
    if ":memory:" not in named and url.query.get("mode") != "memory":
        return {"connect_args": arguments}
    # It is in memory. Each thread would get a database of its own, without the tables: instead,
    # they take turns at one connection.
    return {
        "connect_args": {**arguments, "check_same_thread": False},
        "poolclass": sa.QueuePool,
        "pool_size": 1,
        "max_overflow": 0,
    }


def _without_driver(url: sa.URL, error: ImportError) -> errors.MissingExtra:
    """Return the error for a driver that cannot be imported."""
    ours, extra = _KINDS[url.get_backend_name()]
    steps = [] if url.drivername == ours else [f"write {ours}://"]
    if command := extras.install_command(extra):
        steps.append(f"run {command}")
    if steps and isinstance(error, ModuleNotFoundError):
        return errors.MissingExtra(
            f"a database at {url.drivername}:// needs {error.name!r}: the driver is not installed; "
            f"{' and '.join(steps)}"
        )
    said = " ".join(str(error).split())
    return errors.MissingExtra(f"the driver of {url.drivername}:// cannot be loaded: {said:.300}")


def _unwanted(error: Exception) -> errors.BadRequest:
    return errors.BadRequest(f"the URL of the database is not as its driver wants it: {error}")


def _connect(dialect: sa.Dialect, _record: object, args: Any, arguments: Any) -> Any:
    """What the parameters of a URL are, some drivers look at only now."""
    try:
        return dialect.connect(*args, **arguments)
    except (TypeError, ValueError) as error:
        raise _unwanted(error) from error


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        # Of two who open a new file at once only one can set it, and SQLite has nobody wait for
        # that. The mode is the file's: it is set by now, or whoever is next does it.
        if error.sqlite_errorname != "SQLITE_BUSY":
            raise
