"""Allocations of consumers."""

import sqlalchemy as sa

from steelyard.sql.schema_changes import SchemaEditor
from steelyard.sql.text_columns import Text

revision = "0002"
down_revision = "0001"


def upgrade(schema: SchemaEditor) -> None:
    schema.create_table(
        "allocations",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "consumer_id",
            sa.Integer,
            sa.ForeignKey("consumers.id", name="fk_allocations_consumer", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("resource_provider", Text(36), nullable=False),
        sa.Column("resource_class", Text(255), nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
        sa.UniqueConstraint(
            "consumer_id", "resource_provider", "resource_class", name="uniq_allocations0all"
        ),
    )


def downgrade(schema: SchemaEditor) -> None:
    schema.drop_table("allocations")
