"""The index of tags by name."""

from steelyard.sql.schema_changes import SchemaEditor

revision = "0011"
down_revision = "0010"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_index(
        "instance_tags_name_idx", "instance_tags", ["name", "prefix", "instance_id"]
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_index("instance_tags_name_idx", "instance_tags")
