"""Types of consumers, with the one that stands for not knowing."""

import sqlalchemy as sa
from alembic import op

from steelyard.consumers.model import text
from steelyard.consumers.names import UNKNOWN

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    types = op.create_table(
        "consumer_types",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", text(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
    )
    op.bulk_insert(types, [{"name": UNKNOWN.name}])


def downgrade() -> None:
    op.drop_table("consumer_types")
