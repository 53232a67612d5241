"""The consumer store on SQLite."""

import concurrent.futures
import contextlib
import gc
import tracemalloc
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.consumers.model import consumers
from steelyard.errors import ConcurrentUpdate, Conflict, ServiceError
from support.consumers import store_laws
from support.consumers.store_laws import C1, C2, P1, body

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.mark.parametrize("check", store_laws.WRITES)
def test_store_obeys_the_laws_of_writes(store: ConsumerStore, check: Any) -> None:
    check(store)


@pytest.mark.parametrize("check", store_laws.SCHEMAS)
def test_schema_obeys_the_laws(url: str, check: Any) -> None:
    check(sa.create_engine(url))


@contextlib.contextmanager
def collected_garbage() -> Iterator[None]:
    """Collect cyclic garbage before each statement, to keep it out of the peak of memory."""

    def collect(*_: object) -> None:
        gc.collect()

    gc.collect()
    gc.freeze()  # collections skip frozen objects, which makes them fast
    sa.event.listen(sa.Engine, "before_cursor_execute", collect)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", collect)
        gc.unfreeze()


def test_upgrade_memory_does_not_grow_with_consumers(url: str, store: ConsumerStore) -> None:
    # No consumer has allocations, so the upgrade removes all of them.
    engine = sa.create_engine(url)
    fields = {"project": "p", "user": "u", "consumer_type_id": store_laws.unknown(engine)}
    peaks = []
    for count in (5_000, 30_000):
        store.downgrade("0008")
        with engine.begin() as connection:
            many = [{**fields, "uuid": str(uuid.UUID(int=number))} for number in range(count)]
            connection.execute(sa.insert(consumers), many)
        with collected_garbage():
            tracemalloc.start()
            store.upgrade()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert store.types() == {"UNKNOWN": 0}
    assert peaks[1] < 2 * peaks[0]


def test_store_without_tables_raises_service_error(url: str) -> None:
    store = ConsumerStore(url)
    store.create_file()
    with pytest.raises(ServiceError, match="database error: no such table"):
        store.usages("p")


def test_empty_write_creates_no_type(store: ConsumerStore) -> None:
    store.put_allocations(C1, body(p1={"VCPU": 1}))
    before = store.types()
    empty = {**body(), "consumer_type": "MISTYPED"}
    store.put_allocations(C1, {**empty, "consumer_generation": 1})
    store.post_allocations({C1: empty})
    assert store.types() == {**before, "INSTANCE": 0}


def test_concurrent_creations_of_a_consumer_succeed_once(store: ConsumerStore) -> None:
    def write(number: int) -> bool:
        try:
            store.put_allocations(C1, body(p1={"VCPU": number}))
        except ConcurrentUpdate:
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(1, 17))) == 1
    assert store.get_allocations(C1)["consumer_generation"] == 1


@pytest.fixture
def without_types(url: str) -> Iterator[sa.Engine]:
    """Upgrade consumers without types in a transaction with foreign keys on; yield the engine."""
    engine = sa.create_engine(url)

    def enforce(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA foreign_keys = ON")

    sa.event.listen(engine, "connect", enforce)
    ConsumerStore(engine).upgrade("0002")
    with engine.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO consumers (id, uuid, generation, project, user) "
            f"VALUES (7, '{C1}', 1, 'p', 'u'), (8, '{C2}', 1, 'p', 'u')"
        )
        connection.exec_driver_sql(
            f"INSERT INTO allocations (consumer_id, resource_provider, resource_class, used) "
            f"VALUES (7, '{P1}', 'VCPU', 2), (8, '{P1}', 'VCPU', 3), (8, '{P1}', 'DISK_GB', 5)"
        )
        ConsumerStore(connection).upgrade()
    yield engine
    engine.dispose()


def test_consumers_with_null_type_are_unknown(without_types: sa.Engine) -> None:
    (kind,) = (
        column
        for column in sa.inspect(without_types).get_columns("consumers")
        if column["name"] == "consumer_type_id"
    )
    assert kind["nullable"]
    store = ConsumerStore(without_types)
    assert store.get_allocations(C1) == body(1, kind="UNKNOWN", p1={"VCPU": 2})
    unknown = {"consumer_count": 2, "VCPU": 5, "DISK_GB": 5}
    assert store.usages("p") == {"usages": {"UNKNOWN": unknown}}
    assert store.usages("p", consumer_type="UNKNOWN") == {"usages": {"UNKNOWN": unknown}}
    assert store.usages("p", consumer_type="INSTANCE") == {"usages": {}}
    assert store.usages("p", consumer_type="all") == {"usages": {"all": unknown}}
    assert store.count("p", consumer_type="UNKNOWN") == 2
    assert store.types() == {"UNKNOWN": 2}
    assert store.remove_unused_types() == []


def test_consumers_with_null_and_unknown_type_are_counted_together(
    without_types: sa.Engine,
) -> None:
    store = ConsumerStore(without_types)
    store.put_allocations(C1, body(1, kind="UNKNOWN", p1={"VCPU": 2}))
    unknown = {"consumer_count": 2, "VCPU": 5, "DISK_GB": 5}
    assert store.usages("p") == {"usages": {"UNKNOWN": unknown}}
    assert store.usages("p", consumer_type="UNKNOWN") == {"usages": {"UNKNOWN": unknown}}
    assert store.types() == {"UNKNOWN": 2}
    store.put_allocations(C2, body(1, p1={"VCPU": 3}))
    assert store.types() == {"INSTANCE": 1, "UNKNOWN": 1}
    assert store.usages("p")["usages"] == {
        "UNKNOWN": {"consumer_count": 1, "VCPU": 2},
        "INSTANCE": {"consumer_count": 1, "VCPU": 3},
    }


def _enforces_foreign_keys(connection: sa.Connection) -> bool:
    return bool(connection.exec_driver_sql("PRAGMA foreign_keys").scalar())


def test_upgrade_keeps_the_foreign_key_setting(url: str) -> None:
    for store, enforcing in (
        (ConsumerStore(url), True),
        (ConsumerStore(sa.create_engine(url)), False),
    ):
        store.upgrade()
        assert store.reading(_enforces_foreign_keys) == enforcing
        store.downgrade("base")


def test_consumers_of_a_deleted_type_are_unknown(url: str) -> None:
    # Foreign keys are off, as they may be on a caller's engine.
    engine = sa.create_engine(url)
    store = ConsumerStore(engine)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 2}))
    store.put_allocations(C2, body(kind="UNKNOWN", p1={"VCPU": 3}))
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM consumer_types WHERE name = 'INSTANCE'")
    unknown = {"consumer_count": 2, "VCPU": 5}
    assert store.usages("p") == {"usages": {"UNKNOWN": unknown}}
    assert store.usages("p", consumer_type="UNKNOWN") == {"usages": {"UNKNOWN": unknown}}
    assert store.count("p", consumer_type="UNKNOWN") == 2
    assert store.types() == {"UNKNOWN": 2}


def test_upgrade_of_pre_release_without_foreign_key_is_rejected(url: str) -> None:
    # Without AUTOINCREMENT, SQLite would reuse the ids of removed types.
    engine = sa.create_engine(url)
    store_laws.make_pre_release(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE consumers DROP COLUMN consumer_type_id")
        connection.exec_driver_sql("UPDATE steelyard_consumers_version SET version_num = '0003'")
    with pytest.raises(Conflict, match=r"of consumers: consumer_types\.id has no AUTOINCREMENT;"):
        ConsumerStore(engine).upgrade()


def test_upgrade_with_missing_table_names_it(url: str) -> None:
    store = ConsumerStore(url)
    store.upgrade("0001")
    with sa.create_engine(url).begin() as connection:
        connection.exec_driver_sql("DROP TABLE consumers")
        connection.exec_driver_sql("CREATE TABLE allocations (id INTEGER)")
        connection.exec_driver_sql("CREATE TABLE consumer_types (id INTEGER, name VARCHAR(9))")
    with pytest.raises(ServiceError, match="missing table 'consumers'; restore it"):
        store.upgrade()
