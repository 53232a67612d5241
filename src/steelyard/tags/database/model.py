"""The tables of instances, tags, operations and marks, of the backend and of the watch."""

import sqlalchemy as sa

from steelyard.sql.text_columns import Text
from steelyard.tags import names

metadata = sa.MetaData()

_PREFIX = 64
_NAME = names.LONGEST

LONGEST_REASON = 500


def _instance(*, primary_key: bool = False) -> sa.Column[int]:
    return sa.Column(
        "instance_id",
        sa.Integer,
        sa.ForeignKey("tag_instances.number", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


def _tag() -> tuple[sa.Column[int], sa.Column[str], sa.Column[str]]:
    """Return the columns of a tag's key, which is the primary key.

    When InnoDB checks any other unique key, it locks the neighbours of deleted rows, so changes of
    other instances would have to wait.
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
    # Rises with each change, so a REPEATABLE READ transaction can tell that it sees an old row.
    sa.Column("generation", sa.Integer, nullable=False, server_default="0"),
    # All jobs up to this number are finished, and their results are recorded.
    sa.Column("horizon", sa.BigInteger, nullable=False, server_default="0"),
    sa.UniqueConstraint("id", name="uniq_tag_instances0id"),
    sa.UniqueConstraint("name", name="uniq_tag_instances0name"),
    sa.Index("tag_instances_project_idx", "project", "id"),
    info={"revision": "0001"},
)

# At most one row: the backend that the database belongs to.
backend = sa.Table(
    "tag_backend",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("driver", Text(64), nullable=False),
    sa.Column("name", Text(255), nullable=False),
    info={"revision": "0007"},
)

# At most one row: how far the watch has followed the backend's jobs.
watch = sa.Table(
    "tag_watch",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    # All jobs up to this one are finished and applied; NULL if none has been followed yet.
    sa.Column("job", sa.BigInteger),
    # When all instances were reconciled, in seconds since the epoch.
    sa.Column("reconciled", sa.Double),
    info={"revision": "0008"},
)

tags = sa.Table(
    "instance_tags",
    metadata,
    *_tag(),
    sa.Column("status", Text(16), nullable=False),
    # For lists of the instances with a tag. It has all columns that these need.
    sa.Index("instance_tags_name_idx", "name", "prefix", "instance_id"),
    info={"revision": "0002"},
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
    sa.Column("caller", Text(255)),
    sa.Index("tag_operations_instance_idx", "instance_id"),
    info={"revision": "0003"},
)

# The last failure of an addition of each missing tag, for its user.
failures = sa.Table(
    "tag_failures",
    metadata,
    *_tag(),
    sa.Column("reason", Text(LONGEST_REASON), nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Index("tag_failures_seen_idx", "seen"),
    info={"revision": "0012"},
)

# The last job known to have succeeded for each tag, so that late outcomes of earlier jobs change
# nothing. A row outlives its tag.
marks = sa.Table(
    "tag_marks",
    metadata,
    *_tag(),
    sa.Column("job", sa.BigInteger, nullable=False),
    sa.Column("there", sa.Boolean, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Index("tag_marks_seen_idx", "seen"),
    info={"revision": "0004"},
)
