"""A foreign key from consumers to their types.

On SQLite, revision 0004 has added it.

Existing consumers have the default type of the column, so their rows need no check. On PostgreSQL
the key is NOT VALID, which skips the check of existing rows only.
"""

from steelyard.sql.schema_changes import SchemaEditor

revision = "0006"
down_revision = "0005"

_KEY = "fk_consumers_type"


def upgrade(schema: SchemaEditor) -> None:
    if schema.dialect == "sqlite" or schema.has_foreign_key("consumers", _KEY):
        return
    add = (
        f"ALTER TABLE consumers ADD CONSTRAINT {_KEY} "
        f"FOREIGN KEY (consumer_type_id) REFERENCES consumer_types (id)"
    )
    if schema.dialect == "postgresql":
        schema.connection.exec_driver_sql(f"{add} NOT VALID")
    else:
        _add_unchecked(schema, f"{add}, ALGORITHM=INPLACE")


def _add_unchecked(schema: SchemaEditor, add: str) -> None:
    """Add the key on MariaDB or MySQL with key checks off, since checking copies the table."""
    connection = schema.connection
    checked = connection.exec_driver_sql("SELECT @@foreign_key_checks").scalar_one()
    connection.exec_driver_sql("SET foreign_key_checks = 0")
    try:
        connection.exec_driver_sql(add)
    finally:
        if not connection.invalidated:
            connection.exec_driver_sql(f"SET foreign_key_checks = {checked}")


def downgrade(schema: SchemaEditor) -> None:
    if schema.dialect != "sqlite" and schema.has_foreign_key("consumers", _KEY):
        schema.operations.drop_constraint(_KEY, "consumers", type_="foreignkey")
