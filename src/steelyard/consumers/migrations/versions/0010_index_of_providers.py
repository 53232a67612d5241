"""An index of allocations by resource provider.

Without it, a search for the consumers of one provider reads all allocations.
"""

from steelyard.sql.schema_changes import SchemaEditor

revision = "0010"
down_revision = "0009"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_index(
        "allocations_provider_idx", "allocations", ["resource_provider", "consumer_id"]
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_index("allocations_provider_idx", "allocations")
