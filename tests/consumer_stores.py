"""What holds for a store of consumers on every database."""

from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.consumers.model import allocations, metadata
from steelyard.errors import BadRequest, Conflict

C1, C2, C3 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
P1, P2 = (f"10000000-0000-4000-8000-00000000000{n}" for n in (1, 2))


def body(
    generation: int | None = None, *, kind: str = "INSTANCE", user: str = "u", **resources: Any
) -> Any:
    """A write; resources are given by provider, ``p1`` or ``p2``."""
    providers = {"p1": P1, "p2": P2}
    return {
        "allocations": {providers[key]: {"resources": said} for key, said in resources.items()},
        "project_id": "p",
        "user_id": user,
        "consumer_generation": generation,
        "consumer_type": kind,
    }


def check_writes(store: ConsumerStore) -> None:
    store.put_allocations(C1, body(p1={"VCPU": 2, "MEMORY_MB": 512}, p2={"DISK_GB": 5}))
    found = store.get_allocations(C1)
    assert found == body(1, p1={"VCPU": 2, "MEMORY_MB": 512}, p2={"DISK_GB": 5})
    store.put_allocations(C1, found)
    assert store.get_allocations(C1) == {**found, "consumer_generation": 2}
    for generation in (None, 1, 3):
        with pytest.raises(Conflict, match="has the generation 2, not"):
            store.put_allocations(C1, body(generation, p1={"VCPU": 1}))
    with pytest.raises(Conflict, match="has the generation null, not 1"):
        store.put_allocations(C2, body(1, p1={"VCPU": 1}))
    store.put_allocations(C1, body(2, kind="MIGRATION", p1={"VCPU": 1}))
    assert store.get_allocations(C1) == body(3, kind="MIGRATION", p1={"VCPU": 1})
    store.put_allocations(C1, body(3, kind="MIGRATION"))
    assert store.get_allocations(C1) == {"allocations": {}}
    store.put_allocations(C1, body())
    assert store.get_allocations(C1) == {"allocations": {}}


def check_all_or_nothing(store: ConsumerStore) -> None:
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    with pytest.raises(Conflict, match=C1):
        store.post_allocations({C3: body(p1={"VCPU": 1}), C1: body(7, p1={"VCPU": 9})})
    assert store.get_allocations(C3) == {"allocations": {}}
    assert store.get_allocations(C1) == body(1, p1={"VCPU": 1})
    store.reshape({C3: body(p1={"VCPU": 1}), C1: body(1, kind="MIGRATION", p2={"VCPU": 4})})
    assert store.get_allocations(C3) == body(1, p1={"VCPU": 1})
    assert store.get_allocations(C1) == body(2, kind="MIGRATION", p2={"VCPU": 4})


def check_usages(store: ConsumerStore) -> None:
    store.post_allocations(
        {
            C1: body(p1={"VCPU": 1, "MEMORY_MB": 5}, p2={"VCPU": 2}),
            C2: body(user="other", p1={"VCPU": 4}),
            C3: body(kind="UNKNOWN", p1={"DISK_GB": 8}),
        }
    )
    instances = {"consumer_count": 2, "VCPU": 7, "MEMORY_MB": 5}
    unknown = {"consumer_count": 1, "DISK_GB": 8}
    assert store.usages("p") == {"usages": {"INSTANCE": instances, "UNKNOWN": unknown}}
    assert store.usages("p", consumer_type="INSTANCE") == {"usages": {"INSTANCE": instances}}
    assert store.usages("p", "other") == {"usages": {"INSTANCE": {"consumer_count": 1, "VCPU": 4}}}
    everything = {"consumer_count": 3, "VCPU": 7, "MEMORY_MB": 5, "DISK_GB": 8}
    assert store.usages("p", consumer_type="all") == {"usages": {"all": everything}}
    for nobody in (("q",), ("p", "nobody"), ("p", None, "NOBODY"), ("q", None, "all")):
        assert store.usages(*nobody) == {"usages": {}}
    assert [store.count("p"), store.count("p", "other"), store.count("p", None, "UNKNOWN")] == [
        3,
        1,
        1,
    ]
    assert store.count("q") == 0
    with pytest.raises(BadRequest, match="'instance' is no consumer type"):
        store.usages("p", consumer_type="instance")


def check_migrations(engine: sa.Engine) -> None:
    """Up, down and up again, with consumers from before there were types."""
    store = ConsumerStore(engine)
    store.upgrade("0002")
    old = sa.table("consumers", *map(sa.column, ("id", "uuid", "generation", "project", "user")))
    said = {"id": 7, "uuid": C1, "generation": 1, "project": "p", "user": "u"}
    used = {"consumer_id": 7, "resource_provider": P1, "resource_class": "VCPU", "used": 2}
    with engine.begin() as connection:
        connection.execute(sa.insert(old).values(said))
        connection.execute(sa.insert(allocations).values(used))
    store.upgrade()
    assert store.get_allocations(C1) == body(1, kind="UNKNOWN", p1={"VCPU": 2})
    assert set(metadata.tables) <= set(sa.inspect(engine).get_table_names())
    store.downgrade("0002")
    store.upgrade()
    assert store.usages("p") == {"usages": {"UNKNOWN": {"consumer_count": 1, "VCPU": 2}}}
    store.downgrade("base")
    assert not set(metadata.tables) & set(sa.inspect(engine).get_table_names())


def check_a_placement_is_refused(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE resource_providers (id INTEGER PRIMARY KEY)"))
    with pytest.raises(Conflict, match="the tables resource_providers, which are not ours"):
        ConsumerStore(engine).upgrade()


WRITES = [check_writes, check_all_or_nothing, check_usages]
SCHEMAS = [check_migrations, check_a_placement_is_refused]
