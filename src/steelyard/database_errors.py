"""What databases say when they cannot do it, as errors of ours."""

import contextlib
from collections.abc import Iterator
from typing import Any, TypeGuard

import sqlalchemy as sa

from steelyard import errors

# Deadlocks, waits that were too long, transactions that are too old to be serialized.
_PASSING = {"40001", "40P01", 1020, 1205, 1213, "SQLITE_BUSY_SNAPSHOT"}
_LACKING = {"42P01", "42703", 1146, 1054}


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """Makes our errors of what a database says: that it is not there, that it lacks the tables."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        kind = errors.CannotBeKept if isinstance(error, sa.exc.DataError) else errors.ServiceError
        raise kind(f"the database cannot do it: {said(error)}{_advice(error)}") from error
    except sa.exc.PendingRollbackError as error:
        raise errors.ServiceError(
            "the transaction on this connection is over: roll it back, and begin it again"
        ) from error
    except sa.exc.TimeoutError as error:
        raise errors.ServiceError(
            f"no connection to the database has become free: {error.args[0]}"
        ) from error
    except UnicodeEncodeError as error:
        raise errors.CannotBeKept(
            f"the database cannot keep {error.object[error.start : error.end]!r:.100}: its "
            f"characters are those of {error.encoding}; make it with UTF-8"
        ) from error


def said(error: sa.exc.DBAPIError) -> str:
    """What the driver says, in one line."""
    return " ".join(str(error.orig).split()) or type(error.orig).__name__


def passing(error: BaseException) -> TypeGuard[sa.exc.DBAPIError]:
    """Whether the same may succeed when its transaction is begun again."""
    return isinstance(error, sa.exc.DBAPIError) and bool(_codes(error) & _PASSING)


def _advice(error: sa.exc.DBAPIError) -> str:
    codes = _codes(error)
    if codes & _LACKING or said(error).startswith("no such "):
        return "; steelyard db upgrade brings the tables, with --schema tags those of tags"
    if any(str(code).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) for code in codes):
        return (
            "; somebody else is writing to it: try again, and wait longer if need be, with a "
            "?timeout= of more seconds in its URL"
        )
    return ""


def _codes(error: sa.exc.DBAPIError) -> set[object]:
    """What the driver calls the error by.

    PyMySQL has MySQL's number and, in newer versions, also an SQLSTATE, which most numbers share.
    """
    original: Any = error.orig
    names = ("sqlstate", "pgcode", "sqlite_errorname")
    return {getattr(original, name, None) for name in names} | set(original.args[:1])
