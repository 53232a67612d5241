"""The rows of consumer types: their ids, their numbers of consumers, and their removal."""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from steelyard.consumers.model import KEY_OF_TYPES, VERSION_TABLE, consumer_types, consumers
from steelyard.consumers.names import UNKNOWN, ConsumerType
from steelyard.sql.database_errors import violates
from steelyard.sql.transactions import TryAgain

_revisions = sa.table(VERSION_TABLE, sa.column("version_num"))


def ids_of(connection: sa.Connection, types: Iterable[ConsumerType]) -> dict[ConsumerType, int]:
    """Return the ids of the types, creating new ones."""
    names = sorted(kind.name for kind in types)
    known = sa.select(consumer_types.c.name, consumer_types.c.id).where(
        consumer_types.c.name.in_(names)
    )
    ids = {row.name: row.id for row in connection.execute(known)}
    if len(ids) < len(names):
        missing = [{"name": name} for name in names if name not in ids]
        _lock(connection)
        connection.execute(_insert_unless_there(connection), missing)
        # A locking read sees the latest commits. A plain read in a caller's REPEATABLE READ
        # transaction does not.
        latest = known.with_for_update(read=True)
        ids = {row.name: row.id for row in connection.execute(latest)}
    for name in names:
        if name not in ids:
            raise removed_meanwhile(name)
    return {ConsumerType(name): number for name, number in ids.items()}


def _lock(connection: sa.Connection) -> None:
    """Wait until no other transaction creates or removes types.

    Locks the row of the version table, which always exists. In InnoDB, transactions that wait for
    another one's insert of the same type would deadlock after its rollback. The row of a type is no
    substitute: writers of its consumers lock it for the foreign key.
    """
    connection.execute(sa.select(_revisions).with_for_update())


def removed_meanwhile(name: str) -> TryAgain:
    """Return the error for a type that another transaction has removed."""
    return TryAgain(
        f"another transaction removed consumer type {name!r}; retry the write, in a new "
        f"transaction if this one is REPEATABLE READ"
    )


def remove_unused(connection: sa.Connection) -> list[str]:
    """Remove all types without consumers but UNKNOWN, and return their names, sorted."""
    _lock(connection)
    # Check the consumers here: a host's engine may not enforce the foreign key.
    used = sa.exists().where(consumers.c.consumer_type_id == consumer_types.c.id)
    unused = sa.select(consumer_types.c.id, consumer_types.c.name).where(
        consumer_types.c.name != UNKNOWN.name, ~used
    )
    # A single DELETE with these conditions would lock each type that InnoDB scans.
    rows = connection.execute(unused).all()
    return sorted(name for number, name in rows if _remove(connection, number, used))


def _remove(connection: sa.Connection, number: int, used: sa.Exists) -> bool:
    """Remove the type if no consumer has it, and return whether it was removed."""
    this = consumer_types.c.id == number
    # An open transaction that writes a consumer of the type has locked the type for the foreign
    # key.
    free = sa.select(consumer_types.c.id).where(this).with_for_update(skip_locked=True)
    if connection.execute(free).first() is None:
        return False
    try:
        with connection.begin_nested():
            return connection.execute(sa.delete(consumer_types).where(this, ~used)).rowcount == 1
    except sa.exc.IntegrityError as error:
        # In REPEATABLE READ, the subquery does not see newer consumers; the foreign key does.
        if violates(error, KEY_OF_TYPES):
            return False
        raise


def _insert_unless_there(connection: sa.Connection) -> sa.Insert:
    """Return an insert into the types that skips names that already exist."""
    if connection.dialect.name in ("mysql", "mariadb"):
        return mysql.insert(consumer_types).prefix_with("IGNORE")
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    ignoring: sa.Insert = dialect.insert(consumer_types).on_conflict_do_nothing()
    return ignoring


def consumers_by_type(
    connection: sa.Connection, *conditions: sa.ColumnElement[bool]
) -> dict[str, int]:
    """Return the number of consumers of each type under the conditions.

    Without conditions, types without consumers are included.
    """
    kind = consumers.c.consumer_type_id
    grouped = sa.select(kind, sa.func.count().label("consumers")).where(*conditions).group_by(kind)
    counted = grouped.subquery()
    of_type = consumer_types.c.id == counted.c.consumer_type_id
    statement: sa.Select[Any] | sa.CompoundSelect[Any] = sa.select(
        consumer_types.c.name, counted.c.consumers
    ).select_from(counted.outerjoin(consumer_types, of_type))
    if not conditions:
        unused = sa.select(consumer_types.c.name, sa.literal(0))
        statement = sa.union_all(statement, unused)
    found: dict[str, int] = {}
    for name, count in connection.execute(statement):
        # Without enforced foreign keys, the type may have been deleted. It counts as UNKNOWN.
        known = name or UNKNOWN.name
        found[known] = found.get(known, 0) + int(count)
    return dict(sorted(found.items()))


def has_type(kind: ConsumerType) -> sa.ColumnElement[bool]:
    """Return the condition that a consumer has the type."""
    of_type = consumers.c.consumer_type_id == id_of(kind)
    if kind != UNKNOWN:
        return of_type
    without = consumers.c.consumer_type_id.is_(None)
    # As above.
    deleted = consumers.c.consumer_type_id.not_in(sa.select(consumer_types.c.id))
    return of_type | without | deleted


def id_of(kind: ConsumerType) -> sa.ScalarSelect[int]:
    """Return a subquery for the id of the type."""
    return (
        sa.select(consumer_types.c.id).where(consumer_types.c.name == kind.name).scalar_subquery()
    )
