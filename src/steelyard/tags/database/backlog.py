"""The pending operations as a whole, for monitoring."""

import dataclasses

import sqlalchemy as sa

from steelyard.tags.database import model


@dataclasses.dataclass(frozen=True, slots=True)
class Backlog:
    """The number of pending operations, and when the oldest one began.

    ``since`` is in seconds since the epoch, None if no operation is pending.
    """

    operations: int
    since: float | None


def read(connection: sa.Connection) -> Backlog:
    """Return the present backlog."""
    begun = model.operations.c.begun
    count, since = connection.execute(sa.select(sa.func.count(), sa.func.min(begun))).one()
    return Backlog(count, since)
