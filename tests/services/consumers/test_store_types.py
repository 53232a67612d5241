"""The removal of unused types beside many writers, on PostgreSQL and MariaDB."""

import concurrent.futures
import functools
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.consumers.model import consumer_types, consumers
from support.consumers.store_laws import body

WRITERS = 16
TURNS = 20
TYPES = 40


def typed(kind: str, found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "consumer_type": kind}


@pytest.fixture
def crowded(upgraded: sa.Engine) -> Iterator[sa.Engine]:
    """Yield an engine with a connection for each writer."""
    made = sa.create_engine(upgraded.url, pool_size=WRITERS + 2)
    yield made
    made.dispose()


def test_unused_types_are_removed_beside_many_writers(crowded: sa.Engine) -> None:
    # The writers share types, of which most have no consumers at any time.
    store = ConsumerStore(crowded)
    together = threading.Barrier(WRITERS + 1, timeout=60)
    finished = threading.Event()

    def write(number: int) -> str:
        one, other = (str(uuid.UUID(int=2 * number + n + 1)) for n in range(2))
        together.wait()
        for turn in range(TURNS):
            kinds = [f"TYPE_{(number + turn + n) % TYPES}" for n in range(3)]
            store.post_allocations(
                {
                    one: body(kind=kinds[0], p1={"VCPU": 1}),
                    other: body(kind=kinds[1], p1={"VCPU": 1}),
                }
            )
            store.update(one, functools.partial(typed, kinds[2]))
            store.delete_allocations(one)
            if turn < TURNS - 1:
                store.delete_allocations(other)
        return kinds[1]

    def remove() -> int:
        together.wait()
        removed = 0
        while not finished.is_set():
            removed += len(store.remove_unused_types())
        return removed

    with concurrent.futures.ThreadPoolExecutor(WRITERS + 1) as pool:
        removing = pool.submit(remove)
        writing = [pool.submit(write, number) for number in range(WRITERS)]
        try:
            left = [each.result() for each in writing]
        finally:
            finished.set()
        assert removing.result() > TYPES
    store.remove_unused_types()
    assert store.types() == {"UNKNOWN": 0} | {kind: left.count(kind) for kind in set(left)}
    with crowded.connect() as connection:
        known = sa.select(consumer_types.c.id)
        dangling = sa.select(consumers.c.uuid).where(consumers.c.consumer_type_id.not_in(known))
        assert connection.execute(dangling).all() == []
