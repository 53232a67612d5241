"""Upgrades interrupted by Ctrl-C during a migration, on PostgreSQL and MariaDB."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from steelyard.sql.stores import Store
from support.sql.store_laws import KINDS

PATIENCE = 30

# Statements that lock a table that the migration changes.
LOCKED = {
    "postgresql": "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE",
    "mysql": "LOCK TABLES {} WRITE",
}
WAITING = {
    "postgresql": (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ),
    "mysql": (
        "SELECT count(*) FROM information_schema.processlist "
        "WHERE db = database() AND left(state, 17) = 'Waiting for table'"
    ),
}
HELD = {
    "postgresql": (
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    ),
    "mysql": "SELECT coalesce(is_used_lock(concat('steelyard.', sha1(concat(database(), '.{}')))), 0)",
}
# A revision before the last, and a table that a later one changes.
PARTS = {
    "steelyard_consumers_version": ("0003", "consumers"),
    "steelyard_tags_version": ("0004", "tag_operations"),
}


@contextlib.contextmanager
def locked(engine: sa.Engine, table: str) -> Iterator[None]:
    with engine.connect() as connection:
        connection.exec_driver_sql(LOCKED[engine.dialect.name].format(table))
        yield
        connection.invalidate()


def interrupt_once_it_waits(engine: sa.Engine) -> None:
    """Send SIGINT to the main thread when its migration waits for the table."""
    outside = engine.execution_options(isolation_level="AUTOCOMMIT")
    end = time.monotonic() + PATIENCE
    with outside.connect() as connection:
        while not connection.exec_driver_sql(WAITING[engine.dialect.name]).scalar():
            assert time.monotonic() < end
            time.sleep(0.05)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Enable KeyboardInterrupt on SIGINT, even if the parent process ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.usefixtures("interruptible")
def test_interrupted_upgrade_leaves_no_lock_and_can_be_repeated(
    engine: sa.Engine, kind: type[Store], *, inside: bool
) -> None:
    earlier, table = PARTS[kind.version_table]
    kind(engine).upgrade(earlier)

    def upgrade() -> None:
        if inside:
            with engine.begin() as connection:
                kind(connection).upgrade()
        else:
            kind(engine).upgrade()

    interrupting = threading.Thread(target=interrupt_once_it_waits, args=(engine,))
    # The traceback keeps the objects of the upgrade alive, as in an interactive session.
    with locked(engine, table):
        interrupting.start()
        with pytest.raises(KeyboardInterrupt) as caught:
            upgrade()
    interrupting.join()
    assert locks(engine, kind) == 0
    upgrade()
    assert kind(engine).current() == kind(engine).history()[-1][0]
    assert caught.value is not None


def locks(engine: sa.Engine, kind: type[Store]) -> int:
    """Return the number of locks held once the server has noticed the disconnection."""
    query = HELD[engine.dialect.name].format(kind.version_table)
    end = time.monotonic() + PATIENCE
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while (
            held := int(connection.exec_driver_sql(query).scalar_one())
        ) and time.monotonic() < end:
            time.sleep(0.05)
    return held
