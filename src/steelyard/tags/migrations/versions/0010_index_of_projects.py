"""The index of instances by project."""

from steelyard.sql.schema_changes import SchemaEditor

revision = "0010"
down_revision = "0009"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_index("tag_instances_project_idx", "tag_instances", ["project", "id"])


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_index("tag_instances_project_idx", "tag_instances")
