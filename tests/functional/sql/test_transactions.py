"""Retries of transactions on SQLite, and failures inside the transactions of callers."""

import pathlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.errors import ServiceError, TransactionAborted
from support.consumers.store_laws import C1, body

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f"sqlite:///{tmp_path / 'consumers.db'}"


class Deadlock(Exception):
    sqlstate = "40P01"


def deadlock(_connection: sa.Connection) -> None:
    raise sa.exc.OperationalError("UPDATE", {}, Deadlock("deadlock detected"))


def test_deadlocked_transaction_is_retried(monkeypatch: Any, url: str) -> None:
    # The pauses between attempts vary.
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr("random.uniform", random.Random(1).uniform)
    store = ConsumerStore(url)
    store.upgrade()
    for run in (store.in_a_transaction, store.reading):
        pauses.clear()
        with pytest.raises(ServiceError, match="aborted the transaction 5 times: deadlock") as e:
            run(deadlock)
        assert type(e.value) is TransactionAborted
        assert [pause > 0 for pause in pauses] == [True, True, True, True]
        assert 2 * pauses[0] != pauses[1]
    attempts: Iterator[Callable[[sa.Connection], None]] = iter([deadlock, lambda _connection: None])
    store.in_a_transaction(lambda connection: next(attempts)(connection))  # noqa: PLW0108
    assert list(attempts) == []


def test_deadlock_in_a_callers_transaction_ends_it(url: str) -> None:
    ConsumerStore(url).upgrade()
    with sa.create_engine(url).connect() as connection:
        store = ConsumerStore(connection)
        store.put_allocations(C1, body(p1={"VCPU": 1}))
        for run in (store.in_a_transaction, store.reading):
            with pytest.raises(TransactionAborted, match="deadlock detected; roll it back and"):
                run(deadlock)
            with pytest.raises(ServiceError, match="has failed; roll it back and begin a new one"):
                store.usages("p")
            with pytest.raises(sa.exc.PendingRollbackError):
                connection.exec_driver_sql("SELECT 1")
            connection.rollback()
        assert store.usages("p") == {"usages": {}}


def test_failed_rollback_keeps_the_original_error(url: str) -> None:
    def work(connection: sa.Connection) -> None:
        connection.exec_driver_sql("ROLLBACK")
        raise KeyError("mine")

    with sa.create_engine(url).connect() as connection:
        with pytest.raises(KeyError, match="mine"):
            ConsumerStore(connection).in_a_transaction(work)
        with pytest.raises(sa.exc.PendingRollbackError):
            connection.exec_driver_sql("SELECT 1")
