"""The findings about the broker of the tag service, with RabbitMQ."""

import pathlib
from collections.abc import Iterator

import pytest
from oslo_config import cfg

from steelyard.findings import Check
from steelyard.tags.doctor import examine
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.jobs.dispatcher import Dispatcher
from support.services import brokers
from support.tags import queues
from support.tags.queues import until


@pytest.fixture
def broker(host: str) -> Iterator[Broker]:
    with queues.own_queue(host) as broker:
        yield broker


def found(host: str, broker: Broker, folder: pathlib.Path) -> dict[Check, str]:
    """Return the messages about the broker, by their check."""
    path = folder / "tags.conf"
    path.touch(mode=0o600)
    path.write_text(
        f"[steelyard_tags]\nconnection = sqlite:///{folder}/tags.db\n"
        f"transport_url = {host}\nqueue = {broker.queue.name}\n"
    )
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
    return {each.check: each.message for each in examine(conf) if each.subject.name == "broker"}


def test_broker_without_dispatchers_is_a_warning(
    host: str, broker: Broker, tmp_path: pathlib.Path
) -> None:
    queues.send(broker, b"one", b"two")
    assert found(host, broker, tmp_path) == {
        Check.NO_DISPATCHER: f"no dispatcher receives from the queue '{broker.queue.name}', which "
        "has 2 outcomes"
    }


def test_dead_letters_are_a_warning(host: str, broker: Broker, tmp_path: pathlib.Path) -> None:
    with queues.dispatching(Dispatcher(broker, lambda _: None)):
        until(lambda: brokers.consumers(host, broker.queue.name) == 1)
        assert found(host, broker, tmp_path) == {}
        queues.send(broker, b"malformed")
        until(lambda: queues.count(broker, broker.dead) == 1)
        assert found(host, broker, tmp_path) == {
            Check.DEAD_LETTERS: f"1 message in the queue '{broker.dead.name}'"
        }
    assert queues.count(broker, broker.dead) == 1
