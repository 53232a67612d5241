"""The table of tags, with their owners' prefixes and their statuses."""

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor
from steelyard.sql.text_columns import Text

revision = "0002"
down_revision = "0001"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_table(
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


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_table("instance_tags")
