"""The table of instances, with their ids and their names at the backend."""

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor
from steelyard.sql.text_columns import Text

revision = "0001"
down_revision = None


def upgrade(schema: SchemaEditor) -> None:
    schema.create_table(
        "tag_instances",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("id", Text(64), nullable=False),
        sa.Column("name", Text(255), nullable=False),
        sa.Column("project", Text(255), nullable=False),
        sa.Column("user", Text(255), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False, server_default="0"),
        sa.Column("horizon", sa.BigInteger, nullable=False, server_default="0"),
        sa.UniqueConstraint("id", name="uniq_tag_instances0id"),
        sa.UniqueConstraint("name", name="uniq_tag_instances0name"),
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_table("tag_instances")
