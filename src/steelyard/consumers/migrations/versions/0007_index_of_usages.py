"""An index of consumers by project, user and type."""

from steelyard.sql.schema_changes import SchemaEditor

revision = "0007"
down_revision = "0006"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_index(
        "consumers_project_user_type_idx", "consumers", ["project", "user", "consumer_type_id"]
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_index("consumers_project_user_type_idx", "consumers")
