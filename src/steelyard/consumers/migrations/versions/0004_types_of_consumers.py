"""A type for each consumer: those that are there already are of the type that is not known.

The column has a default that is a constant, so the databases add it without touching the rows.
"""

import sqlalchemy as sa
from alembic import op

from steelyard import schema_changes
from steelyard.consumers.model import consumer_types
from steelyard.consumers.names import UNKNOWN

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    # Not always 1: where several servers number rows, they take turns.
    unknown = op.get_bind().execute(
        sa.select(consumer_types.c.id).where(consumer_types.c.name == UNKNOWN.name)
    )
    default = str(unknown.scalar_one())
    schema_changes.add_column(
        "consumers",
        sa.Column("consumer_type_id", sa.Integer, nullable=False, server_default=default),
    )


def downgrade() -> None:
    schema_changes.drop_column("consumers", "consumer_type_id")
