"""The store of consumers on SQLite."""

import concurrent.futures
import contextlib
import gc
import tracemalloc
import uuid
from collections.abc import Iterator
from typing import Any

import consumer_stores
import pytest
import sqlalchemy as sa
from consumer_stores import C1, body

from steelyard.consumers import ConsumerStore
from steelyard.consumers.model import consumers
from steelyard.errors import Conflict, ServiceError

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/consumers.db"


@pytest.fixture
def store(url: str) -> ConsumerStore:
    made = ConsumerStore(url)
    made.upgrade()
    return made


@pytest.mark.parametrize("check", consumer_stores.WRITES)
def test_what_is_written(store: ConsumerStore, check: Any) -> None:
    check(store)


@pytest.mark.parametrize("check", consumer_stores.SCHEMAS)
def test_the_schema(url: str, check: Any) -> None:
    check(sa.create_engine(url))


@contextlib.contextmanager
def without_garbage() -> Iterator[None]:
    """Collect cyclic garbage before each statement, so that a peak of memory does not count it.

    The objects that are there already are set aside, so that a collection is quick.
    """

    def collect(*_: object) -> None:
        gc.collect()

    gc.freeze()
    sa.event.listen(sa.Engine, "before_cursor_execute", collect)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", collect)
        gc.unfreeze()


def test_an_upgrade_of_more_consumers_takes_no_more_memory(url: str, store: ConsumerStore) -> None:
    """None of them has allocations: each is to be found, and removed."""
    engine = sa.create_engine(url)
    said = {"project": "p", "user": "u", "consumer_type_id": consumer_stores.unknown(engine)}
    peaks = []
    for count in (10_000, 60_000):
        store.downgrade("0006")
        with engine.begin() as connection:
            many = [{**said, "uuid": str(uuid.UUID(int=number))} for number in range(count)]
            connection.execute(sa.insert(consumers), many)
        with without_garbage():
            tracemalloc.start()
            store.upgrade()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert store.types() == {"UNKNOWN": 0}
    assert peaks[1] < 2 * peaks[0]


def test_a_database_without_the_tables_says_so(url: str) -> None:
    with pytest.raises(ServiceError, match="the database cannot do it: no such table"):
        ConsumerStore(url).usages("p")


def test_of_many_at_once_one_writes(store: ConsumerStore) -> None:
    def write(number: int) -> bool:
        try:
            store.put_allocations(C1, body(p1={"VCPU": number}))
        except Conflict:
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(1, 17))) == 1
    assert store.get_allocations(C1)["consumer_generation"] == 1
