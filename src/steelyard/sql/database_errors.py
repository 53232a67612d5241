"""Errors of databases, translated into errors of steelyard."""

import contextlib
from collections.abc import Iterator
from typing import Any, TypeGuard

import sqlalchemy as sa

from steelyard import errors

# Deadlocks, lock timeouts and serialization failures.
_TRANSIENT = {"40001", "40P01", 1020, 1205, 1213, "SQLITE_BUSY_SNAPSHOT"}
_DUPLICATE = {"23505", 1062, "SQLITE_CONSTRAINT_UNIQUE"}
_FOREIGN_KEY = {"23503", 1451, 1452}
_LACKING = {"42P01", "42703", 1146, 1054}


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Translate database errors that the block raises into errors of steelyard.

    Raises CannotBeKept if the database cannot store a value, UpgradeNeeded for missing tables and
    columns, TransactionAborted if a retry may succeed, and ServiceError otherwise. Engines raise
    NoAccess themselves if they cannot connect.
    """
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise _kind(error)(f"database error: {driver_message(error)}{_advice(error)}") from error
    except sa.exc.NoSuchTableError as error:
        raise errors.ServiceError(
            f"missing table {str(error)!r}; restore it from a backup"
        ) from error
    except sa.exc.PendingRollbackError as error:
        raise errors.ServiceError(
            "the transaction on this connection has failed; roll it back and begin a new one"
        ) from error
    except sa.exc.TimeoutError as error:
        raise errors.ServiceError(f"no database connection available: {error.args[0]}") from error
    except UnicodeEncodeError as error:
        raise errors.CannotBeKept(
            f"the database cannot store {error.object[error.start : error.end]!r:.100}: its "
            f"character set is {error.encoding}; create the database with UTF-8"
        ) from error


def cannot_connect(original: Exception) -> errors.NoAccess:
    """Return the error for a driver that cannot connect to its database."""
    error = sa.exc.DBAPIError(None, None, original)
    return errors.NoAccess(f"database error: {driver_message(error)}{_advice(error)}")


def driver_message(error: sa.exc.DBAPIError) -> str:
    """Return the driver's message on one line, or the name of its error if the message is empty."""
    return " ".join(str(error.orig).split()) or type(error.orig).__name__


def is_transient(error: BaseException) -> TypeGuard[sa.exc.DBAPIError]:
    """Return whether the transaction may succeed if it is retried."""
    return isinstance(error, sa.exc.DBAPIError) and bool(_codes(error) & _TRANSIENT)


def is_duplicate(error: sa.exc.IntegrityError) -> bool:
    """Return whether the error is a duplicate value in a unique column."""
    return bool(_codes(error) & _DUPLICATE)


def violates(error: sa.exc.IntegrityError, key: str) -> bool:
    """Return whether the error is a violation of the foreign key with this name.

    Always False on SQLite, which does not report the names of keys.
    """
    if not _codes(error) & _FOREIGN_KEY:
        return False
    original: Any = error.orig
    if hasattr(original, "diag"):
        return bool(original.diag.constraint_name == key)
    # MySQL's drivers report the name only in the message.
    return f"`{key}`" in driver_message(error)


def _kind(error: sa.exc.DBAPIError) -> type[errors.ServiceError]:
    if isinstance(error, sa.exc.DataError):
        return errors.CannotBeKept
    if _lacks_tables(error):
        return errors.UpgradeNeeded
    if is_transient(error) or _is_locked(error):
        return errors.TransactionAborted
    return errors.ServiceError


def _lacks_tables(error: sa.exc.DBAPIError) -> bool:
    """Return whether a table or a column is missing."""
    codes, message = _codes(error), driver_message(error)
    # SQLite has one code for most errors; only the message identifies a missing table.
    return bool(codes & _LACKING) or (
        "SQLITE_ERROR" in codes
        and (message.startswith("no such ") or " has no column named " in message)
    )


def _is_locked(error: sa.exc.DBAPIError) -> bool:
    """Return whether another connection holds a lock of SQLite."""
    return any(str(code).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) for code in _codes(error))


def _advice(error: sa.exc.DBAPIError) -> str:
    if _lacks_tables(error):
        return (
            "; run 'steelyard db upgrade', or 'steelyard db upgrade --schema tags' for the tag "
            "tables"
        )
    if "SQLITE_CANTOPEN" in _codes(error):
        return "; check the path in the database URL, and the permissions of the directory"
    if _is_locked(error):
        return (
            "; another connection is writing: retry, or wait longer with ?timeout=<seconds> in the "
            "URL"
        )
    return ""


def _codes(error: sa.exc.DBAPIError) -> set[object]:
    """Return the codes that identify the error, in whatever form the driver has them.

    PyMySQL has MySQL's error number and, in newer versions, also an SQLSTATE, which is the same for
    most numbers.
    """
    original: Any = error.orig
    names = ("sqlstate", "pgcode", "sqlite_errorname")
    return {getattr(original, name, None) for name in names} | set(original.args[:1])
