"""No consumers without allocations: they would be counted, and have nothing.

The store leaves none behind, but there may be some from before there was one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_AT_ONCE = 1000


def upgrade() -> None:
    consumers = sa.table("consumers", sa.column("id", sa.Integer))
    allocations = sa.table("allocations", sa.column("consumer_id", sa.Integer))
    has_none = ~sa.exists().where(allocations.c.consumer_id == consumers.c.id)
    connection = op.get_bind()
    found = list(connection.execute(sa.select(consumers.c.id).where(has_none)).scalars())
    for first in range(0, len(found), _AT_ONCE):
        these = consumers.c.id.in_(found[first : first + _AT_ONCE])
        # Locked before they are looked at again: nobody can give them something meanwhile. One
        # statement for all would, in InnoDB, meet consumers that are newer than the allocations
        # that it sees.
        connection.execute(sa.select(consumers.c.id).where(these).with_for_update())
        connection.execute(sa.delete(consumers).where(these, has_none))


def downgrade() -> None:
    """There is nothing to take back."""
