"""What holds for a store of consumers on every database."""

import itertools
import uuid
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.consumers.model import allocations, consumer_types, consumers, metadata
from steelyard.errors import BadRequest, Conflict, InvalidAllocations, NotFound

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


def check_deletes(store: ConsumerStore) -> None:
    store.put_allocations(C1, body(p1={"VCPU": 1}, p2={"VCPU": 1}))
    store.delete_allocations(C1)
    assert store.get_allocations(C1) == {"allocations": {}}
    with pytest.raises(NotFound, match=f"consumer {C1} has no allocations"):
        store.delete_allocations(C1)
    assert store.types() == {"INSTANCE": 0, "UNKNOWN": 0}


def check_types(store: ConsumerStore) -> None:
    assert store.types() == {"UNKNOWN": 0}
    store.put_allocations(C1, body(p1={"VCPU": 1, "DISK_GB": 2}))
    store.put_allocations(C2, body(user="other", p1={"VCPU": 1}))
    store.put_allocations(C3, body(kind="MIGRATION", p1={"VCPU": 1}))
    assert store.types() == {"INSTANCE": 2, "MIGRATION": 1, "UNKNOWN": 0}


# No two are the same, whatever a collation may think of letters, accents and spaces.
ALIKE = [
    *"pPeEéÉiI\u0131kK\N{KELVIN SIGN}ß🦊%_\\'\x01\u200b\ufffd",
    *("p ", "p  ", " p", "p\n", "p\t", "🦊 ", "e\u0301", "ss"),
]
UNSTORABLE: list[Any] = ["p\0", "\0", "\ud800", "p\udfff", "", "p" * 256, None, 5, ["p"]]


def check_odd_texts_and_numbers(store: ConsumerStore) -> None:
    """What is kept is read as it was written; no database is asked to keep what it cannot."""
    numbers = itertools.count()
    amount = 2**31 - 1
    one = {"usages": {"INSTANCE": {"consumer_count": 1, "VCPU": amount}}}
    for text in ALIKE:
        for change in ({"project_id": text}, {"user_id": text}):
            consumer = str(uuid.UUID(int=next(numbers)))
            said = {**body(p1={"VCPU": amount}), "project_id": "of all", **change}
            store.put_allocations(consumer, said)
            assert store.get_allocations(consumer) == {**said, "consumer_generation": 1}
    for text in ALIKE:
        assert store.usages(text) == store.usages("of all", text) == one, repr(text)
    everything = {"consumer_count": len(ALIKE), "VCPU": len(ALIKE) * amount}
    assert store.usages("of all", consumer_type="all") == {"usages": {"all": everything}}
    longest = {"project_id": "🦊" * 255, "user_id": "é" * 255, "consumer_type": "A" * 255}
    store.put_allocations(C1, {**body(p1={"_" * 255: 1}), **longest})
    found = store.get_allocations(C1)
    assert found.items() >= longest.items()
    for generation in (2**31 - 2, 0, -(2**31) + 1):
        with pytest.raises(Conflict, match=f"has the generation 1, not {generation};"):
            store.put_allocations(C1, {**found, "consumer_generation": generation})
    store.put_allocations(C1, {**found, "consumer_generation": 1.0})
    store.put_allocations(C1, body(2, p1={"VCPU": 2.0}))
    before = store.get_allocations(C1)
    assert repr(before["allocations"]) == repr({P1: {"resources": {"VCPU": 2}}})
    for text in UNSTORABLE:
        for name in ("project_id", "user_id"):
            with pytest.raises(InvalidAllocations, match=rf"^\$\.{name}: "):
                store.put_allocations(C1, {**before, name: text})
        with pytest.raises(BadRequest, match=r"^\$\.project_id: "):
            store.usages(text)
        if text is not None:
            with pytest.raises(BadRequest, match=r"^\$\.user_id: "):
                store.usages("p", text)
    for resources in ({"VCPU": 2**31}, {"VCPU": 1e30}, {"VCPU": 10**30}, {"A" * 256: 1}):
        with pytest.raises(InvalidAllocations, match=r"resources.*(too long|of 2147483647$)"):
            store.put_allocations(C1, body(3, p1=resources))
    for number in (2**31 - 1, 10**30, -(2**31)):
        with pytest.raises(InvalidAllocations, match=r"consumer_generation: .* than the m\w+imum"):
            store.put_allocations(C1, body(number, p1={"VCPU": 1}))
    with pytest.raises(BadRequest, match="is no consumer type"):
        store.usages("p", consumer_type="INSTANCE\n")
    assert store.get_allocations(C1) == before


def check_inside_a_transaction(engine: sa.Engine) -> None:
    """The caller's transaction decides; what fails inside it leaves the rest of it alone."""
    outside = ConsumerStore(engine)
    outside.upgrade()
    for end in ("rollback", "commit"):
        with engine.connect() as connection:
            store = ConsumerStore(connection)
            store.put_allocations(C1, body(p1={"VCPU": 1}))
            with pytest.raises(Conflict):
                store.post_allocations({C2: body(p1={"VCPU": 1}), C1: body(9, p1={"VCPU": 9})})
            assert store.get_allocations(C2) == {"allocations": {}}
            assert store.usages("p")["usages"]["INSTANCE"] == {"consumer_count": 1, "VCPU": 1}
            getattr(connection, end)()
        there = {} if end == "rollback" else {"INSTANCE": {"consumer_count": 1, "VCPU": 1}}
        assert outside.usages("p") == {"usages": there}


def check_migrations_inside_a_transaction(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        store = ConsumerStore(connection)
        store.upgrade()
        assert store.current() == store.history()[-1][0]
        connection.commit()
    assert ConsumerStore(engine).current() == store.history()[-1][0]


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
    store.put_allocations(C1, body(1, p1={"VCPU": 2}))
    store.put_allocations(C2, body(kind="MIGRATION", p2={"VCPU": 3, "DISK_GB": 1}))
    store.downgrade("0002")
    store.upgrade()  # the types are lost on the way, and nothing else
    assert store.get_allocations(C1) == body(2, kind="UNKNOWN", p1={"VCPU": 2})
    assert store.get_allocations(C2) == body(1, kind="UNKNOWN", p2={"VCPU": 3, "DISK_GB": 1})
    assert store.types() == {"UNKNOWN": 2}
    store.downgrade("base")
    assert not set(metadata.tables) & set(sa.inspect(engine).get_table_names())


def check_consumers_without_allocations(engine: sa.Engine) -> None:
    """Those from before are gone; whoever has nothing is not there, and can be written so."""
    store = ConsumerStore(engine)
    store.upgrade("0006")
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    insert = sa.insert(consumers).values(
        generation=0, project="p", user="u", consumer_type_id=unknown(engine)
    )
    many = [{"uuid": str(uuid.UUID(int=number))} for number in range(2100)]
    with engine.begin() as connection:
        connection.execute(insert, many)
    store.upgrade()
    assert store.count("p") == 1
    assert store.types() == {"INSTANCE": 1, "UNKNOWN": 0}
    for wanted in (body(p1={"VCPU": 2}), body()):
        with engine.begin() as connection:
            connection.execute(insert, [{"uuid": C2}])
        assert store.get_allocations(C2) == {"allocations": {}}
        store.put_allocations(C2, wanted)
        there = store.get_allocations(C2)
        assert there["allocations"] == wanted["allocations"]
        assert store.count("p") == 1 + bool(wanted["allocations"])
        if wanted["allocations"]:
            store.put_allocations(C2, {**there, "allocations": {}})
    assert store.types() == {"INSTANCE": 1, "UNKNOWN": 0}


def unknown(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        kind = sa.select(consumer_types.c.id).where(consumer_types.c.name == "UNKNOWN")
        return int(connection.execute(kind).scalar_one())


def check_a_placement_is_refused(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE resource_providers (id INTEGER PRIMARY KEY)"))
    with pytest.raises(Conflict, match="the tables resource_providers, which are not ours"):
        ConsumerStore(engine).upgrade()


WRITES = [
    check_writes,
    check_all_or_nothing,
    check_usages,
    check_deletes,
    check_types,
    check_odd_texts_and_numbers,
]
SCHEMAS = [
    check_migrations,
    check_a_placement_is_refused,
    check_inside_a_transaction,
    check_migrations_inside_a_transaction,
    check_consumers_without_allocations,
]
