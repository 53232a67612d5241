"""The laws of the schemas of all stores, for every database."""

import concurrent.futures
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.errors import BadRequest, Conflict
from steelyard.sql.stores import Store
from steelyard.tags.database.store import TagStore
from support.forks import forks

KINDS = [ConsumerStore, TagStore]
AT_ONCE = 4
PATIENCE = 60


def stamp(engine: sa.Engine, kind: type[Store], revision: str | None) -> None:
    """Record the revision without changing the tables."""
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DELETE FROM {kind.version_table}")
        if revision:
            connection.exec_driver_sql(f"INSERT INTO {kind.version_table} VALUES ('{revision}')")


def tables(engine: sa.Engine, kind: type[Store]) -> dict[str, Any]:
    """Return the definitions of the store's tables, as the database reports them."""
    inspector = sa.inspect(engine)
    return {
        name: {
            "columns": {str(_column(each)) for each in inspector.get_columns(name)},
            "unique": {str(_keys(each)) for each in inspector.get_unique_constraints(name)},
            "indexes": {str(_keys(each)) for each in inspector.get_indexes(name)},
            "foreign": [
                (each["referred_table"], each["options"].get("ondelete"))
                for each in inspector.get_foreign_keys(name)
            ],
        }
        for name in sorted(set(inspector.get_table_names()) & set(kind.metadata.tables))
    }


def _column(definition: Any) -> tuple[Any, ...]:
    collation = getattr(definition["type"], "collation", None)
    return definition["name"], repr(definition["type"]), definition["nullable"], collation


def _keys(definition: Any) -> tuple[Any, ...]:
    return definition["name"], definition["column_names"]


def check_each_step_can_be_repeated(engine: sa.Engine, kind: type[Store]) -> None:
    """Repeat each step, as after a crash between the step and the record of its revision."""
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


def check_tables_match_the_model(engine: sa.Engine, kind: type[Store]) -> None:
    """Compare the tables that the revisions create with those of the model."""
    store = kind(engine)
    store.upgrade()
    of_revisions = tables(engine, kind)
    store.downgrade("base")
    kind.metadata.create_all(engine)
    assert tables(engine, kind) == of_revisions
    assert set(of_revisions) == set(kind.metadata.tables)


def upgrade_together(kind: type[Store], url: str) -> None:
    """Upgrade once all processes have started."""
    start_barrier.wait(PATIENCE)
    kind(url).upgrade()


start_barrier: Any = None


def share_barrier(barrier: Any) -> None:
    global start_barrier  # noqa: PLW0603  (the pool's initializer has no other place for it)
    start_barrier = barrier


def check_processes_upgrade_concurrently(engine: sa.Engine, kind: type[Store]) -> None:
    context = forks()
    url = engine.url.render_as_string(hide_password=False)
    with concurrent.futures.ProcessPoolExecutor(
        AT_ONCE, context, share_barrier, (context.Barrier(AT_ONCE),)
    ) as pool:
        upgrades = [pool.submit(upgrade_together, kind, url) for _ in range(AT_ONCE)]
        for each in upgrades:
            each.result(PATIENCE)
    store = kind(engine)
    assert store.current() == store.history()[-1][0]
    with engine.connect() as connection:
        count = sa.text(f"SELECT count(*) FROM {kind.version_table}")
        assert connection.execute(count).scalar() == 1


def check_upgrade_in_a_callers_transaction(engine: sa.Engine, kind: type[Store]) -> None:
    """Roll back an upgrade if the database can, and repeat it."""
    with engine.connect() as connection:
        kind(connection).upgrade()
    if engine.dialect.name in ("sqlite", "postgresql"):
        assert tables(engine, kind) == {}
    with engine.begin() as connection:
        kind(connection).upgrade()
    assert kind(engine).current() == kind(engine).history()[-1][0]


def check_newer_revision_is_rejected(engine: sa.Engine, kind: type[Store]) -> None:
    store = kind(engine)
    store.upgrade()
    changes: list[Callable[[], None]] = [store.upgrade, lambda: store.downgrade("base")]
    for change in changes:
        stamp(engine, kind, "9999")
        with pytest.raises(
            Conflict, match="has revision '9999', which this version of steelyard lacks"
        ):
            change()
        assert store.current() == "9999"
    stamp(engine, kind, store.history()[-1][0])
    for text in ("nowhere", "\ud800"):
        with pytest.raises(Conflict, match="cannot migrate the tables to revision '") as caught:
            store.upgrade(text)
        assert ascii(text)[1:-1] in str(caught.value).encode().decode()


def check_invalid_revision_is_rejected(engine: sa.Engine, kind: type[Store]) -> None:
    store: Any = kind(engine)
    store.upgrade()
    for wrong in ("", None, 5):
        for change in (store.upgrade, store.downgrade):
            with pytest.raises(
                BadRequest, match=f"invalid revision {wrong!r}: expected text such as"
            ):
                change(wrong)
    assert set(tables(engine, kind)) == set(kind.metadata.tables)


def check_lost_tables_are_named(engine: sa.Engine, kind: type[Store]) -> None:
    """Drop tables, as a host service's autogenerated revision does without the hook."""
    store = kind(engine)
    store.upgrade()
    every = sorted(kind.metadata.tables)
    parent = {ConsumerStore: "consumer_types", TagStore: "tag_instances"}[kind]
    for left in ([parent], []):
        with engine.begin() as connection:
            lost = [name for name in every if name not in left]
            kind.metadata.drop_all(connection, [kind.metadata.tables[name] for name in lost])
        message = (
            f"missing tables of revision '{store.current()}': {', '.join(map(repr, lost))}; "
            f"restore them from a backup, or drop "
            f"{', '.join(map(repr, [*left, kind.version_table]))} and run '{kind.upgrade_command}'"
        )
        for change in (store.upgrade, store.downgrade):
            with pytest.raises(Conflict) as raised:
                change("base")
            assert str(raised.value) == message
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE {kind.version_table}")
    store.upgrade()
    assert set(tables(engine, kind)) == set(every)


def check_tables_name_the_revision_that_creates_them(engine: sa.Engine, kind: type[Store]) -> None:
    store = kind(engine)
    for revision, _ in store.history():
        store.upgrade(revision)
        created = {
            name
            for name, table in kind.metadata.tables.items()
            if table.info["revision"] <= revision
        }
        assert set(tables(engine, kind)) == created


CHECKS = [
    check_invalid_revision_is_rejected,
    check_lost_tables_are_named,
    check_tables_name_the_revision_that_creates_them,
    check_tables_match_the_model,
    check_each_step_can_be_repeated,
    check_processes_upgrade_concurrently,
    check_upgrade_in_a_callers_transaction,
    check_newer_revision_is_rejected,
]
