"""Removal of consumers without allocations.

The store leaves none behind, but earlier software may have.
"""

from collections.abc import Iterator

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor

revision = "0009"
down_revision = "0008"

# Consumers per batch, which bounds memory.
_AT_ONCE = 1000

_consumers = sa.table("consumers", sa.column("id", sa.Integer))
_allocations = sa.table("allocations", sa.column("consumer_id", sa.Integer))


def upgrade(schema: SchemaEditor) -> None:
    connection = schema.connection
    for first, last in _ranges(connection):
        # Both tables have the same bounds, since otherwise each batch would read all allocations.
        here = _allocations.c.consumer_id.between(first, last)
        mine = _allocations.c.consumer_id == _consumers.c.id
        has_none = _consumers.c.id.between(first, last), ~sa.exists().where(mine, here)
        found = connection.execute(sa.select(_consumers.c.id).where(*has_none)).scalars().all()
        if found:
            these = _consumers.c.id.in_(found)
            # Lock the consumers before the second check, so that no writer can allocate to them
            # meanwhile. A single DELETE would not do: in InnoDB it may find consumers that are
            # newer than the allocations that it sees.
            connection.execute(sa.select(_consumers.c.id).where(these).with_for_update())
            connection.execute(sa.delete(_consumers).where(these, *has_none))


def _ranges(connection: sa.Connection) -> Iterator[tuple[int, int]]:
    """Yield the first and last id of consecutive batches of consumers."""
    every = sa.select(_consumers.c.id).order_by(_consumers.c.id).limit(_AT_ONCE)
    some = every.subquery()
    while True:
        limits = sa.select(sa.func.min(some.c.id), sa.func.max(some.c.id))
        first, last = connection.execute(limits).one()
        if last is None:
            return
        yield first, last
        some = every.where(_consumers.c.id > last).subquery()


def downgrade(schema: SchemaEditor) -> None:
    """Do nothing: removed consumers cannot be restored."""
