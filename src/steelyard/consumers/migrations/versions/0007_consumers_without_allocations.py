"""No consumers without allocations: they would be counted, and have nothing.

The store leaves none behind, but there may be some from before there was one.
"""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

# How many consumers are looked at at once: no more of them are ever in memory.
_AT_ONCE = 1000

_consumers = sa.table("consumers", sa.column("id", sa.Integer))
_allocations = sa.table("allocations", sa.column("consumer_id", sa.Integer))


def upgrade() -> None:
    connection = op.get_bind()
    for first, last in _ranges(connection):
        # The same limits on both sides, or each of the ranges would be compared with all that is
        # allocated to anybody.
        here = _allocations.c.consumer_id.between(first, last)
        mine = _allocations.c.consumer_id == _consumers.c.id
        has_none = _consumers.c.id.between(first, last), ~sa.exists().where(mine, here)
        found = connection.execute(sa.select(_consumers.c.id).where(*has_none)).scalars().all()
        if found:
            these = _consumers.c.id.in_(found)
            # Locked before they are looked at again: nobody can give them something meanwhile. One
            # statement for all would, in InnoDB, meet consumers that are newer than the allocations
            # that it sees.
            connection.execute(sa.select(_consumers.c.id).where(these).with_for_update())
            connection.execute(sa.delete(_consumers).where(these, *has_none))


def _ranges(connection: sa.Connection) -> Iterator[tuple[int, int]]:
    """The first and the last id of some consumers after the other, until all have been there."""
    every = sa.select(_consumers.c.id).order_by(_consumers.c.id).limit(_AT_ONCE)
    some = every.subquery()
    while True:
        limits = sa.select(sa.func.min(some.c.id), sa.func.max(some.c.id))
        first, last = connection.execute(limits).one()
        if last is None:
            return
        yield first, last
        some = every.where(_consumers.c.id > last).subquery()


def downgrade() -> None:
    """There is nothing to take back."""
