"""The laws of the consumer store, for every database."""

import itertools
import uuid
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.consumers.model import allocations, consumer_types, consumers, metadata
from steelyard.errors import (
    BadRequest,
    ConcurrentUpdate,
    Conflict,
    InvalidAllocations,
    NotFound,
    ServiceError,
)
from steelyard.sql.text_columns import Text

C1, C2, C3 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
P1, P2 = (f"10000000-0000-4000-8000-00000000000{n}" for n in (1, 2))


def body(
    generation: int | None = None, *, kind: str = "INSTANCE", user: str = "u", **resources: Any
) -> Any:
    """Return the body of a write; the resources are by provider, ``p1`` or ``p2``."""
    providers = {"p1": P1, "p2": P2}
    return {
        "allocations": {
            providers[key]: {"resources": amounts} for key, amounts in resources.items()
        },
        "project_id": "p",
        "user_id": user,
        "consumer_generation": generation,
        "consumer_type": kind,
    }


def check_writes_replace_allocations(store: ConsumerStore) -> None:
    store.put_allocations(C1, body(p1={"VCPU": 2, "MEMORY_MB": 512}, p2={"DISK_GB": 5}))
    found = store.get_allocations(C1)
    assert found == body(1, p1={"VCPU": 2, "MEMORY_MB": 512}, p2={"DISK_GB": 5})
    store.put_allocations(C1, found)
    assert store.get_allocations(C1) == {**found, "consumer_generation": 2}
    for generation in (None, 1, 3):
        with pytest.raises(ConcurrentUpdate, match="has generation 2, not") as caught:
            store.put_allocations(C1, body(generation, p1={"VCPU": 1}))
        assert caught.value.status == 409
    with pytest.raises(ConcurrentUpdate, match="has generation null, not 1"):
        store.put_allocations(C2, body(1, p1={"VCPU": 1}))
    store.put_allocations(C1, body(2, kind="MIGRATION", p1={"VCPU": 1}))
    assert store.get_allocations(C1) == body(3, kind="MIGRATION", p1={"VCPU": 1})
    store.put_allocations(C1, body(3, kind="MIGRATION"))
    assert store.get_allocations(C1) == {"allocations": {}}
    store.put_allocations(C1, body())
    assert store.get_allocations(C1) == {"allocations": {}}


def check_failed_write_changes_nothing(store: ConsumerStore) -> None:
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    with pytest.raises(ConcurrentUpdate, match=C1):
        store.post_allocations({C3: body(p1={"VCPU": 1}), C1: body(7, p1={"VCPU": 9})})
    assert store.get_allocations(C3) == {"allocations": {}}
    assert store.get_allocations(C1) == body(1, p1={"VCPU": 1})
    wrong = {C3: body(p1={"VCPU": 1}), C1: body(7, p1={"VCPU": 9})}
    with pytest.raises(ConcurrentUpdate, match=C1):
        store.reshape({"inventories": {}, "allocations": wrong})
    inventories = {P1: {"inventories": {"VCPU": {"total": 4}}}}
    moved = {C3: body(p1={"VCPU": 1}), C1: body(1, kind="MIGRATION", p2={"VCPU": 4})}
    with pytest.raises(InvalidAllocations, match="the store has no inventories"):
        store.reshape({"inventories": inventories, "allocations": moved})
    assert store.get_allocations(C3) == {"allocations": {}}
    store.reshape({"allocations": moved})
    assert store.get_allocations(C3) == body(1, p1={"VCPU": 1})
    assert store.get_allocations(C1) == body(2, kind="MIGRATION", p2={"VCPU": 4})


def check_usages_and_counts(store: ConsumerStore) -> None:
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
    for query in (("q",), ("p", "unused"), ("p", None, "UNUSED"), ("q", None, "all")):
        assert store.usages(*query) == {"usages": {}}
    assert [store.count("p"), store.count("p", "other"), store.count("p", None, "UNKNOWN")] == [
        3,
        1,
        1,
    ]
    assert store.count("q") == 0
    wrong: Any
    for wrong in ("instance", 5, ""):
        with pytest.raises(BadRequest, match=f"invalid consumer type {wrong!r}: expected"):
            store.usages("p", consumer_type=wrong)


def check_delete_removes_the_consumer(store: ConsumerStore) -> None:
    store.put_allocations(C1, body(p1={"VCPU": 1}, p2={"VCPU": 1}))
    store.delete_allocations(C1)
    assert store.get_allocations(C1) == {"allocations": {}}
    with pytest.raises(NotFound, match=f"consumer {C1} has no allocations"):
        store.delete_allocations(C1)
    assert store.types() == {"INSTANCE": 0, "UNKNOWN": 0}


def check_types_are_counted(store: ConsumerStore) -> None:
    assert store.types() == {"UNKNOWN": 0}
    store.put_allocations(C1, body(p1={"VCPU": 1, "DISK_GB": 2}))
    store.put_allocations(C2, body(user="other", p1={"VCPU": 1}))
    store.put_allocations(C3, body(kind="MIGRATION", p1={"VCPU": 1}))
    assert store.types() == {"INSTANCE": 2, "MIGRATION": 1, "UNKNOWN": 0}


# Texts that differ, although collations may equate letters, accents and spaces.
SIMILAR = [
    *"pPeEéÉiI\u0131kK\N{KELVIN SIGN}ß🦊%_\\'\x01\u200b\ufffd",
    *("p ", "p  ", " p", "p\n", "p\t", "🦊 ", "e\u0301", "ss"),
]
UNSTORABLE: list[Any] = ["p\0", "\0", "\ud800", "p\udfff", "", "p" * 256, None, 5, ["p"]]


def check_limits_of_texts_and_numbers(store: ConsumerStore) -> None:
    """Check that stored values are read unchanged, and values that cannot be stored rejected."""
    numbers = itertools.count()
    amount = 2**31 - 1
    one = {"usages": {"INSTANCE": {"consumer_count": 1, "VCPU": amount}}}
    for text in SIMILAR:
        for change in ({"project_id": text}, {"user_id": text}):
            consumer = str(uuid.UUID(int=next(numbers)))
            write = {**body(p1={"VCPU": amount}), "project_id": "of all", **change}
            store.put_allocations(consumer, write)
            assert store.get_allocations(consumer) == {**write, "consumer_generation": 1}
    for text in SIMILAR:
        assert store.usages(text) == store.usages("of all", text) == one, repr(text)
    everything = {"consumer_count": len(SIMILAR), "VCPU": len(SIMILAR) * amount}
    assert store.usages("of all", consumer_type="all") == {"usages": {"all": everything}}
    longest = {"project_id": "🦊" * 255, "user_id": "é" * 255, "consumer_type": "A" * 255}
    store.put_allocations(C1, {**body(p1={"_" * 255: 1}), **longest})
    found = store.get_allocations(C1)
    assert found.items() >= longest.items()
    for generation in (2**31 - 2, 0, -(2**31) + 1):
        with pytest.raises(ConcurrentUpdate, match=f"has generation 1, not {generation};"):
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
    with pytest.raises(BadRequest, match="invalid consumer type"):
        store.usages("p", consumer_type="INSTANCE\n")
    assert store.get_allocations(C1) == before


def check_writes_in_a_callers_transaction(engine: sa.Engine) -> None:
    """Check that writes end with the caller's transaction and that a failed one keeps the others."""
    outside = ConsumerStore(engine)
    outside.upgrade()
    for end in ("rollback", "commit"):
        with engine.connect() as connection:
            store = ConsumerStore(connection)
            store.put_allocations(C1, body(p1={"VCPU": 1}))
            with pytest.raises(ConcurrentUpdate):
                store.post_allocations({C2: body(p1={"VCPU": 1}), C1: body(9, p1={"VCPU": 9})})
            assert store.get_allocations(C2) == {"allocations": {}}
            assert store.usages("p")["usages"]["INSTANCE"] == {"consumer_count": 1, "VCPU": 1}
            getattr(connection, end)()
        there = {} if end == "rollback" else {"INSTANCE": {"consumer_count": 1, "VCPU": 1}}
        assert outside.usages("p") == {"usages": there}


def check_upgrade_in_a_callers_transaction(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        store = ConsumerStore(connection)
        store.upgrade()
        assert store.current() == store.history()[-1][0]
        connection.commit()
    assert ConsumerStore(engine).current() == store.history()[-1][0]


def check_downgrade_and_upgrade(engine: sa.Engine) -> None:
    """Upgrade, downgrade and upgrade again, with consumers that had no types at first."""
    store = ConsumerStore(engine)
    store.upgrade("0002")
    old = sa.table("consumers", *map(sa.column, ("id", "uuid", "generation", "project", "user")))
    consumer = {"id": 7, "uuid": C1, "generation": 1, "project": "p", "user": "u"}
    used = {"consumer_id": 7, "resource_provider": P1, "resource_class": "VCPU", "used": 2}
    with engine.begin() as connection:
        connection.execute(sa.insert(old).values(consumer))
        connection.execute(sa.insert(allocations).values(used))
    store.upgrade()
    assert store.get_allocations(C1) == body(1, kind="UNKNOWN", p1={"VCPU": 2})
    assert set(metadata.tables) <= set(sa.inspect(engine).get_table_names())
    store.put_allocations(C1, body(1, p1={"VCPU": 2}))
    store.put_allocations(C2, body(kind="MIGRATION", p2={"VCPU": 3, "DISK_GB": 1}))
    store.downgrade("0002")
    store.upgrade()  # the downgrade has lost the types
    assert store.get_allocations(C1) == body(2, kind="UNKNOWN", p1={"VCPU": 2})
    assert store.get_allocations(C2) == body(1, kind="UNKNOWN", p2={"VCPU": 3, "DISK_GB": 1})
    assert store.types() == {"UNKNOWN": 2}
    store.downgrade("base")
    assert not set(metadata.tables) & set(sa.inspect(engine).get_table_names())


def check_consumers_without_allocations_are_removed(engine: sa.Engine) -> None:
    """Check that the upgrade removes them, and that later ones read as missing and can be written."""
    store = ConsumerStore(engine)
    store.upgrade("0008")
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


def check_type_in_use_cannot_be_deleted(engine: sa.Engine) -> None:
    with ConsumerStore(
        engine.url
    ) as store:  # with a URL, the store enforces foreign keys on SQLite
        store.upgrade()
        store.put_allocations(C1, body(p1={"VCPU": 1}))
        used = sa.delete(consumer_types).where(consumer_types.c.name == "INSTANCE")
        with pytest.raises(ServiceError, match=r"(?i)^database error: .*foreign key"):
            store.in_a_transaction(lambda connection: connection.execute(used).rowcount)
        assert store.count("p", consumer_type="INSTANCE") == 1


def check_ids_of_types_are_never_reused(engine: sa.Engine) -> None:
    store = ConsumerStore(engine)
    store.upgrade()
    ids = set()
    for number in range(4):
        store.put_allocations(C1, body(kind=f"TYPE_{number}", p1={"VCPU": 1}))
        with engine.connect() as connection:
            ids.add(connection.execute(sa.select(sa.func.max(consumer_types.c.id))).scalar_one())
        store.delete_allocations(C1)
        assert store.remove_unused_types() == [f"TYPE_{number}"]
    assert len(ids) == 4


def check_unused_types_are_removed(engine: sa.Engine) -> None:
    """Check it on an engine that may not enforce foreign keys."""
    store = ConsumerStore(engine)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    store.put_allocations(C2, body(kind="MIGRATION", p1={"VCPU": 1}))
    store.put_allocations(C3, body(kind="INTANCE", p1={"VCPU": 1}))
    store.delete_allocations(C2)
    store.delete_allocations(C3)
    assert store.remove_unused_types() == ["INTANCE", "MIGRATION"]
    assert store.types() == {"INSTANCE": 1, "UNKNOWN": 0}
    assert store.remove_unused_types() == []
    store.put_allocations(C3, body(kind="INTANCE", p1={"VCPU": 1}))
    assert store.types() == {"INSTANCE": 1, "INTANCE": 1, "UNKNOWN": 0}


def make_pre_release(engine: sa.Engine) -> None:
    """Create the tables as a steelyard before 0.1.0 did, with a consumer of the type INSTANCE."""
    store = ConsumerStore(engine)
    store.upgrade("0002")
    types = sa.Table(
        "consumer_types",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", Text(255), nullable=False, unique=True),
    )
    types.create(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(types), [{"name": "UNKNOWN"}, {"name": "INSTANCE"}])
        connection.exec_driver_sql(
            "ALTER TABLE consumers ADD COLUMN consumer_type_id INTEGER DEFAULT 1 NOT NULL"
        )
        connection.execute(
            sa.insert(consumers).values(
                id=5, uuid=C1, generation=3, project="p", user="u", consumer_type_id=2
            )
        )
        used = {"consumer_id": 5, "resource_provider": P1, "resource_class": "VCPU", "used": 2}
        connection.execute(sa.insert(allocations).values(used))
        connection.exec_driver_sql("UPDATE steelyard_consumers_version SET version_num = '0007'")


def check_pre_release_is_rejected(engine: sa.Engine) -> None:
    make_pre_release(engine)
    store = ConsumerStore(engine)
    with pytest.raises(Conflict) as raised:
        store.upgrade()
    faults = [
        "consumers.consumer_type_id has no foreign key",
        "consumers.consumer_type_id has no index 'consumers_type_idx'",
    ]
    if engine.dialect.name == "sqlite":
        faults.insert(0, "consumer_types.id has no AUTOINCREMENT")
    assert str(raised.value) == (
        f"a version of steelyard before 0.1.0 created the tables of consumers: "
        f"{', '.join(faults)}; to keep the types, copy the consumers into a new database; to "
        f"discard them, run 'steelyard db downgrade 0002 --schema consumers' and 'steelyard db upgrade'; see "
        f"'Tables from before 0.1.0' in the guide 'Upgrade the tables of consumers'"
    )
    assert store.get_allocations(C1) == body(3, p1={"VCPU": 2})
    store.downgrade("0002")
    store.upgrade()
    assert store.get_allocations(C1) == body(3, kind="UNKNOWN", p1={"VCPU": 2})


def unknown(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        kind = sa.select(consumer_types.c.id).where(consumer_types.c.name == "UNKNOWN")
        return int(connection.execute(kind).scalar_one())


def check_database_of_placement_is_rejected(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE resource_providers (id INTEGER PRIMARY KEY)"))
    with pytest.raises(Conflict, match="tables of another program: 'resource_providers'"):
        ConsumerStore(engine).upgrade()


WRITES = [
    check_writes_replace_allocations,
    check_failed_write_changes_nothing,
    check_usages_and_counts,
    check_delete_removes_the_consumer,
    check_types_are_counted,
    check_limits_of_texts_and_numbers,
]
SCHEMAS = [
    check_downgrade_and_upgrade,
    check_database_of_placement_is_rejected,
    check_writes_in_a_callers_transaction,
    check_upgrade_in_a_callers_transaction,
    check_consumers_without_allocations_are_removed,
    check_type_in_use_cannot_be_deleted,
    check_ids_of_types_are_never_reused,
    check_unused_types_are_removed,
    check_pre_release_is_rejected,
]
