"""Types of consumers, with the one that stands for not knowing."""

import sqlalchemy as sa
from alembic import op

from steelyard import schema_changes
from steelyard.consumers.names import UNKNOWN
from steelyard.stores import Text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    schema_changes.create_table(
        "consumer_types",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", Text(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
    )
    types = sa.table("consumer_types", sa.column("name"))
    this = sa.select(types).where(types.c.name == UNKNOWN.name)
    if op.get_bind().execute(this).first() is None:
        op.bulk_insert(types, [{"name": UNKNOWN.name}])


def downgrade() -> None:
    schema_changes.drop_table("consumer_types")
