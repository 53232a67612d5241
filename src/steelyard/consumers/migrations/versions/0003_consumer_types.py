"""Consumer types, with the type UNKNOWN."""

import sqlalchemy as sa

from steelyard.consumers.names import UNKNOWN
from steelyard.sql.schema_changes import SchemaEditor
from steelyard.sql.text_columns import Text

revision = "0003"
down_revision = "0002"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_table(
        "consumer_types",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", Text(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
        # Without AUTOINCREMENT, SQLite may give the id of a removed type to a new one.
        sqlite_autoincrement=True,
    )
    types = sa.table("consumer_types", sa.column("name"))
    this = sa.select(types).where(types.c.name == UNKNOWN.name)
    if schema.connection.execute(this).first() is None:
        schema.operations.bulk_insert(types, [{"name": UNKNOWN.name}])


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_table("consumer_types")
