"""Laws of the schema of tags for every database: alone, and beside other schemas."""

from typing import Any

import alembic.command
import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.errors import Conflict, NotFound
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.database.model import metadata
from steelyard.tags.states.values import Instance, State, StateChange
from support.tags.patient_service import ACTIVE, USER, put


def check_changes_join_the_callers_transaction(engine: sa.Engine) -> None:
    # A failed change must not abort the caller's transaction.
    outside = TagStore(engine)
    outside.upgrade()
    outside.register(Instance("s1", "vm", "p", "u"))
    red = StateChange({Tag(USER, "red"): ACTIVE})
    for end in ("rollback", "commit"):
        with engine.connect() as connection:
            store = TagStore(connection)
            with pytest.raises(ValueError, match="give the store a URL or an engine"):
                TagService(store, MemoryBackend())
            store.change("s1", lambda _: (red, None))
            with pytest.raises(Conflict):
                store.register(Instance("s2", "vm", "p", "u"))
            with pytest.raises(NotFound):
                store.change("s2", lambda _: (red, None))
            assert store.state("s1").tags == red.put
            getattr(connection, end)()
        there = {} if end == "rollback" else {Tag(USER, "red"): ACTIVE}
        assert outside.state("s1").tags == there
    assert [each.id for each in outside.instances()] == ["s1"]


def check_migrations_join_the_callers_transaction(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        store = TagStore(connection)
        store.upgrade()
        assert store.current() == store.history()[-1][0]
        connection.commit()
    assert TagStore(engine).current() == store.history()[-1][0]


def check_migrations_up_and_down_keep_tags(engine: sa.Engine) -> None:
    # The tags are older than the table of operations.
    store = TagStore(engine)
    store.upgrade("0002")
    row: dict[str, Any] = {"number": 7, "id": "s1", "name": "vm", "project": "p", "user": "u"}
    tag = {"instance_id": 7, "prefix": USER, "name": "réd 🎉 ", "status": "ACTIVE"}
    with engine.begin() as connection:
        connection.execute(sa.insert(metadata.tables["tag_instances"]).values(row))
        connection.execute(sa.insert(metadata.tables["instance_tags"]).values(tag))
    there = State({Tag(USER, "réd 🎉 "): ACTIVE})
    for _ in range(2):
        store.upgrade()
        assert store.current() == store.history()[-1][0]
        assert store.instance("s1") == Instance("s1", "vm", "p", "u")
        assert store.state("s1") == there
        assert set(metadata.tables) <= set(sa.inspect(engine).get_table_names())
        store.downgrade("0002")
    store.downgrade("base")
    assert not set(metadata.tables) & set(sa.inspect(engine).get_table_names())


def check_schema_is_independent_of_consumers(engine: sa.Engine) -> None:
    consumers, store = ConsumerStore(engine), TagStore(engine)
    consumers.upgrade()
    store.upgrade()
    store.register(Instance("s1", "vm", "p", "u"))
    put(store, "s1", red=ACTIVE)
    consumers.downgrade("base")
    assert consumers.current() is None
    consumers.upgrade()
    assert store.state("s1").tags == {Tag(USER, "red"): ACTIVE}
    store.downgrade("base")
    assert consumers.current() == consumers.history()[-1][0]
    assert consumers.types() == {"UNKNOWN": 0}


def check_schema_is_independent_of_the_host_service(engine: sa.Engine, directory: Any) -> None:
    # The host service has an alembic history and a table of tags of its own.
    hosts = alembic.config.Config()
    hosts.set_main_option("script_location", str(directory))
    hosts.set_main_option("path_separator", "os")
    _write_history(directory)
    store = TagStore(engine)
    store.upgrade()
    store.register(Instance("s1", "vm", "p", "u"))
    with engine.connect() as connection:
        hosts.attributes["connection"] = connection
        alembic.command.upgrade(hosts, "head")
        connection.commit()
        store.downgrade("0003")
        store.upgrade()
        rows = connection.exec_driver_sql("SELECT version_num FROM alembic_version").all()
        assert list(map(tuple, rows)) == [("host1",)]
        assert connection.exec_driver_sql("SELECT count(*) FROM tags").scalar() == 0
        connection.rollback()
        alembic.command.downgrade(hosts, "base")
        connection.commit()
    assert store.instance("s1").name == "vm"
    assert store.current() == store.history()[-1][0]


def _write_history(directory: Any) -> None:
    (directory / "versions").mkdir(parents=True)
    (directory / "env.py").write_text(
        "from alembic import context\n"
        "context.configure(connection=context.config.attributes['connection'])\n"
        "with context.begin_transaction():\n"
        "    context.run_migrations()\n"
    )
    (directory / "versions" / "one.py").write_text(
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        "revision, down_revision = 'host1', None\n"
        "def upgrade():\n"
        "    op.create_table('tags', sa.Column('resource_id', sa.String(36), primary_key=True))\n"
        "def downgrade():\n"
        "    op.drop_table('tags')\n"
    )


def check_foreign_table_is_rejected(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE instance_tags (id INTEGER PRIMARY KEY)")
    with pytest.raises(Conflict, match="tables of another program: 'instance_tags'"):
        TagStore(engine).upgrade()


SCHEMAS = [
    check_migrations_up_and_down_keep_tags,
    check_schema_is_independent_of_consumers,
    check_foreign_table_is_rejected,
    check_changes_join_the_callers_transaction,
    check_migrations_join_the_callers_transaction,
]
