"""The backend that the database belongs to."""

import sqlalchemy as sa

from steelyard import schema_changes
from steelyard.stores import Text

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    schema_changes.create_table(
        "tag_backend",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("driver", Text(64), nullable=False),
        sa.Column("name", Text(255), nullable=False),
    )


def downgrade() -> None:
    schema_changes.drop_table("tag_backend")
