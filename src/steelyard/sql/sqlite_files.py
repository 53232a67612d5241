"""The files of SQLite databases: only an upgrade of the tables creates them.

SQLite itself would create an empty database for every mistyped path.
"""

import os
import urllib.parse
from typing import Any

import sqlalchemy as sa

from steelyard import errors


def require(_dialect: sa.Dialect, _record: object, args: Any, arguments: Any) -> None:
    """Raise UpgradeNeeded if the driver is about to create the file.

    A listener of the event ``do_connect``, whose arguments are those of the driver.
    """
    path = _path(args[0], uri=arguments.get("uri", False))
    if path is not None and not os.path.exists(path):
        raise errors.UpgradeNeeded(
            f"no file {path!r}: correct the path in the database URL, or create the file with "
            f"'steelyard db upgrade' (--schema tags for tags)"
        )


def create(engine: sa.Engine) -> None:
    """Create the file of the engine's database unless it exists or the database has none.

    Raises NoAccess if that is impossible.
    """
    path = _path_of(engine) if engine.dialect.name == "sqlite" else None
    if path is None or os.path.exists(path):
        return
    try:
        # SQLite takes an empty file for a new database.
        with open(path, "ab"):
            pass
    except OSError as error:
        raise errors.NoAccess(
            f"cannot create the database file {path!r}: {error.strerror}; check the path in the "
            f"database URL, and the permissions of the directory"
        ) from error


def is_without(engine: sa.Engine) -> bool:
    """Return whether the engine has an SQLite database that no file keeps, such as in memory."""
    return engine.dialect.name == "sqlite" and _path_of(engine) is None


def _path_of(engine: sa.Engine) -> str | None:
    args, arguments = engine.dialect.create_connect_args(engine.url)
    return _path(args[0], uri=arguments.get("uri", False))


def _path(name: str, *, uri: bool) -> str | None:
    """Return the absolute path of the file, or None for a database without a lasting file.

    ``name`` is the first argument of the driver, which is a URI if ``uri`` is set.
    """
    if uri and name.startswith("file:"):
        parts = urllib.parse.urlsplit(name)
        if urllib.parse.parse_qs(parts.query).get("mode") == ["memory"]:
            return None
        name = urllib.parse.unquote(parts.path)
    return None if name in ("", ":memory:") else os.path.abspath(name)
