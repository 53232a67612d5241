"""The index that usages of a project and of a user are answered with."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index(
        "consumers_project_user_type_idx", "consumers", ["project", "user", "consumer_type_id"]
    )


def downgrade() -> None:
    op.drop_index("consumers_project_user_type_idx", "consumers")
