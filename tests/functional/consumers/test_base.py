"""The contract of consumer models on the store with SQLite, and updates beside other writers."""

import concurrent.futures
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from support.consumers import contract
from support.consumers.store_laws import C1, C2, C3, P1, P2, body

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.mark.parametrize("check", contract.CONTRACT)
def test_store_obeys_the_contract(store: ConsumerStore, check: Any) -> None:
    check(store)


def test_concurrent_updates_of_a_consumer_lose_nothing(store: ConsumerStore) -> None:
    store.put_allocations(C1, body(p1={"VCPU": 1}))

    def grow(found: dict[str, Any]) -> dict[str, Any]:
        found["allocations"][P1]["resources"]["VCPU"] += 1
        return found

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: store.update(C1, grow), range(12)))
    assert store.get_allocations(C1) == body(13, p1={"VCPU": 13})


def test_consumers_of_the_store_are_read_in_pages(store: ConsumerStore, monkeypatch: Any) -> None:
    monkeypatch.setattr("steelyard.consumers.reads.PAGE", 2)
    many = {contract.new(): body(p1={"VCPU": 1}) for _ in range(5)}
    others = {C1: body(p2={"VCPU": 1}), C2: body(kind="UNKNOWN", p1={"VCPU": 1})}
    store.post_allocations(many)
    store.post_allocations(others | {C3: {**body(p1={"VCPU": 1}), "project_id": "q"}})
    assert set(store.consumers_of()) == {*many, *others, C3}
    assert set(store.consumers_of(project="p", type="INSTANCE")) == {*many, C1}
    assert set(store.consumers_of(project="p", provider=P1)) == {*many, C2}
    assert list(store.consumers_of(type="UNKNOWN")) == [C2]
    assert list(store.consumers_of(provider=P2)) == [C1]
    found = store.consumers_of()
    first = next(found)
    store.delete_allocations(C3)
    store.delete_allocations(first)
    assert {first, *found} == {*many, *others}


def test_twice_as_many_consumers_take_twice_the_work(
    store: ConsumerStore, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("steelyard.consumers.reads.PAGE", 20)
    engine = sa.create_engine(f"sqlite:///{tmp_path}/consumers.db")
    instructions = 0

    def count() -> None:
        nonlocal instructions
        instructions += 1

    @sa.event.listens_for(engine, "connect")
    def observe(connection: Any, _record: object) -> None:
        connection.set_progress_handler(count, 100)

    work = []
    for size in (400, 800):
        store.post_allocations({contract.new(): body(p1={"VCPU": 1}) for _ in range(400)})
        instructions = 0
        assert len(list(ConsumerStore(engine).consumers_of(project="p", provider=P1))) == size
        work.append(instructions)
    engine.dispose()
    assert work[1] < 2.6 * work[0]
