"""The record of the backend that the database belongs to."""

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor
from steelyard.sql.text_columns import Text

revision = "0007"
down_revision = "0006"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_table(
        "tag_backend",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("driver", Text(64), nullable=False),
        sa.Column("name", Text(255), nullable=False),
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_table("tag_backend")
