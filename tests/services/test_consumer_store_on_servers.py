"""The store of consumers on PostgreSQL and MariaDB."""

import concurrent.futures
import threading
from collections.abc import Iterator
from typing import Any

import consumer_stores
import pytest
import sqlalchemy as sa
from consumer_stores import C1, C2, C3, body
from services import databases

from steelyard.consumers import ConsumerStore
from steelyard.errors import Conflict, ServiceError


@pytest.fixture(params=["postgresql", "mariadb"])
def engine(request: Any) -> Iterator[sa.Engine]:
    with databases.own_database(databases.needed(request.param)) as engine:
        yield engine


@pytest.mark.parametrize("check", consumer_stores.WRITES)
def test_what_is_written(engine: sa.Engine, check: Any) -> None:
    store = ConsumerStore(engine)
    store.upgrade()
    check(store)


@pytest.mark.parametrize("check", consumer_stores.SCHEMAS)
def test_the_schema(engine: sa.Engine, check: Any) -> None:
    check(engine)


def test_a_transaction_that_the_database_gives_up(engine: sa.Engine) -> None:
    """One of two that wait for each other is told to begin again; nothing of it is there."""
    store = ConsumerStore(engine)
    store.upgrade()
    store.post_allocations({consumer: body(p1={"VCPU": 1}) for consumer in (C1, C2)})
    transactions = engine.execution_options(isolation_level="READ COMMITTED")
    both = threading.Barrier(2, timeout=30)

    def write(*names: str) -> str:
        with transactions.connect() as connection:
            inside = ConsumerStore(connection)
            inside.put_allocations(names[0], body(1, p1={"VCPU": 2}))
            both.wait()
            try:
                inside.put_allocations(names[1], body(1, p1={"VCPU": 2}))
            except ServiceError as error:
                return str(error)
            connection.commit()
            return "done"

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        said = sorted(pool.map(write, (C1, C2), (C2, C1)))
    assert said[0] == "done"
    assert "has given up the transaction" in said[1]
    assert "eadlock" in said[1]
    assert store.usages("p")["usages"]["INSTANCE"] == {"consumer_count": 2, "VCPU": 4}


def test_no_update_is_lost(engine: sa.Engine) -> None:
    """Everybody adds to the same consumers, in whatever order, until it has succeeded."""
    store = ConsumerStore(engine)
    store.upgrade()
    store.post_allocations({consumer: body(p1={"VCPU": 1}) for consumer in (C1, C2, C3)})

    def add(number: int) -> None:
        names = [C1, C2, C3] if number % 2 else [C3, C2, C1]
        while True:
            wanted = {name: store.get_allocations(name) for name in names}
            for said in wanted.values():
                (provider,) = said["allocations"].values()
                provider["resources"]["VCPU"] += 1
                said["consumer_type"] = f"TYPE_{number}"
            try:
                return store.post_allocations(wanted)
            except Conflict:
                continue

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(add, range(12)))
    for consumer in (C1, C2, C3):
        found = store.get_allocations(consumer)
        assert found["consumer_generation"] == 13
        (provider,) = found["allocations"].values()
        assert provider["resources"] == {"VCPU": 13}
