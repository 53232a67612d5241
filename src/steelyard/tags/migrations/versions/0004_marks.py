"""The table of the last known job of each tag, which outlives the tag."""

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor
from steelyard.sql.text_columns import Text

revision = "0004"
down_revision = "0003"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_table(
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


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_table("tag_marks")
