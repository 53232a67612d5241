"""Transactions on engines, with retries, and inside the transactions of callers."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from steelyard import errors
from steelyard.sql import engines
from steelyard.sql.database_errors import driver_message, is_transient, translated
from steelyard.sql.engines import Purpose

# Seconds before each attempt at a transaction, varied at random so that two transactions that
# deadlocked do not retry in step.
_PAUSES = (0, 0.02, 0.04, 0.08, 0.16)

AnswerT = TypeVar("AnswerT")


class TryAgain(errors.ConcurrentUpdate):
    """An error for a row that another transaction removed while this one relied on it.

    The store retries a transaction that raises this. Inside a caller's transaction, the caller gets
    the error and can go on: the database has not aborted the transaction.
    """


def run(
    database: sa.Engine | sa.Connection,
    work: Callable[[sa.Connection], AnswerT],
    purpose: Purpose,
) -> AnswerT:
    """Run the work in a transaction, and return its result.

    On an engine, the work runs again if the transaction is retried. On a connection, it runs inside
    the transaction of the caller, who alone can retry it. Raises the errors of ``translated``.
    """
    with translated():
        if isinstance(database, sa.Connection):
            return _inside(database, work, purpose)
        for pause in _PAUSES:
            if pause:  # time.sleep(0) would let other threads and processes run first
                time.sleep(pause * random.uniform(0.5, 1.5))
            try:
                return _at_once(database, work, purpose)
            except (TryAgain, sa.exc.DBAPIError) as error:
                if not isinstance(error, TryAgain) and not is_transient(error):
                    raise
                failure = error
    if isinstance(failure, TryAgain):
        raise failure
    raise errors.TransactionAborted(
        f"the database aborted the transaction {len(_PAUSES)} times: {driver_message(failure)}"
    ) from failure


def _at_once(
    engine: sa.Engine, work: Callable[[sa.Connection], AnswerT], purpose: Purpose
) -> AnswerT:
    with engine.begin() as connection:
        engines.begin(connection, purpose)
        return work(connection)


def _inside(
    connection: sa.Connection, work: Callable[[sa.Connection], AnswerT], purpose: Purpose
) -> AnswerT:
    """Run the work inside the caller's transaction, which only the caller can retry."""
    engines.join(connection, purpose)
    savepoint = connection.begin_nested()
    try:
        answer = work(connection)
        savepoint.commit()
    except BaseException as error:
        if not is_transient(error):
            _undo(savepoint, connection)
            raise
        # The database may have undone the caller's earlier changes, too. Without this, the caller
        # could go on, and commit the rest without them.
        connection.invalidate()
        raise errors.TransactionAborted(
            f"the database aborted the transaction: {driver_message(error)}; roll it back and retry"
        ) from error
    return answer


def _undo(savepoint: sa.NestedTransaction, connection: sa.Connection) -> None:
    """Roll back to the savepoint, and raise no error: the caller raises the original one."""
    try:
        savepoint.rollback()
    except sa.exc.SQLAlchemyError:
        connection.invalidate()
