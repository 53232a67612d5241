"""The store of consumers on SQLite."""

import concurrent.futures
from typing import Any

import consumer_stores
import pytest
import sqlalchemy as sa
from consumer_stores import C1, body

from steelyard.consumers import ConsumerStore
from steelyard.errors import Conflict, ServiceError


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
