"""An index of allocations by consumer, resource class and amount.

Without it, a database reads these rows one by one, scattered over the disk if they do not fit in
memory.
"""

from steelyard.sql.schema_changes import SchemaEditor

revision = "0008"
down_revision = "0007"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_index(
        "allocations_consumer_class_used_idx",
        "allocations",
        ["consumer_id", "resource_class", "used"],
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_index("allocations_consumer_class_used_idx", "allocations")
