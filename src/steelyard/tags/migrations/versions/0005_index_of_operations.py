"""The index of operations by instance."""

from steelyard.sql.schema_changes import SchemaEditor

revision = "0005"
down_revision = "0004"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_index("tag_operations_instance_idx", "tag_operations", ["instance_id"])


def downgrade(schema: SchemaEditor) -> None:
    # InnoDB needs the index for the foreign key, until the table is dropped.
    if schema.connection.dialect.name not in ("mysql", "mariadb"):
        schema.drop_index("tag_operations_instance_idx", "tag_operations")
