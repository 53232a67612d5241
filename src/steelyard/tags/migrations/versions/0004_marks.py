"""What has been seen of jobs, for longer than the tags themselves are there."""

import sqlalchemy as sa

from steelyard import schema_changes
from steelyard.stores import Text

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    schema_changes.create_table(
        "tag_marks",
        sa.Column(
            "instance_id",
            sa.Integer,
            sa.ForeignKey("tag_instances.number", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("prefix", Text(64), primary_key=True),
        sa.Column("name", Text(60), primary_key=True),
        sa.Column("job", sa.BigInteger, nullable=False),
        sa.Column("there", sa.Boolean, nullable=False),
        sa.Column("seen", sa.Double, nullable=False),
    )


def downgrade() -> None:
    schema_changes.drop_table("tag_marks")
