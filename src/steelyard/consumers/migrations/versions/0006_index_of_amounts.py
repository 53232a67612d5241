"""The index that amounts are summed up from, so that the allocations themselves are not read.

Without it, a database reads them one by one, from all over its disk where they do not fit in its
memory.
"""

from steelyard import schema_changes

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    schema_changes.create_index(
        "allocations_consumer_class_used_idx",
        "allocations",
        ["consumer_id", "resource_class", "used"],
    )


def downgrade() -> None:
    schema_changes.drop_index("allocations_consumer_class_used_idx", "allocations")
