"""A type for each consumer, UNKNOWN for existing ones.

The default of the column is a constant, so databases add it without rewriting rows. SQLite can add
a foreign key only together with the column; for other databases, revision 0006 adds it.
"""

import sqlalchemy as sa

from steelyard.consumers.model import consumer_types
from steelyard.consumers.names import UNKNOWN
from steelyard.sql.schema_changes import SchemaEditor

revision = "0004"
down_revision = "0003"


def upgrade(schema: SchemaEditor) -> None:
    # The id is not always 1: servers in a cluster number rows in steps.
    unknown = schema.connection.execute(
        sa.select(consumer_types.c.id).where(consumer_types.c.name == UNKNOWN.name)
    ).scalar_one()
    if schema.dialect == "sqlite":
        _add_with_foreign_key(schema, unknown)
        return
    schema.add_column(
        "consumers",
        sa.Column("consumer_type_id", sa.Integer, nullable=False, server_default=str(unknown)),
    )


def _add_with_foreign_key(schema: SchemaEditor, unknown: int) -> None:
    """Add the column with its foreign key on SQLite.

    While SQLite enforces foreign keys, such a column must have the default NULL, and enforcement
    cannot be switched off inside a caller's transaction. NULL means UNKNOWN.
    """
    if schema.has_column("consumers", "consumer_type_id"):
        return
    enforced = schema.connection.exec_driver_sql("PRAGMA foreign_keys").scalar()
    rule = "" if enforced else f"DEFAULT {unknown} NOT NULL "
    schema.connection.exec_driver_sql(
        f"ALTER TABLE consumers ADD COLUMN consumer_type_id INTEGER {rule}"
        f"CONSTRAINT fk_consumers_type REFERENCES consumer_types (id)"
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_column("consumers", "consumer_type_id")
