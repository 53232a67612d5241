"""The store of tags on PostgreSQL and MariaDB."""

import concurrent.futures
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
import tag_stores
from services import databases
from tag_databases import upgrade
from tag_stores import ACTIVE, CALLER, USER, made, put

from steelyard.errors import BadRequest, Conflict, ServiceError
from steelyard.tags import TagStore, states
from steelyard.tags.names import MOST
from steelyard.tags.states import Change, Instance, Mark, Rules

PATIENCE = 20


@pytest.fixture(params=["postgresql", "mariadb"])
def engine(request: Any) -> Iterator[sa.Engine]:
    with databases.own_database(databases.needed(request.param)) as engine:
        yield engine


@pytest.fixture
def store(engine: sa.Engine) -> TagStore:
    store = TagStore(engine)
    upgrade(store)
    return store


@pytest.mark.parametrize("check", tag_stores.OPERATIONS)
def test_what_is_kept(store: TagStore, check: Any) -> None:
    check(store)


@pytest.mark.parametrize("check", tag_stores.SCHEMAS)
def test_the_schema(engine: sa.Engine, check: Any) -> None:
    check(engine)


def test_beside_a_host(engine: sa.Engine, tmp_path: Any) -> None:
    tag_stores.check_beside_a_host(engine, tmp_path / "history")


@pytest.fixture
def pool() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        yield pool


def test_changes_of_other_instances_go_on(
    engine: sa.Engine, store: TagStore, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    """While the tags of one are removed and put back, of those before and behind it, too."""
    for name in ("before", "this", "behind"):
        store.register(Instance(name, name, "p", "u"))
        put(store, name, b=ACTIVE, c=ACTIVE)
    with engine.connect().execution_options(isolation_level="READ COMMITTED") as connection:
        inside = TagStore(connection)
        there = inside.state("this").tags
        inside.change("this", lambda state: (Change(removed=frozenset(there)), None))
        inside.change("this", lambda state: (Change(there), None))
        others = [
            pool.submit(put, store, name, **{tag: ACTIVE})
            for name in ("before", "behind")
            for tag in ("a", "z", "\U0010fffd")
        ]
        others.append(pool.submit(store.register, Instance("new", "new", "p", "u")))
        for each in others:
            each.result(timeout=PATIENCE)
        waiting = pool.submit(store.change, "this", lambda state: (Change(), len(state.tags)))
        assert not concurrent.futures.wait([waiting], timeout=0.3).done
        put(inside, "this", d=ACTIVE)
        connection.commit()
        assert waiting.result(timeout=PATIENCE) == 3
    assert len(store.state("before").tags) == len(store.state("behind").tags) == 5


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_a_callers_transaction_decides_upon_what_is_there(
    engine: sa.Engine, store: TagStore, level: str
) -> None:
    """Whatever it has seen before; else there might be more tags than there is room for."""
    service, _ = made(store, "s1")
    put(store, "s1", **{str(number): ACTIVE for number in range(MOST - 1)})
    transactions = engine.execution_options(isolation_level=level)
    with transactions.connect() as connection:
        connection.execute(sa.text("SELECT count(*) FROM instance_tags")).scalar()
        if level == "SERIALIZABLE" and engine.dialect.name == "mysql":
            connection.rollback()  # it locks all that it reads: nobody else would come in between
        service.add(CALLER, "s1", "the last one")
        with pytest.raises((BadRequest, ServiceError), match=r"at most 50|begin it again"):
            TagStore(connection).change(
                "s1", lambda state: (Change(), states.adding(state, Rules(USER), ["one more"]))
            )
        connection.rollback()
    assert len(service.tags(CALLER, "s1")) == MOST


def test_of_many_who_register_the_same_one_does(store: TagStore) -> None:
    both = threading.Barrier(8, timeout=PATIENCE)

    def register(number: int) -> int:
        won = 0
        for turn in range(10):
            both.wait()
            try:
                store.register(Instance(f"{number % 2} {turn}", f"vm{turn}", "p", str(number)))
                won += 1
            except Conflict:
                pass
        return won

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(register, range(8))) == 10
    assert len(store.instances()) == 10


def test_a_mark_that_is_renewed_meanwhile_is_not_pruned(
    engine: sa.Engine, store: TagStore, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    store.register(Instance("s1", "vm", "p", "u"))
    key, newer = (USER, "red"), Mark(2, there=False)
    store.change("s1", lambda state: (Change(marked={key: Mark(1, there=True)}), None))
    tag_stores.age(store, "s1")
    with engine.connect() as connection:
        inside = TagStore(connection)
        inside.change("s1", lambda state: (Change(marked={key: newer}), None))
        pruning = pool.submit(store.prune, 3600)
        concurrent.futures.wait([pruning], timeout=0.3)
        connection.commit()
    assert pruning.result(timeout=PATIENCE) == 0
    assert store.state("s1").marks == {key: newer}


def test_who_is_just_being_changed_is_left_alone_by_reconciliation(
    engine: sa.Engine, store: TagStore, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    """It has looked before that, and waits with what it would do."""
    service, _ = made(store, "s1")
    put(store, "s1", red=ACTIVE)
    with engine.connect() as connection:
        put(TagStore(connection), "s1", blue=ACTIVE)
        reconciling = pool.submit(lambda: [*service.reconciliation().carried_out()])
        assert not concurrent.futures.wait([reconciling], timeout=0.5).done
        connection.commit()
    ((plan,),) = reconciling.result(timeout=PATIENCE)
    assert [step.why for step in plan.steps] == ["it was changed meanwhile"]
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE, "red": ACTIVE}


def test_what_the_server_says_has_no_password_in_it(engine: sa.Engine) -> None:
    url = engine.url.set(username="steelyard_nobody", password="hunter2")
    with pytest.raises(ServiceError) as raised:
        TagStore(url).instances()
    story = "".join(traceback.format_exception(raised.value))
    assert "hunter2" not in story.replace('password="hunter2"', "")  # this is the line above
