"""Consumers, as they were before they had types."""

import sqlalchemy as sa
from alembic import op

from steelyard.consumers.model import text

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "consumers",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uuid", text(36), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False, server_default="0"),
        sa.Column("project", text(255), nullable=False),
        sa.Column("user", text(255), nullable=False),
        sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    )


def downgrade() -> None:
    op.drop_table("consumers")
