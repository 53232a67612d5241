"""Dead letters in RabbitMQ: listing, replaying and dropping them, also when the process is killed."""

import subprocess
import sys
import time
from collections.abc import Iterator

import kombu
import pytest

from steelyard.tags.jobs import messages
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.jobs.dead_letters import DeadLetters
from steelyard.tags.jobs.dispatcher import Dispatcher
from steelyard.tags.states.values import Kind, Outcome
from support.tags import queues
from support.tags.queues import until

BODIES = [f"letter {number}".encode() for number in range(6)]


@pytest.fixture
def broker(host: str) -> Iterator[Broker]:
    """Yield a broker with six dead letters."""
    with queues.own_queue(host) as broker:
        with broker.connected() as connection:
            for body in BODIES:
                broker.dead_letter(connection.default_channel, body, f"{body!r} is malformed")
        yield broker


@pytest.fixture
def letters(broker: Broker) -> DeadLetters:
    return DeadLetters(broker)


def ids(letters: DeadLetters, *bodies: bytes) -> list[str]:
    return [each.id for each in letters.first()[1] if each.body in bodies]


def left(letters: DeadLetters) -> list[bytes]:
    return [each.body for each in letters.first()[1]]


def outcomes(broker: Broker) -> list[bytes]:
    """Return the messages of the work queue, and remove them."""
    found = []
    with broker.connected() as connection:
        channel = connection.channel()
        channel.auto_decode = False
        queue = broker.queue(channel)
        while (message := queue.get(no_ack=True)) is not None:
            found.append(message.body)
    return found


def interrupted(host: str, broker: Broker, call: str, at: str) -> None:
    """Run a call on the dead letters in a process that is killed at the named method."""
    code = (
        "import os, signal\n"
        "from steelyard.tags.jobs import dead_letters\n"
        "from steelyard.tags.jobs.broker import Broker\n"
        "def kill(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        f"dead_letters._Taken.{at} = kill\n"
        f"dead_letters.DeadLetters(Broker({host!r}, {broker.queue.name!r})).{call}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr


def test_list_leaves_messages_in_their_order(letters: DeadLetters) -> None:
    total, found = letters.first()
    assert (total, [each.body for each in found]) == (6, BODIES)
    assert [each.reason for each in found] == [f"{body!r} is malformed" for body in BODIES]
    assert len({each.id for each in found}) == 6
    assert all(each.since is not None and abs(time.time() - each.since) < 60 for each in found)
    assert letters.first() == (total, found)


def test_list_of_some_leaves_all(letters: DeadLetters) -> None:
    total, found = letters.first(2)
    assert (total, [each.body for each in found]) == (6, BODIES[:2])
    assert left(letters) == BODIES


def test_killed_list_leaves_messages_in_their_order(
    host: str, broker: Broker, letters: DeadLetters
) -> None:
    interrupted(host, broker, "first()", at="requeue")
    until(lambda: left(letters) == BODIES)


def test_replay_returns_wanted_messages_to_the_work_queue(
    broker: Broker, letters: DeadLetters
) -> None:
    wanted = ids(letters, BODIES[1], BODIES[4])
    assert letters.replay([*wanted, "other"]) == wanted
    assert left(letters) == [BODIES[0], BODIES[2], BODIES[3], BODIES[5]]
    assert outcomes(broker) == [BODIES[1], BODIES[4]]


def test_replayed_message_survives_a_restart_and_has_no_reason(
    broker: Broker, letters: DeadLetters
) -> None:
    letters.replay(ids(letters, BODIES[0]))
    with broker.connected() as connection:
        message = broker.queue(connection.default_channel).get(no_ack=True)
    assert message.properties["delivery_mode"] == 2
    assert message.headers == {}


def test_killed_replay_loses_no_message(host: str, broker: Broker, letters: DeadLetters) -> None:
    interrupted(host, broker, "replay()", at="remove_last")
    until(lambda: left(letters) == BODIES)
    assert outcomes(broker) == BODIES[:1]
    letters.replay()
    assert left(letters) == []
    assert outcomes(broker) == BODIES


def test_replay_of_all_ends_although_messages_become_dead_letters_again(
    broker: Broker, letters: DeadLetters
) -> None:
    before = ids(letters, *BODIES)
    with queues.dispatching(Dispatcher(broker, lambda _: None)):
        assert letters.replay() == before
        until(lambda: len(left(letters)) == 6)
    total, again = letters.first()
    assert (total, [each.body for each in again]) == (6, BODIES)
    assert not {each.id for each in again} & set(before)


def test_replayed_outcome_is_applied(broker: Broker, letters: DeadLetters) -> None:
    outcome = Outcome(7, "vm", Kind.ADD, frozenset(), succeeded=True)
    with broker.connected() as connection:
        broker.dead_letter(connection.default_channel, messages.write(outcome), "no such instance")
    (last,) = (each.id for each in letters.first()[1] if each.body not in BODIES)
    applied: list[Outcome] = []
    with queues.dispatching(Dispatcher(broker, applied.append)):
        letters.replay([last])
        until(lambda: applied == [outcome])
    assert left(letters) == BODIES


def test_drop_deletes_wanted_messages_only(broker: Broker, letters: DeadLetters) -> None:
    wanted = ids(letters, BODIES[0], BODIES[3])
    assert letters.drop([*wanted, "other"]) == wanted
    assert left(letters) == [BODIES[1], BODIES[2], BODIES[4], BODIES[5]]
    assert outcomes(broker) == []


def test_messages_of_other_programs_have_no_reason_and_an_id_by_their_body(
    host: str, broker: Broker, letters: DeadLetters
) -> None:
    letters.drop(ids(letters, *BODIES))
    with kombu.Connection(host) as connection:
        producer = kombu.Producer(connection.default_channel)
        for body in ("odd", "odd", b"\xff"):
            producer.publish(body, routing_key=broker.dead.name, serializer=None)
    until(lambda: letters.first()[0] == 3)
    first, second, third = letters.first()[1]
    assert (first.body, first.since, first.reason) == (b"odd", None, None)
    assert first.id == second.id != third.id
    assert letters.drop([first.id]) == [first.id, first.id]
    assert left(letters) == [b"\xff"]


def test_message_that_arrives_during_a_list_comes_last(
    broker: Broker, letters: DeadLetters
) -> None:
    with letters._taking() as taken:
        assert [each.body for each in taken.letters(3)] == BODIES[:3]
        with broker.connected() as connection:
            broker.dead_letter(connection.default_channel, b"late", "malformed")
    assert left(letters) == [*BODIES, b"late"]
