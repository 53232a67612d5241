"""The tables of consumers, consumer types and allocations."""

import sqlalchemy as sa

from steelyard.sql.text_columns import Text

metadata = sa.MetaData()

VERSION_TABLE = "steelyard_consumers_version"

KEY_OF_TYPES = "fk_consumers_type"
"""The name of the foreign key from consumers to their types."""

consumer_types = sa.Table(
    "consumer_types",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", Text(255), nullable=False),
    sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
    sqlite_autoincrement=True,
    info={"revision": "0003"},
)

consumers = sa.Table(
    "consumers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", Text(36), nullable=False),
    sa.Column("generation", sa.Integer, nullable=False, server_default="0"),
    sa.Column("project", Text(255), nullable=False),
    sa.Column("user", Text(255), nullable=False),
    # On SQLite, an upgrade inside a caller's transaction with foreign keys on makes this column
    # nullable. NULL means UNKNOWN.
    sa.Column(
        "consumer_type_id",
        sa.Integer,
        sa.ForeignKey("consumer_types.id", name=KEY_OF_TYPES),
        nullable=False,
    ),
    sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    sa.Index("consumers_type_idx", "consumer_type_id"),
    sa.Index("consumers_project_user_type_idx", "project", "user", "consumer_type_id"),
    info={"revision": "0001"},
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
    sa.Index("allocations_provider_idx", "resource_provider", "consumer_id"),
    info={"revision": "0002"},
)
