"""The short soak of the store of tags, and its checker, which must detect planted faults."""

import pathlib
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from steelyard.tags import TagStore, encode
from steelyard.tags.codec import Tag
from steelyard.tags.states.values import Instance, StateChange, Status, TagMark
from support.services import databases
from support.soaks import tag_checker, tag_soak
from support.soaks.consumer_soak import database
from support.soaks.tag_checker import Backend, Job, Tables, Told, private
from support.tags.databases import upgrade

PREFIX = "cyclades:user:"
COUNTED = frozenset(["vm1"])
MINE, OTHER = private(0)[:2]


@pytest.mark.parametrize("server", ["sqlite", "postgresql", "mariadb"])
def test_concurrent_changes_leave_consistent_tables(server: str) -> None:
    url = sa.make_url("sqlite://") if server == "sqlite" else databases.needed(server)
    with database(url) as engine:
        figures = tag_soak.soak(engine, writers=6, seconds=1.0, seed=1)
    assert figures.faults == []
    assert figures.outcomes["done"] > 0
    assert figures.outcomes["refused"] > 0
    assert figures.outcomes["delivered"] > 0
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
    """Return the tags of the backend and the jobs submitted to it."""
    return backend(
        job("add", MINE),
        job("add", OTHER),
        job("add", "shared"),
        job("delete", OTHER),
        job("add", "red", "green", instance="vm2"),
    )


@pytest.fixture
def told() -> list[Told]:
    """Return the single-tag changes that two writers have recorded."""
    mine = [("vm1", MINE, "add"), ("vm1", OTHER, "add"), ("vm1", OTHER, "delete")]
    return [Told(mine), Told([("vm1", "shared", "add")])]


@pytest.fixture
def engine(tmp_path: pathlib.Path) -> Iterator[sa.Engine]:
    """Yield the resulting tables, without constraints so that any fault can be planted."""
    engine = sa.create_engine(f"sqlite:///{tmp_path}/tags.db")
    store = TagStore(engine)
    upgrade(store)
    for name, tags in {"vm1": [MINE, "shared"], "vm2": ["red"]}.items():
        store.register(Instance(name, name, "p", "u"))
        keys = [Tag(PREFIX, tag) for tag in tags]
        there = dict.fromkeys(keys, Status.ACTIVE)
        change = StateChange(there, marked=dict.fromkeys(keys, TagMark(1, there=True)))
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


def test_checker_accepts_consistent_tables(
    engine: sa.Engine, done: Backend, told: list[Told]
) -> None:
    assert found(engine, done, told) == []


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 51)"
PLANTED = {
    "INSERT INTO instance_tags SELECT * FROM instance_tags": "2 rows of",
    "INSERT INTO tag_marks SELECT * FROM tag_marks": "2 rows of",
    "DELETE FROM tag_instances WHERE id = 'vm1'": "instance of",
    f"INSERT INTO instance_tags {NUMBERS} SELECT 1, '{PREFIX}', 'n' || i, 'ACTIVE' FROM n": (
        "has 53 tags"
    ),
    "UPDATE instance_tags SET status = 'PENDADD'": "status PENDADD",
    "DELETE FROM instance_tags WHERE name = 'shared'": "but not in the tables",
    f"INSERT INTO instance_tags VALUES (2, '{PREFIX}', 'green', 'ACTIVE')": "but not in the backend",
    "UPDATE instance_tags SET instance_id = 3 - instance_id": "but not in the backend",
    f"INSERT INTO tag_operations (id, instance_id, kind, prefix, names, begun)"
    f" VALUES ('o', 1, 'add', '{PREFIX}', '[]', 1)": ("still pending"),
}


@pytest.mark.parametrize(("statement", "fault"), PLANTED.items())
def test_checker_detects_a_fault_in_the_tables(
    engine: sa.Engine, done: Backend, told: list[Told], statement: str, fault: str
) -> None:
    with engine.begin() as connection:
        assert connection.exec_driver_sql(statement).rowcount != 0
    assert fault in "\n".join(found(engine, done, told))


def test_checker_detects_a_change_without_a_job(
    engine: sa.Engine, done: Backend, told: list[Told]
) -> None:
    told[1].done.append(("vm1", "shared", "delete"))
    (fault,) = found(engine, done, told)
    assert "answered 1 times, submitted 0 times" in fault


def test_checker_detects_a_repeated_job(engine: sa.Engine, done: Backend, told: list[Told]) -> None:
    twice = backend(*done.jobs, job("add", "shared"))
    (fault,) = found(engine, twice, told)
    assert "answered 1 times, submitted 2 times" in fault


def test_checker_detects_jobs_in_the_wrong_order(
    engine: sa.Engine, done: Backend, told: list[Told]
) -> None:
    (fault,) = found(engine, backend(*done.jobs[::-1]), told)
    assert fault.startswith(f"{OTHER} of vm1: submitted ['delete', 'add']")


def test_checker_reports_failures_of_writers(
    engine: sa.Engine, done: Backend, told: list[Told]
) -> None:
    told[0].failures.append("Traceback")
    assert found(engine, done, told) == ["Traceback"]
