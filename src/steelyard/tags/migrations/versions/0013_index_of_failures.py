"""The index of failures by age."""

from steelyard.sql.schema_changes import SchemaEditor

revision = "0013"
down_revision = "0012"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_index("tag_failures_seen_idx", "tag_failures", ["seen"])


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_index("tag_failures_seen_idx", "tag_failures")
