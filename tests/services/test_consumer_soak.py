"""The soak of the store of consumers in its short form, and its checker, which must find faults."""

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from services import consumer_checker, consumer_soak, consumer_writer, databases
from services.consumer_checker import ACCOUNTS, BALANCE, BANK, RECEIPT, TEAMS, Story, Tables, named
from services.consumer_writer import body

from steelyard.consumers import ConsumerStore
from steelyard.errors import Conflict, ServiceError

RECEIPTS = [named(RECEIPT, 1, number) for number in range(3)]
(COUNTER,), TEAM = TEAMS["team0"], TEAMS["team4"]


@pytest.mark.parametrize(
    ("server", "given"),
    [("sqlite", False), ("sqlite", True), ("postgresql", False), ("mariadb", False)],
)
def test_what_processes_write_at_once_is_sound(server: str, given: bool) -> None:
    url = sa.make_url("sqlite://") if server == "sqlite" else databases.needed(server)
    with consumer_soak.database(url) as engine:
        figures = consumer_soak.soak(engine, writers=5, seconds=2.5, seed=1, given=given)
    assert figures.faults == []
    assert figures.outcomes["done"] > 0
    assert figures.outcomes["given up"] == 0
    assert figures.killed > 0
    assert str(figures).endswith("sound")


@pytest.fixture
def told() -> Story:
    """What two writers have noted, of whom the second was killed at its second write."""
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


def noted(outcome: str | None, **said: object) -> Iterator[str]:
    yield json.dumps({"attempt": said})
    if outcome:
        yield json.dumps({"outcome": outcome, "seconds": 0.1, "retries": 0})


@pytest.fixture
def engine(tmp_path: pathlib.Path) -> Iterator[sa.Engine]:
    """What has been written then. There are no constraints, so that any fault may be planted."""
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


def test_the_checker_finds_nothing_where_nothing_is(engine: sa.Engine, told: Story) -> None:
    assert list(consumer_checker.faults(Tables.read(engine), told)) == []


OF_COUNTER = f"(SELECT id FROM consumers WHERE uuid = '{COUNTER}')"
OF_ACCOUNT = f"(SELECT id FROM consumers WHERE uuid = '{ACCOUNTS[0]}')"
OF_MEMBER = f"(SELECT id FROM consumers WHERE uuid = '{TEAM[0]}')"
NEW = "INSERT INTO consumers SELECT 99, '{}', 1, project, user, consumer_type_id FROM consumers "
PLANTED = {
    "INSERT INTO consumer_types VALUES (99, 'A')": "type A is there 2 times",
    "INSERT INTO consumer_types VALUES (99, 'E')": "type E is there, and no write",
    "DELETE FROM consumer_types WHERE name = 'B'": "type B has been used, and is not there",
    "UPDATE consumers SET consumer_type_id = 98": "is of a type that is not there",
    f"INSERT INTO consumers SELECT * FROM consumers WHERE uuid = '{COUNTER}'": "is there 2 times",
    f"{NEW.format(named('stranger'))} LIMIT 1": "is there, and nobody has written it",
    f"{NEW.format(RECEIPTS[1])} LIMIT 1": "is there; the write: given up",
    f"DELETE FROM consumers WHERE uuid = '{RECEIPTS[0]}'": "is not there; the write: done",
    f"DELETE FROM consumers WHERE uuid = '{COUNTER}'": "is of a consumer that is not there",
    f"DELETE FROM allocations WHERE consumer_id = {OF_COUNTER}": "not the same of each resource",
    "DELETE FROM allocations WHERE resource_class = 'VCPU'": "not the same of each resource",
    f"UPDATE allocations SET used = 2 WHERE consumer_id = {OF_COUNTER}": "has lost an update",
    f"UPDATE consumers SET generation = 2 WHERE uuid = '{COUNTER}'": "has lost an update",
    f"UPDATE allocations SET used = 2 WHERE consumer_id = {OF_MEMBER}": "written in part",
    f"UPDATE allocations SET used = 2 WHERE consumer_id = {OF_ACCOUNT}": "the accounts have",
    "UPDATE allocations SET used = used + 5": "the accounts have",
}


@pytest.mark.parametrize(("statement", "fault"), PLANTED.items())
def test_a_fault_in_the_tables_is_found(
    engine: sa.Engine, told: Story, statement: str, fault: str
) -> None:
    with engine.begin() as connection:
        assert connection.exec_driver_sql(statement).rowcount > 0
    assert fault in "\n".join(consumer_checker.faults(Tables.read(engine), told))


DOCTORED = {
    "an increment": {"kinds": ["A"], "changes": {COUNTER: (1, 1)}},
    "a removal": {"kinds": ["A"], "changes": {COUNTER: (-1, -1)}},
    "a transfer": {"kinds": ["A"], "changes": {ACCOUNTS[2]: (1, 1), ACCOUNTS[3]: (-1, 1)}},
    "a receipt": {"kinds": ["A"], "changes": {}, "receipt": named(RECEIPT, 2, 1)},
    "a type": {"kinds": ["F"], "changes": {}},
}


@pytest.mark.parametrize("lost", DOCTORED)
def test_a_write_that_was_done_and_is_not_there_is_found(
    engine: sa.Engine, told: Story, lost: str
) -> None:
    """Had it been refused, or were it in doubt, nothing would be wrong."""
    before = list(told.attempts)
    for outcome, wrong in (("refused", False), (None, False), ("done", True)):
        told.attempts = list(before)
        told.add(noted(outcome, **DOCTORED[lost]))
        assert bool(list(consumer_checker.faults(Tables.read(engine), told))) is wrong


def test_what_is_in_doubt_and_has_been_done_is_counted(engine: sa.Engine, told: Story) -> None:
    told.add(noted(None, kinds=["A"], changes={COUNTER: (1, 1)}))
    with engine.begin() as connection:
        mine = f"consumer_id = {OF_COUNTER}"
        connection.exec_driver_sql(f"UPDATE allocations SET used = 2 WHERE {mine}")
        connection.exec_driver_sql(f"UPDATE consumers SET generation = 2 WHERE uuid = '{COUNTER}'")
    assert list(consumer_checker.faults(Tables.read(engine), told)) == []


def test_what_a_writer_did_not_expect_is_a_fault(engine: sa.Engine, told: Story) -> None:
    told.add([json.dumps({"failed": "Traceback"}), json.dumps({"error": "deadlock"})])
    assert list(consumer_checker.faults(Tables.read(engine), told)) == ["Traceback"]
    assert told.errors == ["deadlock"]


def raising(error: Exception) -> Callable[[], None]:
    def write() -> None:
        raise error

    return write


def test_refusals_are_told_from_failures() -> None:
    assert consumer_writer.outcome(lambda: None) == "done"
    assert consumer_writer.outcome(raising(Conflict("no"))) == "refused"
    given_up = ServiceError("the database has given up the transaction 5 times: deadlock")
    assert consumer_writer.outcome(raising(given_up)) == "given up"
    with pytest.raises(ServiceError, match="the database cannot do it"):
        consumer_writer.outcome(raising(ServiceError("the database cannot do it: gone")))


def usages(**groups: int) -> Any:
    """Of types, by how many consumers; each has 7 of each resource."""
    return {
        "usages": {
            kind: {"consumer_count": count, "VCPU": 7 * count, "MEMORY_MB": 7 * count}
            for kind, count in groups.items()
        }
    }


@pytest.mark.parametrize("answer", [usages(A=2), usages(A=2, B=1), usages(A=4)])
def test_a_look_at_a_half_written_team_is_a_failure(answer: Any) -> None:
    consumer_writer.check_usages("team4", usages(A=3))
    consumer_writer.check_usages("team4", usages())
    with pytest.raises(AssertionError):
        consumer_writer.check_usages("team4", answer)


def test_a_look_at_accounts_that_do_not_add_up_is_a_failure() -> None:
    with pytest.raises(AssertionError):
        consumer_writer.check_usages(BANK, usages(A=6))
    with pytest.raises(AssertionError):
        consumer_writer.check_usages(BANK, usages(A=5))


def test_a_consumer_that_is_not_whole_is_not_accepted() -> None:
    half: dict[str, Any] = {"p": {"resources": {"VCPU": 2}}}
    for more in ({}, {"q": {"resources": {"MEMORY_MB": 1}}}):
        with pytest.raises(AssertionError):
            consumer_writer.held({"allocations": half | more, "consumer_generation": 2})
