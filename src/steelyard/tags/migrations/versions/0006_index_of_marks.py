"""The index of marks by age."""

from steelyard.sql.schema_changes import SchemaEditor

revision = "0006"
down_revision = "0005"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_index("tag_marks_seen_idx", "tag_marks", ["seen"])


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_index("tag_marks_seen_idx", "tag_marks")
