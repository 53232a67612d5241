"""The column for the caller of each operation, for the audit log."""

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor
from steelyard.sql.text_columns import Text

revision = "0009"
down_revision = "0008"


def upgrade(schema: SchemaEditor) -> None:
    schema.add_column("tag_operations", sa.Column("caller", Text(255)))


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_column("tag_operations", "caller")
