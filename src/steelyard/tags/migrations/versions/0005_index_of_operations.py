"""The index that the operations of an instance are found with."""

from alembic import op

from steelyard import schema_changes

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    schema_changes.create_index("tag_operations_instance_idx", "tag_operations", ["instance_id"])


def downgrade() -> None:
    # InnoDB needs it for the foreign key, and keeps it as long as the table is there.
    if op.get_bind().dialect.name not in ("mysql", "mariadb"):
        schema_changes.drop_index("tag_operations_instance_idx", "tag_operations")
