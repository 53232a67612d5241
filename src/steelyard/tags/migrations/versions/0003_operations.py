"""The table of pending operations."""

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor
from steelyard.sql.text_columns import Text

revision = "0003"
down_revision = "0002"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_table(
        "tag_operations",
        sa.Column("id", Text(36), primary_key=True),
        sa.Column(
            "instance_id",
            sa.Integer,
            sa.ForeignKey("tag_instances.number", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("kind", Text(16), nullable=False),
        sa.Column("prefix", Text(64), nullable=False),
        sa.Column("names", sa.JSON, nullable=False),
        sa.Column("job", sa.BigInteger),
        sa.Column("begun", sa.Double, nullable=False),
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_table("tag_operations")
