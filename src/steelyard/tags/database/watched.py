"""The record of how far the watch has followed the backend's jobs."""

import dataclasses

import sqlalchemy as sa

from steelyard.tags.database import model

# The number of the only row.
_NUMBER = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Watched:
    """The progress of the watch."""

    job: int | None = None
    """All jobs up to this one are finished and applied; None if none has been followed yet."""

    reconciled: float | None = None
    """When all instances were reconciled, in seconds since the epoch."""


def read(connection: sa.Connection) -> Watched:
    """Return the progress of the watch."""
    row = connection.execute(sa.select(model.watch.c.job, model.watch.c.reconciled)).first()
    return Watched() if row is None else Watched(row.job, row.reconciled)


def follow(connection: sa.Connection, before: int | None, job: int) -> None:
    """Record that all jobs up to this one are applied.

    Does nothing if the record is no longer ``before``: another watch was faster, or all jobs were
    forgotten.
    """
    _ensure_row(connection)
    unchanged = sa.update(model.watch).where(model.watch.c.job.is_not_distinct_from(before))
    connection.execute(unchanged.values(job=job))


def reconciled(connection: sa.Connection, moment: float) -> None:
    """Record when all instances were reconciled, in seconds since the epoch."""
    _ensure_row(connection)
    connection.execute(sa.update(model.watch).values(reconciled=moment))


def forget_jobs(connection: sa.Connection) -> None:
    """Record that no job has been followed yet."""
    connection.execute(sa.update(model.watch).values(job=None))


def _ensure_row(connection: sa.Connection) -> None:
    if connection.execute(sa.select(model.watch.c.number)).first() is not None:
        return
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(model.watch).values(number=_NUMBER))
    except sa.exc.IntegrityError:  # another process has inserted it meanwhile
        pass
