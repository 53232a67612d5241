"""The index that old marks are found with."""

from steelyard import schema_changes

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    schema_changes.create_index("tag_marks_seen_idx", "tag_marks", ["seen"])


def downgrade() -> None:
    schema_changes.drop_index("tag_marks_seen_idx", "tag_marks")
