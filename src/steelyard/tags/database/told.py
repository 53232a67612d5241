"""The reasons of failed additions, which users are told for a while."""

import time
from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from steelyard.tags.codec import Tag
from steelyard.tags.database.model import LONGEST_REASON, failures
from steelyard.text.escapes import escaped

# Seconds for which a reason is told.
_KEPT = 3600.0


def write(
    connection: sa.Connection, new: Iterable[tuple[int, Mapping[Tag, str]]], now: float
) -> None:
    """Write the reasons by tag, for the instances with these numbers; there must be no old ones."""
    rows = [
        {
            "instance_id": number,
            "prefix": tag.prefix,
            "name": tag.name,
            # Some databases cannot store all characters of a backend's text.
            "reason": escaped(reason)[:LONGEST_REASON],
            "seen": now,
        }
        for number, reasons in new
        for tag, reason in reasons.items()
    ]
    if rows:
        connection.execute(sa.insert(failures), rows)


def read(connection: sa.Connection, number: int, tag: Tag) -> str | None:
    """Return the reason why the tag could not be added lately, or None."""
    found = sa.select(failures.c.reason).where(
        failures.c.instance_id == number,
        failures.c.prefix == tag.prefix,
        failures.c.name == tag.name,
        failures.c.seen >= time.time() - _KEPT,
    )
    reason: str | None = connection.execute(found).scalar()
    return reason


def prune(connection: sa.Connection) -> None:
    """Delete the reasons that are no longer told."""
    connection.execute(sa.delete(failures).where(failures.c.seen < time.time() - _KEPT))
