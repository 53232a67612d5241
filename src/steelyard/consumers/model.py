"""The tables of consumers, their types and what is allocated to them."""

import sqlalchemy as sa

from steelyard.stores import Text

metadata = sa.MetaData()

consumer_types = sa.Table(
    "consumer_types",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", Text(255), nullable=False),
    sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
)

consumers = sa.Table(
    "consumers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", Text(36), nullable=False),
    sa.Column("generation", sa.Integer, nullable=False, server_default="0"),
    sa.Column("project", Text(255), nullable=False),
    sa.Column("user", Text(255), nullable=False),
    # No foreign key: adding one would read every row of the table, and types are never removed.
    sa.Column("consumer_type_id", sa.Integer, nullable=False),
    sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    sa.Index("consumers_project_user_type_idx", "project", "user", "consumer_type_id"),
)

allocations = sa.Table(
    "allocations",
    metadata,
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
    sa.Index("allocations_consumer_class_used_idx", "consumer_id", "resource_class", "used"),
)
