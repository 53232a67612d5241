"""RabbitMQ, set up as the guide describes."""

import re
import shlex
import urllib.parse
import uuid
from collections.abc import Iterator

import kombu
import pytest

from steelyard import errors
from steelyard.tags.codec import Tag
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.jobs.dead_letters import DeadLetters
from steelyard.tags.jobs.dispatcher import Dispatcher
from steelyard.tags.states.values import Kind, Outcome
from support.repository import DOCS
from support.services import brokers
from support.soaks.outcome_soak import PREFIX
from support.tags import queues
from support.tags.queues import until


@pytest.fixture
def broker(host: str) -> Iterator[Broker]:
    with queues.own_queue(host) as broker:
        yield broker


GUIDE = DOCS / "guides" / "dispatch-tags-over-rabbitmq.rst"
MESSAGES = DOCS / "reference" / "tags-messages.rst"


@pytest.fixture
def limited(host: str, broker: Broker) -> Iterator[str]:
    """Yield the URL of a user that has only the permissions in the guide."""
    user, name = f"steelyard_test_{uuid.uuid4().hex}", brokers.host_of(host)
    commands = re.findall(
        r"^   rabbitmqctl (.*(?:add_user|set_permissions).*)$", GUIDE.read_text(), re.MULTILINE
    )
    try:
        for line in commands:
            argv = shlex.split(line.replace("steelyard[.]tags", re.escape(broker.queue.name)))
            places = {"steelyard": user, "PASSWORD": "secret"}
            argv = [places.get(word, word) for word in argv]
            if "-p" in argv:
                argv[argv.index("-p") + 1] = name
            brokers.control(*argv)
        where = urllib.parse.urlsplit(host)
        yield f"amqp://{user}:secret@{where.hostname}:{where.port or 5672}/{name}"
    finally:
        brokers.control("delete_user", user)


def test_permissions_in_the_guide_suffice(limited: str, broker: Broker) -> None:
    outcome = Outcome(1, "vm", Kind.ADD, frozenset([Tag(PREFIX, "red")]), succeeded=True)
    settled: list[Outcome] = []
    restricted = Broker(limited, broker.queue.name)
    with restricted.connected() as connection:
        for queue in (restricted.queue, restricted.dead):
            queue(connection.default_channel).delete()
    queues.send(restricted, b"malformed")
    with restricted.publishing() as publish:
        publish(outcome)
    with queues.dispatching(Dispatcher(restricted, settled.append)):
        until(lambda: settled == [outcome])
    assert restricted.queue_state() == (0, 1, 0)
    letters = DeadLetters(restricted)
    assert [each.body for each in letters.first()[1]] == [b"malformed"]
    assert len(letters.replay()) == 1
    assert restricted.queue_state() == (1, 0, 0)
    with (
        pytest.raises(errors.NoAccess, match=r"ACCESS_REFUSED - .*access to queue 'other'"),
        Broker(limited, "other").connected(),
    ):
        pass


def test_errors_of_the_broker_match_the_reference(host: str, broker: Broker) -> None:
    parts = urllib.parse.urlsplit(host)
    elsewhere = parts._replace(path="/nowhere").geturl()
    wrong_user = parts._replace(netloc=f"unknown:secret@{parts.netloc.rpartition('@')[2]}").geturl()
    down = parts._replace(netloc="127.0.0.1:1").geturl()
    with broker.connected() as connection:
        broker.queue(connection.default_channel).delete()
        other = kombu.Queue(broker.queue.name, durable=False)
        other(connection.default_channel).declare()
    for url, message in (
        (elsewhere, "NOT_ALLOWED - vhost nowhere not found"),
        (wrong_user, "ACCESS_REFUSED - Login was refused"),
        (down, "Connection refused"),
        (host, "PRECONDITION_FAILED - inequivalent arg"),
    ):
        with (
            pytest.raises(errors.NoAccess, match=message),
            Broker(url, broker.queue.name).connected(),
        ):
            pass
        assert re.sub(" nowhere ", " … ", message) in MESSAGES.read_text()
    with kombu.Connection(host) as connection:
        other(connection.default_channel).delete()
