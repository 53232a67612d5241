"""Consumers without types."""

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor
from steelyard.sql.text_columns import Text

revision = "0001"
down_revision = None


def upgrade(schema: SchemaEditor) -> None:
    schema.create_table(
        "consumers",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uuid", Text(36), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False, server_default="0"),
        sa.Column("project", Text(255), nullable=False),
        sa.Column("user", Text(255), nullable=False),
        sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_table("consumers")
