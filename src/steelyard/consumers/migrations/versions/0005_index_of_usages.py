"""The index that usages of a project and of a user are answered with."""

from steelyard import schema_changes

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    schema_changes.create_index(
        "consumers_project_user_type_idx", "consumers", ["project", "user", "consumer_type_id"]
    )


def downgrade() -> None:
    schema_changes.drop_index("consumers_project_user_type_idx", "consumers")
