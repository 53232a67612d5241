"""An index of consumers by type.

MariaDB would create one for the foreign key anyway, but takes longer for both at once.
"""

from steelyard.sql.schema_changes import SchemaEditor

revision = "0005"
down_revision = "0004"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_index("consumers_type_idx", "consumers", ["consumer_type_id"])


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_index("consumers_type_idx", "consumers")
