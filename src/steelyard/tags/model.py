"""The tables of instances, their tags, what is under way at the backend, and what has been done."""

import sqlalchemy as sa

from steelyard.stores import Text
from steelyard.tags import names

metadata = sa.MetaData()

_PREFIX = 64
_NAME = names.LONGEST


def _instance(*, primary_key: bool = False) -> sa.Column[int]:
    return sa.Column(
        "instance_id",
        sa.Integer,
        sa.ForeignKey("tag_instances.number", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


def _tag() -> tuple[sa.Column[int], sa.Column[str], sa.Column[str]]:
    """The key of a tag.

    It is the primary one because InnoDB, when it checks a unique key of another kind, locks the
    neighbours of what has been removed: other instances would have to wait.
    """
    return (
        _instance(primary_key=True),
        sa.Column("prefix", Text(_PREFIX), primary_key=True),
        sa.Column("name", Text(_NAME), primary_key=True),
    )


instances = sa.Table(
    "tag_instances",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", Text(64), nullable=False),
    sa.Column("name", Text(255), nullable=False),
    sa.Column("project", Text(255), nullable=False),
    sa.Column("user", Text(255), nullable=False),
    # Rises with each change, which a transaction of the REPEATABLE READ kind learns by.
    sa.Column("generation", sa.Integer, nullable=False, server_default="0"),
    # All jobs up to this number were over when the backend was looked at.
    sa.Column("horizon", sa.BigInteger, nullable=False, server_default="0"),
    sa.UniqueConstraint("id", name="uniq_tag_instances0id"),
    sa.UniqueConstraint("name", name="uniq_tag_instances0name"),
)

# One row at most: the backend that everything in the other tables is about.
backend = sa.Table(
    "tag_backend",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("driver", Text(64), nullable=False),
    sa.Column("name", Text(255), nullable=False),
)

tags = sa.Table(
    "instance_tags",
    metadata,
    *_tag(),
    sa.Column("status", Text(16), nullable=False),
)

operations = sa.Table(
    "tag_operations",
    metadata,
    sa.Column("id", Text(36), primary_key=True),
    _instance(),
    sa.Column("kind", Text(16), nullable=False),
    sa.Column("prefix", Text(_PREFIX), nullable=False),
    sa.Column("names", sa.JSON, nullable=False),
    sa.Column("job", sa.BigInteger),
    sa.Column("begun", sa.Double, nullable=False),
    sa.Index("tag_operations_instance_idx", "instance_id"),
)

# What outlives a tag: the last job whose success has been seen, so that an older one changes
# nothing.
marks = sa.Table(
    "tag_marks",
    metadata,
    *_tag(),
    sa.Column("job", sa.BigInteger, nullable=False),
    sa.Column("there", sa.Boolean, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Index("tag_marks_seen_idx", "seen"),
)
