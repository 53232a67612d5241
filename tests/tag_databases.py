"""The commands that write to a database of tags, and everything that is in one."""

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
    "reconcile with new jobs": ("reconcile", "--jobs-anew"),
    "selftest": ("selftest", "s1"),
    "serve": ("serve", "--port", "0"),
    "backend set, renamed": ("backend", "set", "memory", "--renamed"),
}
"""Arguments of ``steelyard tags``, by what they do; instance s1 has the user's tag smtp."""

RECORDING: dict[str, tuple[str, ...]] = {
    "backend set": ("backend", "set", "memory"),
    "backend set, moved": ("backend", "set", "memory", "--moved"),
}
"""Those that may write where no backend is recorded."""


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
    """Upgrade the tables, and record the backend, by default the one in memory."""
    store.upgrade()
    store.record_backend(MemoryBackend().identity() if owner is None else owner)
