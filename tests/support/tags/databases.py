"""Commands that write to a database of tags, and its dump and upgrade."""

import contextlib
import functools
import sqlite3
from typing import Any

import sqlalchemy as sa

from steelyard.tags import TagStore
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.memory import MemoryBackend

WRITING: dict[str, tuple[str, ...]] = {
    "add": ("add", "s1", "web"),
    "add for the system": ("add", "s1", "web", "--owner", "system"),
    "remove": ("remove", "s1", "smtp", "--owner", "user"),
    "replace": ("replace", "s1", "web", "--owner", "user"),
    "clear": ("clear", "s1", "--owner", "user"),
    "register": ("register", "s9", "--name", "vm-9", "--project", "p", "--user", "u"),
    "forget": ("forget", "s1"),
    "reconcile": ("reconcile",),
    "reconcile with a dry run": ("reconcile", "--dry-run"),
    "reconcile with new jobs": ("reconcile", "--forget-jobs"),
    "selftest": ("selftest", "s1"),
    "serve": ("serve", "--port", "0"),
    "backend set, renamed": ("backend", "set", "memory", "--renamed"),
}
"""Arguments of ``steelyard tags`` by their effect; instance s1 has the user's tag smtp."""

RECORDING: dict[str, tuple[str, ...]] = {
    "backend set": ("backend", "set", "memory"),
    "backend set, moved": ("backend", "set", "memory", "--moved"),
}
"""Arguments of the commands that may write although no backend is recorded."""


def dump(url: str) -> dict[str, list[Any]]:
    """Return every row of every table."""
    engine = sa.create_engine(url)
    metadata = sa.MetaData()
    try:
        with engine.connect() as connection:
            metadata.reflect(connection)
            return {
                table.name: sorted(map(repr, connection.execute(sa.select(table))))
                for table in metadata.sorted_tables
            }
    finally:
        engine.dispose()


def upgrade(store: TagStore, owner: BackendIdentity | None = None) -> None:
    """Upgrade the tables, and record the backend, by default the one in memory.

    An empty database of SQLite gets a copy of one that was upgraded before, which is much faster.
    """
    identity = MemoryBackend().identity() if owner is None else owner
    store.create_file()
    where = store._database
    if isinstance(where, sa.Engine) and where.dialect.name == "sqlite":
        with where.connect() as connection:
            target = connection.connection.driver_connection
            assert isinstance(target, sqlite3.Connection)
            if not sa.inspect(connection).get_table_names():
                connection.rollback()
                with contextlib.closing(sqlite3.connect(":memory:")) as upgraded:
                    upgraded.deserialize(_upgraded(identity))
                    upgraded.backup(target)
                return
    store.upgrade()
    store.record_backend(identity)


@functools.cache
def _upgraded(identity: BackendIdentity) -> bytes:
    """Return a database of SQLite whose tables are upgraded, with the backend recorded."""
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    store = TagStore(engine)
    store.upgrade()
    store.record_backend(identity)
    with engine.connect() as connection:
        made = connection.connection.driver_connection
        assert isinstance(made, sqlite3.Connection)
        found = made.serialize()
    engine.dispose()
    return found
