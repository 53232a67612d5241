"""The table of the last failures of additions."""

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor
from steelyard.sql.text_columns import Text

revision = "0012"
down_revision = "0011"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_table(
        "tag_failures",
        sa.Column(
            "instance_id",
            sa.Integer,
            sa.ForeignKey("tag_instances.number", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("prefix", Text(64), primary_key=True),
        sa.Column("name", Text(60), primary_key=True),
        sa.Column("reason", Text(500), nullable=False),
        sa.Column("seen", sa.Double, nullable=False),
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_table("tag_failures")
