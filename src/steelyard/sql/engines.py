"""Engines for stores, and the beginning of SQLite's transactions."""

import sqlite3
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine.mock import MockConnection

from steelyard import errors, extras
from steelyard.sql import sqlite_files
from steelyard.sql.database_errors import cannot_connect

PATIENCE = 10
"""Seconds that SQLite waits for a lock, unless the URL has a ``?timeout=``."""

READING: Literal["BEGIN"] = "BEGIN"
WRITING: Literal["BEGIN IMMEDIATE"] = "BEGIN IMMEDIATE"
"""The statement that begins a writing transaction on SQLite: it waits for the write lock.

A transaction that takes the lock only with its first change fails if another one has written since
it began.
"""

Purpose = Literal["BEGIN", "BEGIN IMMEDIATE"]

# Each statement sees what other transactions have committed before it. So changes check that the
# rows that were read before are unchanged, by a generation or a unique name. SQLite needs no such
# check: while a writing transaction is open, no other one can write.
_ISOLATION: Literal["READ COMMITTED"] = "READ COMMITTED"

# The URL scheme to recommend for each kind of database, and the extra with its driver, if any.
_KINDS = {
    "sqlite": ("sqlite", ""),
    "postgresql": ("postgresql+psycopg", "postgresql"),
    "mysql": ("mysql+pymysql", "mysql"),
    "mariadb": ("mariadb+pymysql", "mysql"),
}
_EXPECTED = (
    "expected one such as sqlite:///consumers.db, postgresql+psycopg://user@host/name or "
    "mysql+pymysql://user@host/name"
)


def prepared(where: str | sa.URL | sa.Engine | sa.Connection | None) -> sa.Engine | sa.Connection:
    """Return the engine or connection that a store works on; a URL becomes an engine.

    Raises BadRequest for an invalid URL, for any other value, and for a connection that commits
    each statement by itself. Raises MissingExtra if the driver is not installed.
    """
    match where:
        case str() | sa.URL():
            return _at(where)
        case sa.Engine():
            return _given(where)
        case sa.Connection():
            if _autocommits(where):
                raise errors.BadRequest(
                    "invalid connection: its isolation level is AUTOCOMMIT; pass a connection with "
                    "another level, such as READ COMMITTED, or the engine"
                )
            return where
        case None | MockConnection():  # what alembic passes with --sql
            advice = (
                "'alembic upgrade --sql' has no connection: upgrade without --sql, or run "
                "'steelyard db upgrade'"
            )
        case _:
            advice = "for a file, pass sqlite:///file; for a session, pass its connection()"
    raise errors.BadRequest(
        f"invalid argument of type '{type(where).__name__}' for a store: expected a URL, an "
        f"engine or a connection of SQLAlchemy; {advice}"
    )


def begin(connection: sa.Connection, purpose: Purpose) -> None:
    """Begin the transaction in SQLite, after SQLAlchemy's transaction has begun.

    sqlite3 would begin it only with the first change. Until then, other transactions could change
    the rows that were read. Does nothing for other databases.
    """
    if connection.dialect.name == "sqlite":
        if _has_begun(connection):  # an event listener of the engine has begun one
            connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql(purpose)


def join(connection: sa.Connection, purpose: Purpose) -> None:
    """Begin the caller's transaction in SQLite before writing, unless it has begun.

    Otherwise SQLite would treat the store's savepoint as a transaction of its own, and commit the
    changes at its end. For reading, that does no harm and leaves no lock behind. Does nothing for
    other databases.
    """
    if connection.dialect.name == "sqlite" and purpose == WRITING:
        if not connection.in_transaction():
            connection.begin()
        if not _has_begun(connection):
            connection.exec_driver_sql(WRITING)


def _has_begun(connection: sa.Connection) -> bool:
    # SQLAlchemy's adapters for asyncio drivers lack the attribute; the driver itself has it.
    driver: Any = connection.connection.driver_connection
    return bool(driver.in_transaction)


def _given(engine: sa.Engine) -> sa.Engine:
    if engine.dialect.name != "sqlite":
        return engine.execution_options(isolation_level=_ISOLATION)
    # Otherwise the level stays as it is: setting it would undo settings of the engine's listeners.
    if _autocommits(engine):
        return engine.execution_options(isolation_level="SERIALIZABLE")
    return engine


def _autocommits(given: sa.Engine | sa.Connection) -> bool:
    """Return whether the isolation level is AUTOCOMMIT, set here or for the engine."""
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
        raise _rejected_by_driver(error) from error
    if embedded:
        sa.event.listen(engine, "do_connect", sqlite_files.require)
        sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "do_connect", _connect)
    return engine


def _parsed(url: str | sa.URL) -> sa.URL:
    """Return the parsed URL; raise BadRequest if a store cannot use it.

    Errors quote no more than the name of the driver: the password may be anywhere in a malformed
    URL.
    """
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise errors.BadRequest(f"invalid database URL: {_EXPECTED}") from None
    try:
        known = parsed.get_backend_name() in _KINDS and parsed.get_dialect()
    except sa.exc.NoSuchModuleError:
        known = False
    if not known:
        raise errors.BadRequest(f"invalid database URL '{parsed.drivername}://…': {_EXPECTED}")
    if known.is_async:
        ours, _ = _KINDS[parsed.get_backend_name()]
        raise errors.BadRequest(
            f"invalid database URL '{parsed.drivername}://…': the driver is for asyncio, and "
            f"stores are synchronous; use {ours}://"
        )
    return parsed


def _for_a_server(url: sa.URL) -> dict[str, Any]:
    if not url.database and url.get_backend_name() != "postgresql":
        ours, _ = _KINDS[url.get_backend_name()]
        raise errors.BadRequest(
            f"invalid database URL: missing database name; use {ours}://user@host/name"
        )
    # The server may have closed a connection while that was in the pool.
    return {"isolation_level": _ISOLATION, "pool_pre_ping": True}


def _for_sqlite(url: sa.URL) -> dict[str, Any]:
    arguments: dict[str, Any] = {} if "timeout" in url.query else {"timeout": PATIENCE}
    named = url.database or ":memory:"
    if ":memory:" not in named and url.query.get("mode") != "memory":
        return {"connect_args": arguments}
    # Each connection to a database in memory opens a new database, so all threads share one
    # connection, one at a time.
    return {
        "connect_args": {**arguments, "check_same_thread": False},
        "poolclass": sa.QueuePool,
        "pool_size": 1,
        "max_overflow": 0,
    }


def _without_driver(url: sa.URL, error: ImportError) -> errors.MissingExtra:
    """Return the error for a driver that cannot be imported."""
    ours, extra = _KINDS[url.get_backend_name()]
    steps = [] if url.drivername == ours else [f"use {ours}://"]
    if command := extras.install_command(extra):
        steps.append(f"run {command}")
    if steps and isinstance(error, ModuleNotFoundError):
        return errors.MissingExtra(
            f"missing database driver {error.name!r} for {url.drivername}://; {' and '.join(steps)}"
        )
    message = " ".join(str(error).split())
    return errors.MissingExtra(
        f"cannot load the database driver for {url.drivername}://: {message:.300}"
    )


def _rejected_by_driver(error: Exception) -> errors.BadRequest:
    return errors.BadRequest(f"invalid database URL: the driver rejects it: {error}")


def _connect(dialect: sa.Dialect, _record: object, args: Any, arguments: Any) -> Any:
    """Connect; raise NoAccess if that fails.

    Raises BadRequest for URL parameters that the driver rejects only when connecting.
    """
    try:
        return dialect.connect(*args, **arguments)
    except dialect.loaded_dbapi.Error as error:
        raise cannot_connect(error) from error
    except (TypeError, ValueError) as error:
        raise _rejected_by_driver(error) from error


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        # Another connection is setting the mode at the same time, and SQLite does not wait for it.
        # The file keeps the mode: it is set by now, or the next connection sets it.
        if error.sqlite_errorname != "SQLITE_BUSY":
            raise
