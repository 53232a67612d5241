"""Schema changes, made by one process at a time in idempotent steps.

MySQL and MariaDB commit after each step. A step that is interrupted before its revision is recorded
is run again.
"""

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations

from steelyard import errors
from steelyard.sql import engines

_PATIENCE = 3600
"""Seconds to wait for the lock on MariaDB and MySQL; PostgreSQL waits without a limit."""

# A lock is valid on the whole server, so its name depends on the database. MySQL allows names of
# 64 characters, hence the hash.
_LOCK = "CONCAT('steelyard.', SHA1(CONCAT(DATABASE(), '.', :what)))"


@contextlib.contextmanager
def locked(engine: sa.Engine, what: str) -> Iterator[sa.Connection]:
    """Yield a connection while no other one changes the same tables.

    ``what`` names these tables for the lock. On SQLite, the whole block is one transaction, which
    is the lock.
    """
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            with _foreign_keys_off(connection), connection.begin():
                engines.begin(connection, engines.WRITING)
                yield connection
            return
        try:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_lock(_key(what))))
            else:
                _lock_by_name(connection, what)
            connection.commit()
            yield connection
            connection.commit()
        finally:
            # The server releases the lock when the connection is closed. In the pool, the
            # connection would keep it.
            connection.invalidate()


@contextlib.contextmanager
def locked_inside(connection: sa.Connection, what: str) -> Iterator[sa.Connection]:
    """Yield the caller's connection while no other one changes the same tables.

    The lock is held until the caller's transaction ends; on MariaDB and MySQL, until the block
    ends.
    """
    engines.join(connection, engines.WRITING)
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_key(what))))
    if connection.dialect.name not in ("mysql", "mariadb"):
        yield connection
        return
    try:
        _lock_by_name(connection, what)
        yield connection
    finally:
        # If this fails, the connection is lost, and the server has released the lock.
        with contextlib.suppress(sa.exc.SQLAlchemyError):
            connection.execute(sa.text(f"SELECT RELEASE_LOCK({_LOCK})"), {"what": what})


@contextlib.contextmanager
def _foreign_keys_off(connection: sa.Connection) -> Iterator[None]:
    """Stop enforcing foreign keys on SQLite, as its documentation advises for schema changes.

    The setting has no effect inside a transaction, so this uses the driver's connection: SQLAlchemy
    would begin a transaction.
    """
    driver: Any = connection.connection.dbapi_connection
    (enforced,) = driver.execute("PRAGMA foreign_keys").fetchone()
    driver.execute("PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        if not connection.invalidated:
            driver.execute(f"PRAGMA foreign_keys = {enforced}")


def _key(what: str) -> int:
    """Return the number of the lock on PostgreSQL, where each database has its own locks."""
    return zlib.crc32(what.encode())


def _lock_by_name(connection: sa.Connection, what: str) -> None:
    asked = sa.text(f"SELECT GET_LOCK({_LOCK}, {_PATIENCE})")
    if connection.execute(asked, {"what": what}).scalar() != 1:
        raise errors.ServiceError(
            f"cannot lock the tables for the schema change: another process has held the lock for "
            f"{_PATIENCE} seconds, or the connection has no database selected"
        )


class SchemaEditor:
    """The schema changes that revisions make; each one is idempotent.

    Revisions get it as an argument instead of using ``alembic.op``: that is global, and inside a
    revision of a host service it belongs to the host.
    """

    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.connection: sa.Connection = operations.get_bind()

    @property
    def dialect(self) -> str:
        """The name of the database's dialect; ``mysql`` for MariaDB, too."""
        name = self.connection.dialect.name
        return "mysql" if name == "mariadb" else name

    def create_table(self, name: str, *parts: sa.schema.SchemaItem, **options: Any) -> None:
        """Create a table unless it exists."""
        if not self._inspector().has_table(name):
            self.operations.create_table(name, *parts, **options)

    def drop_table(self, name: str) -> None:
        """Drop a table if it exists."""
        if self._inspector().has_table(name):
            self.operations.drop_table(name)

    def create_index(self, name: str, table: str, columns: Sequence[str]) -> None:
        """Create an index unless it exists; MySQL has no IF NOT EXISTS for indexes."""
        if not self._inspector().has_index(table, name):
            self.operations.create_index(name, table, columns)

    def drop_index(self, name: str, table: str) -> None:
        """Drop an index if it exists."""
        if self._inspector().has_index(table, name):
            self.operations.drop_index(name, table)

    def has_column(self, table: str, name: str) -> bool:
        """Return whether the table has the column."""
        return any(column["name"] == name for column in self._inspector().get_columns(table))

    def add_column(self, table: str, column: sa.Column[Any]) -> None:
        """Add a column unless it exists."""
        if not self.has_column(table, column.name):
            self.operations.add_column(table, column)

    def drop_column(self, table: str, name: str) -> None:
        """Drop a column if it exists."""
        if self.has_column(table, name):
            self.operations.drop_column(table, name)

    def has_foreign_key(self, table: str, name: str) -> bool:
        """Return whether the table has the foreign key."""
        return any(key["name"] == name for key in self._inspector().get_foreign_keys(table))

    def _inspector(self) -> sa.Inspector:
        """Return a new inspector: each one caches the tables as it first sees them."""
        return sa.inspect(self.connection)
