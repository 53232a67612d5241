"""Accounts."""

import sqlalchemy as sa
from alembic import op

revision = "h001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(36), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("accounts")
