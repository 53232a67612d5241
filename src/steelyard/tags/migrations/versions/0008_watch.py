"""The record of how far the watch has followed the backend's jobs."""

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor

revision = "0008"
down_revision = "0007"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_table(
        "tag_watch",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("job", sa.BigInteger),
        sa.Column("reconciled", sa.Double),
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_table("tag_watch")
