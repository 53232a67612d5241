"""Changes of schemas: one at a time, in steps that can be repeated.

MySQL and MariaDB commit with each step. Who is stopped between a step and the note that it is done
comes upon it again.
"""

import contextlib
import zlib
from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from alembic import op

from steelyard import engines, errors

_PATIENCE = 3600
"""How many seconds MariaDB lets one wait for its turn; PostgreSQL asks for no limit."""

# Locks of MariaDB's are the whole server's; the name of one has 64 characters at most.
_LOCK = "CONCAT('steelyard.', SHA1(CONCAT(DATABASE(), '.', :what)))"


@contextlib.contextmanager
def alone(engine: sa.Engine, what: str) -> Iterator[sa.Connection]:
    """A connection, while nobody else has one that changes the same tables.

    SQLite does everything in one transaction, whose lock it is.
    """
    if engine.dialect.name == "sqlite":
        with engine.begin() as connection:
            engines.begin(connection, engines.WRITING)
            yield connection
        return
    with engine.connect() as connection:
        # The server takes the lock back when the connection is closed: it must not be pooled.
        connection.detach()
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_lock(_key(what))))
        else:
            _lock_by_name(connection, what)
        connection.commit()
        yield connection
        connection.commit()


@contextlib.contextmanager
def alone_inside(connection: sa.Connection, what: str) -> Iterator[sa.Connection]:
    """The same on the caller's connection; until its transaction ends, where the database can."""
    engines.join(connection, engines.WRITING)
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_key(what))))
    if connection.dialect.name not in ("mysql", "mariadb"):
        yield connection
        return
    _lock_by_name(connection, what)
    try:
        yield connection
    finally:
        # Where this is not possible the connection is gone, and the lock with it.
        with contextlib.suppress(sa.exc.SQLAlchemyError):
            connection.execute(sa.text(f"SELECT RELEASE_LOCK({_LOCK})"), {"what": what})


def _key(what: str) -> int:
    """The number of the lock in PostgreSQL, where each database has its own."""
    return zlib.crc32(what.encode())


def _lock_by_name(connection: sa.Connection, what: str) -> None:
    asked = sa.text(f"SELECT GET_LOCK({_LOCK}, {_PATIENCE})")
    if connection.execute(asked, {"what": what}).scalar() != 1:
        raise errors.ServiceError(
            f"the tables cannot be changed: somebody else has been at it for {_PATIENCE} seconds, "
            f"or the connection names no database"
        )


def create_table(name: str, *parts: sa.schema.SchemaItem) -> None:
    """Creates a table, unless it is there."""
    if not _inspector().has_table(name):
        op.create_table(name, *parts)


def drop_table(name: str) -> None:
    """Drops a table that is still there."""
    if _inspector().has_table(name):
        op.drop_table(name)


def create_index(name: str, table: str, columns: Sequence[str]) -> None:
    """Creates an index, unless it is there. MySQL does not know IF NOT EXISTS for them."""
    if not _inspector().has_index(table, name):
        op.create_index(name, table, columns)


def drop_index(name: str, table: str) -> None:
    """Drops an index that is still there."""
    if _inspector().has_index(table, name):
        op.drop_index(name, table)


def add_column(table: str, column: sa.Column[int]) -> None:
    """Adds a column, unless it is there."""
    if not _has_column(table, column.name):
        op.add_column(table, column)


def drop_column(table: str, name: str) -> None:
    """Drops a column that is still there."""
    if _has_column(table, name):
        op.drop_column(table, name)


def _has_column(table: str, name: str) -> bool:
    return any(column["name"] == name for column in _inspector().get_columns(table))


def _inspector() -> sa.Inspector:
    """What sees the tables as they are now."""
    return sa.inspect(op.get_bind())
