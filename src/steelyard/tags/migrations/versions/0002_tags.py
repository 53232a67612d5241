"""Tags of instances, with who owns them and what is known of them."""

import sqlalchemy as sa

from steelyard import schema_changes
from steelyard.stores import Text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    schema_changes.create_table(
        "instance_tags",
        sa.Column(
            "instance_id",
            sa.Integer,
            sa.ForeignKey("tag_instances.number", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("prefix", Text(64), primary_key=True),
        sa.Column("name", Text(60), primary_key=True),
        sa.Column("status", Text(16), nullable=False),
    )


def downgrade() -> None:
    schema_changes.drop_table("instance_tags")
