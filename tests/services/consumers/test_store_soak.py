"""A short soak of the consumer store, and the checker of its results."""

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.errors import ConcurrentUpdate, ServiceError
from support.services import databases
from support.soaks import consumer_checker, consumer_soak, consumer_writer
from support.soaks.consumer_checker import (
    ACCOUNTS,
    BALANCE,
    BANK,
    RECEIPT,
    TEAMS,
    Story,
    Tables,
    named,
)
from support.soaks.consumer_writer import body

RECEIPTS = [named(RECEIPT, 1, number) for number in range(3)]
(COUNTER,), TEAM = TEAMS["team0"], TEAMS["team4"]


@pytest.mark.parametrize(
    ("server", "given"),
    [("sqlite", False), ("sqlite", True), ("postgresql", False), ("mariadb", False)],
)
def test_concurrent_killed_writers_leave_sound_tables(server: str, given: bool) -> None:
    url = sa.make_url("sqlite://") if server == "sqlite" else databases.needed(server)
    with consumer_soak.database(url) as engine:
        figures = consumer_soak.soak(engine, writers=5, seconds=1.0, seed=1, given=given)
    assert figures.faults == []
    assert figures.outcomes["done"] > 0
    assert figures.outcomes["given up"] == 0
    assert figures.killed > 0
    assert str(figures).endswith("sound")


@pytest.fixture
def notes() -> Story:
    """Return the notes of two writers; the second was killed during its second write."""
    story = Story()
    team = dict.fromkeys(TEAM, (1, 1))
    transfer = {ACCOUNTS[0]: (-5, 1), ACCOUNTS[1]: (5, 1)}
    once = {"kinds": ["A"], "changes": {COUNTER: (1, 1)}}
    story.add(
        [
            *noted("done", **once),
            *noted("refused", **once),
            *noted("done", kinds=["A", "B"], changes=team | transfer, receipt=RECEIPTS[0]),
        ]
    )
    story.add(
        [
            *noted("given up", kinds=["E"], changes=transfer, receipt=RECEIPTS[1]),
            *noted(None, kinds=["C"], changes=team, receipt=RECEIPTS[2]),
        ]
    )
    return story


def noted(outcome: str | None, **attempt: object) -> Iterator[str]:
    yield json.dumps({"attempt": attempt})
    if outcome:
        yield json.dumps({"outcome": outcome, "seconds": 0.1, "retries": 0})


@pytest.fixture
def engine(tmp_path: pathlib.Path) -> Iterator[sa.Engine]:
    """Yield an engine on tables that match the notes, without constraints that prevent faults."""
    engine = sa.create_engine(f"sqlite:///{tmp_path}/consumers.db")
    store = ConsumerStore(engine)
    store.upgrade()
    balances = dict.fromkeys(ACCOUNTS, BALANCE)
    store.post_allocations({name: body(BANK, has, 0, "UNKNOWN") for name, has in balances.items()})
    store.put_allocations(COUNTER, body("team0", 1, 0, "A"))
    store.post_allocations(
        {
            **{member: body("team4", 1, 0, "B") for member in TEAM},
            ACCOUNTS[0]: body(BANK, BALANCE - 5, 1, "A"),
            ACCOUNTS[1]: body(BANK, BALANCE + 5, 1, "A"),
            RECEIPTS[0]: body(RECEIPT, 1, 0, "A"),
        }
    )
    with engine.begin() as connection:
        for table in ("allocations", "consumers", "consumer_types"):
            connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO constrained")
            connection.exec_driver_sql(f"CREATE TABLE {table} AS SELECT * FROM constrained")
            connection.exec_driver_sql("DROP TABLE constrained")
    yield engine
    engine.dispose()


def test_checker_finds_no_fault_in_sound_tables(engine: sa.Engine, notes: Story) -> None:
    assert list(consumer_checker.faults(Tables.read(engine), notes)) == []


OF_COUNTER = f"(SELECT id FROM consumers WHERE uuid = '{COUNTER}')"
OF_ACCOUNT = f"(SELECT id FROM consumers WHERE uuid = '{ACCOUNTS[0]}')"
OF_MEMBER = f"(SELECT id FROM consumers WHERE uuid = '{TEAM[0]}')"
NEW = "INSERT INTO consumers SELECT 99, '{}', 1, project, user, consumer_type_id FROM consumers "
PLANTED = {
    "INSERT INTO consumer_types VALUES (99, 'A')": "type A: 2 rows",
    "INSERT INTO consumer_types VALUES (99, 'E')": "type E: present, but no completed write",
    "DELETE FROM consumer_types WHERE name = 'B'": "type B: used, but missing",
    "UPDATE consumers SET consumer_type_id = 98": "type missing",
    f"INSERT INTO consumers SELECT * FROM consumers WHERE uuid = '{COUNTER}'": ": 2 rows",
    f"{NEW.format(named('stranger'))} LIMIT 1": "present, but never written",
    f"{NEW.format(RECEIPTS[1])} LIMIT 1": "present; outcome of its write: given up",
    f"DELETE FROM consumers WHERE uuid = '{RECEIPTS[0]}'": "missing; outcome of its write: done",
    f"DELETE FROM consumers WHERE uuid = '{COUNTER}'": "consumer missing",
    f"DELETE FROM allocations WHERE consumer_id = {OF_COUNTER}": "amounts of its resources differ",
    "DELETE FROM allocations WHERE resource_class = 'VCPU'": "amounts of its resources differ",
    f"UPDATE allocations SET used = 2 WHERE consumer_id = {OF_COUNTER}": "lost update",
    f"UPDATE consumers SET generation = 2 WHERE uuid = '{COUNTER}'": "lost update",
    f"UPDATE allocations SET used = 2 WHERE consumer_id = {OF_MEMBER}": "partly written",
    f"UPDATE allocations SET used = 2 WHERE consumer_id = {OF_ACCOUNT}": "sum of the accounts",
    "UPDATE allocations SET used = used + 5": "sum of the accounts",
}


@pytest.mark.parametrize(("statement", "fault"), PLANTED.items())
def test_checker_finds_fault_in_the_tables(
    engine: sa.Engine, notes: Story, statement: str, fault: str
) -> None:
    with engine.begin() as connection:
        assert connection.exec_driver_sql(statement).rowcount > 0
    assert fault in "\n".join(consumer_checker.faults(Tables.read(engine), notes))


DOCTORED = {
    "an increment": {"kinds": ["A"], "changes": {COUNTER: (1, 1)}},
    "a removal": {"kinds": ["A"], "changes": {COUNTER: (-1, -1)}},
    "a transfer": {"kinds": ["A"], "changes": {ACCOUNTS[2]: (1, 1), ACCOUNTS[3]: (-1, 1)}},
    "a receipt": {"kinds": ["A"], "changes": {}, "receipt": named(RECEIPT, 2, 1)},
    "a type": {"kinds": ["F"], "changes": {}},
}


@pytest.mark.parametrize("lost", DOCTORED)
def test_checker_finds_completed_write_that_is_missing(
    engine: sa.Engine, notes: Story, lost: str
) -> None:
    # Only a completed write must be in the tables.
    before = list(notes.attempts)
    for outcome, is_fault in (("refused", False), (None, False), ("done", True)):
        notes.attempts = list(before)
        notes.add(noted(outcome, **DOCTORED[lost]))
        assert bool(list(consumer_checker.faults(Tables.read(engine), notes))) is is_fault


def test_checker_accepts_write_in_doubt_that_was_done(engine: sa.Engine, notes: Story) -> None:
    notes.add(noted(None, kinds=["A"], changes={COUNTER: (1, 1)}))
    with engine.begin() as connection:
        mine = f"consumer_id = {OF_COUNTER}"
        connection.exec_driver_sql(f"UPDATE allocations SET used = 2 WHERE {mine}")
        connection.exec_driver_sql(f"UPDATE consumers SET generation = 2 WHERE uuid = '{COUNTER}'")
    assert list(consumer_checker.faults(Tables.read(engine), notes)) == []


def test_unexpected_error_of_a_writer_is_a_fault(engine: sa.Engine, notes: Story) -> None:
    notes.add([json.dumps({"failed": "Traceback"}), json.dumps({"error": "deadlock"})])
    assert list(consumer_checker.faults(Tables.read(engine), notes)) == ["Traceback"]
    assert notes.errors == ["deadlock"]


def raising(error: Exception) -> Callable[[], None]:
    def write() -> None:
        raise error

    return write


def test_outcome_distinguishes_refusals_from_failures() -> None:
    assert consumer_writer.outcome(lambda: None) == "done"
    assert consumer_writer.outcome(raising(ConcurrentUpdate("no"))) == "refused"
    given_up = ServiceError("the database aborted the transaction 5 times: deadlock")
    assert consumer_writer.outcome(raising(given_up)) == "given up"
    with pytest.raises(ServiceError, match="database error"):
        consumer_writer.outcome(raising(ServiceError("database error: gone")))


def usages(**groups: int) -> Any:
    """Return usages with these numbers of consumers by type, each with 7 of each resource."""
    return {
        "usages": {
            kind: {"consumer_count": count, "VCPU": 7 * count, "MEMORY_MB": 7 * count}
            for kind, count in groups.items()
        }
    }


@pytest.mark.parametrize("answer", [usages(A=2), usages(A=2, B=1), usages(A=4)])
def test_check_usages_rejects_partly_written_team(answer: Any) -> None:
    consumer_writer.check_usages("team4", usages(A=3))
    consumer_writer.check_usages("team4", usages())
    with pytest.raises(AssertionError):
        consumer_writer.check_usages("team4", answer)


def test_check_usages_rejects_wrong_sum_of_accounts() -> None:
    with pytest.raises(AssertionError):
        consumer_writer.check_usages(BANK, usages(A=6))
    with pytest.raises(AssertionError):
        consumer_writer.check_usages(BANK, usages(A=5))


def test_held_rejects_partly_written_consumer() -> None:
    half: dict[str, Any] = {"p": {"resources": {"VCPU": 2}}}
    for more in ({}, {"q": {"resources": {"MEMORY_MB": 1}}}):
        with pytest.raises(AssertionError):
            consumer_writer.held({"allocations": half | more, "consumer_generation": 2})
