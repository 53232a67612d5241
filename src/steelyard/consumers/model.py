"""The tables of consumers, their types and what is allocated to them."""

from steelyard import errors

try:
    import sqlalchemy as sa
except ModuleNotFoundError as error:
    raise errors.MissingExtra(
        "the store of consumers needs SQLAlchemy: python3 -m pip install 'steelyard[sql]'"
    ) from error

VERSION_TABLE = "steelyard_consumers_version"

metadata = sa.MetaData()


def text(length: int) -> sa.types.TypeEngine[str]:
    """Text that is compared as it is written, in every database."""
    return sa.String(length).with_variant(
        sa.String(length, collation="utf8mb4_bin"), "mysql", "mariadb"
    )


consumer_types = sa.Table(
    "consumer_types",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", text(255), nullable=False),
    sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
)

consumers = sa.Table(
    "consumers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", text(36), nullable=False),
    sa.Column("generation", sa.Integer, nullable=False, server_default="0"),
    sa.Column("project", text(255), nullable=False),
    sa.Column("user", text(255), nullable=False),
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
    sa.Column("resource_provider", text(36), nullable=False),
    sa.Column("resource_class", text(255), nullable=False),
    sa.Column("used", sa.Integer, nullable=False),
    sa.UniqueConstraint(
        "consumer_id", "resource_provider", "resource_class", name="uniq_allocations0all"
    ),
)
