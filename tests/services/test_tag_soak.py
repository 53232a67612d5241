"""The soak of the store of tags in its short form, and its checker, which must find faults."""

import pathlib
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from services import databases, tag_checker, tag_soak
from services.consumer_soak import database
from services.tag_checker import Backend, Job, Tables, Told, private
from tag_databases import upgrade

from steelyard.tags import TagStore, encode
from steelyard.tags.states import Change, Instance, Mark, Status

PREFIX = "cyclades:user:"
COUNTED = frozenset(["vm1"])
MINE, OTHER = private(0)[:2]


@pytest.mark.parametrize("server", ["sqlite", "postgresql", "mariadb"])
def test_what_processes_change_at_once_is_sound(server: str) -> None:
    url = sa.make_url("sqlite://") if server == "sqlite" else databases.needed(server)
    with database(url) as engine:
        writers = tag_soak.WRITERS[engine.dialect.name]
        figures = tag_soak.soak(engine, writers=writers, seconds=2.5, seed=1)
    assert figures.faults == []
    assert figures.outcomes["done"] > 0
    assert figures.outcomes["refused"] > 0
    assert figures.outcomes["settled"] > 0
    assert figures.jobs > 0
    assert str(figures).endswith("sound")


def job(kind: str, *names: str, instance: str = "vm1") -> Job:
    return Job(instance, kind, tuple(encode(name, PREFIX) for name in names))


def backend(*jobs: Job, vm1: tuple[str, ...] = (MINE, "shared")) -> Backend:
    tags = {"vm1": vm1, "vm2": ("red",)}
    return Backend(
        {name: frozenset(encode(each, PREFIX) for each in these) for name, these in tags.items()},
        jobs,
    )


@pytest.fixture
def done() -> Backend:
    """What the backend was asked for, and has now."""
    return backend(
        job("add", MINE),
        job("add", OTHER),
        job("add", "shared"),
        job("delete", OTHER),
        job("add", "red", "green", instance="vm2"),
    )


@pytest.fixture
def told() -> list[Told]:
    """What two writers were told of that; of whole sets of tags they keep no account."""
    mine = [("vm1", MINE, "add"), ("vm1", OTHER, "add"), ("vm1", OTHER, "delete")]
    return [Told(mine), Told([("vm1", "shared", "add")])]


@pytest.fixture
def engine(tmp_path: pathlib.Path) -> Iterator[sa.Engine]:
    """What is in the tables then. There are no constraints, so that any fault may be planted."""
    engine = sa.create_engine(f"sqlite:///{tmp_path}/tags.db")
    store = TagStore(engine)
    upgrade(store)
    for name, tags in {"vm1": [MINE, "shared"], "vm2": ["red"]}.items():
        store.register(Instance(name, name, "p", "u"))
        keys = [(PREFIX, tag) for tag in tags]
        there = dict.fromkeys(keys, Status.ACTIVE)
        change = Change(there, marked=dict.fromkeys(keys, Mark(1, there=True)))
        store.change(name, lambda state, change=change: (change, None))  # type: ignore[misc]
    with engine.begin() as connection:
        for table in ("instance_tags", "tag_marks", "tag_instances"):
            connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO constrained")
            connection.exec_driver_sql(f"CREATE TABLE {table} AS SELECT * FROM constrained")
            connection.exec_driver_sql("DROP TABLE constrained")
    yield engine
    engine.dispose()


def found(engine: sa.Engine, done: Backend, told: list[Told]) -> list[str]:
    return list(tag_checker.faults(Tables.read(engine), done, told, COUNTED))


def test_the_checker_finds_nothing_where_nothing_is(
    engine: sa.Engine, done: Backend, told: list[Told]
) -> None:
    assert found(engine, done, told) == []


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 51)"
PLANTED = {
    "INSERT INTO instance_tags SELECT * FROM instance_tags": "is there 2 times",
    "INSERT INTO tag_marks SELECT * FROM tag_marks": "is there 2 times",
    "DELETE FROM tag_instances WHERE id = 'vm1'": "is of an instance that is not there",
    f"INSERT INTO instance_tags {NUMBERS} SELECT 1, '{PREFIX}', 'n' || i, 'ACTIVE' FROM n": (
        "has 53 tags"
    ),
    "UPDATE instance_tags SET status = 'PENDADD'": "is PENDADD",
    "DELETE FROM instance_tags WHERE name = 'shared'": "the tables have not",
    f"INSERT INTO instance_tags VALUES (2, '{PREFIX}', 'green', 'ACTIVE')": "the backend has not",
    "UPDATE instance_tags SET instance_id = 3 - instance_id": "the backend has not",
    f"INSERT INTO tag_operations VALUES ('o', 1, 'add', '{PREFIX}', '[]', NULL, 1)": (
        "has not ended"
    ),
}


@pytest.mark.parametrize(("statement", "fault"), PLANTED.items())
def test_a_fault_in_the_tables_is_found(
    engine: sa.Engine, done: Backend, told: list[Told], statement: str, fault: str
) -> None:
    with engine.begin() as connection:
        assert connection.exec_driver_sql(statement).rowcount != 0
    assert fault in "\n".join(found(engine, done, told))


def test_what_a_writer_was_told_and_the_backend_was_not_is_found(
    engine: sa.Engine, done: Backend, told: list[Told]
) -> None:
    told[1].done.append(("vm1", "shared", "delete"))
    (fault,) = found(engine, done, told)
    assert "was done 1 times, and asked of the backend 0 times" in fault


def test_what_the_backend_was_asked_for_twice_is_found(
    engine: sa.Engine, done: Backend, told: list[Told]
) -> None:
    twice = backend(*done.jobs, job("add", "shared"))
    (fault,) = found(engine, twice, told)
    assert "was done 1 times, and asked of the backend 2 times" in fault


def test_what_one_writer_did_is_in_its_order(
    engine: sa.Engine, done: Backend, told: list[Told]
) -> None:
    (fault,) = found(engine, backend(*done.jobs[::-1]), told)
    assert fault.startswith(f"{OTHER} of vm1 was asked to be ['delete', 'add']")


def test_what_a_writer_did_not_expect_is_a_fault(
    engine: sa.Engine, done: Backend, told: list[Told]
) -> None:
    told[0].failures.append("Traceback")
    assert found(engine, done, told) == ["Traceback"]
