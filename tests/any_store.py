"""What holds for every kind of store, on every database: how its tables come and go."""

import concurrent.futures
import itertools
import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.errors import Conflict
from steelyard.stores import Store
from steelyard.tags.store import TagStore

KINDS = [ConsumerStore, TagStore]
AT_ONCE = 4
PATIENCE = 60


def stamp(engine: sa.Engine, kind: type[Store], revision: str | None) -> None:
    """Has the tables be what they are, and said to be at the revision."""
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DELETE FROM {kind.version_table}")
        if revision:
            connection.exec_driver_sql(f"INSERT INTO {kind.version_table} VALUES ('{revision}')")


def tables(engine: sa.Engine, kind: type[Store]) -> dict[str, Any]:
    """Those that are there, as the database describes them."""
    there = sa.inspect(engine)
    return {
        name: {
            "columns": {str(_column(each)) for each in there.get_columns(name)},
            "unique": {str(_keys(each)) for each in there.get_unique_constraints(name)},
            "indexes": {str(_keys(each)) for each in there.get_indexes(name)},
            "foreign": [
                (each["referred_table"], each["options"].get("ondelete"))
                for each in there.get_foreign_keys(name)
            ],
        }
        for name in sorted(set(there.get_table_names()) & set(kind.metadata.tables))
    }


def _column(said: Any) -> tuple[Any, ...]:
    collation = getattr(said["type"], "collation", None)
    return said["name"], repr(said["type"]), said["nullable"], collation


def _keys(said: Any) -> tuple[Any, ...]:
    return said["name"], said["column_names"]


def check_each_step_can_be_repeated(engine: sa.Engine, kind: type[Store]) -> None:
    """As after a crash between a step and the note that it is done, both ways."""
    store = kind(engine)
    revisions: list[str | None] = [None, *(revision for revision, _ in store.history())]
    for before, revision in itertools.pairwise(revisions):
        assert revision is not None
        kind(engine).upgrade(revision)
        done = tables(engine, kind)
        stamp(engine, kind, before)
        kind(engine).upgrade(revision)
        assert store.current() == revision
        assert tables(engine, kind) == done
        store.downgrade(before or "base")
        undone = tables(engine, kind)
        stamp(engine, kind, revision)
        store.downgrade(before or "base")
        assert store.current() == before
        assert tables(engine, kind) == undone
        kind(engine).upgrade(revision)
        assert tables(engine, kind) == done


def check_the_tables_are_those_of_the_model(engine: sa.Engine, kind: type[Store]) -> None:
    """What the revisions make of nothing, and what the store works on."""
    store = kind(engine)
    store.upgrade()
    of_revisions = tables(engine, kind)
    store.downgrade("base")
    kind.metadata.create_all(engine)
    assert tables(engine, kind) == of_revisions
    assert set(of_revisions) == set(kind.metadata.tables)


def upgrade_with_others(kind: type[Store], url: str) -> None:
    """What a process does, once all of them are there."""
    together.wait(PATIENCE)
    kind(url).upgrade()


together: Any = None


def meet(barrier: Any) -> None:
    global together  # noqa: PLW0603  (a process has no other place for it)
    together = barrier


def check_processes_upgrade_at_once(engine: sa.Engine, kind: type[Store]) -> None:
    context = multiprocessing.get_context("spawn")
    url = engine.url.render_as_string(hide_password=False)
    with concurrent.futures.ProcessPoolExecutor(
        AT_ONCE, context, meet, (context.Barrier(AT_ONCE),)
    ) as pool:
        asked = [pool.submit(upgrade_with_others, kind, url) for _ in range(AT_ONCE)]
        for each in asked:
            each.result(PATIENCE)
    store = kind(engine)
    assert store.current() == store.history()[-1][0]
    with engine.connect() as connection:
        count = sa.text(f"SELECT count(*) FROM {kind.version_table}")
        assert connection.execute(count).scalar() == 1


def check_the_caller_decides_on_an_upgrade(engine: sa.Engine, kind: type[Store]) -> None:
    """Where the database can take the tables back; where not, it can be done once more."""
    with engine.connect() as connection:
        kind(connection).upgrade()
    if engine.dialect.name in ("sqlite", "postgresql"):
        assert tables(engine, kind) == {}
    with engine.begin() as connection:
        kind(connection).upgrade()
    assert kind(engine).current() == kind(engine).history()[-1][0]


def check_a_newer_revision_is_refused(engine: sa.Engine, kind: type[Store]) -> None:
    store = kind(engine)
    store.upgrade()
    changes: list[Callable[[], None]] = [store.upgrade, lambda: store.downgrade("base")]
    for change in changes:
        stamp(engine, kind, "9999")
        with pytest.raises(Conflict, match="at the revision 9999, which this steelyard does not"):
            change()
        assert store.current() == "9999"
    stamp(engine, kind, store.history()[-1][0])
    with pytest.raises(Conflict, match="cannot be taken to the revision 'nowhere'"):
        store.upgrade("nowhere")


CHECKS = [
    check_the_tables_are_those_of_the_model,
    check_each_step_can_be_repeated,
    check_processes_upgrade_at_once,
    check_the_caller_decides_on_an_upgrade,
    check_a_newer_revision_is_refused,
]
