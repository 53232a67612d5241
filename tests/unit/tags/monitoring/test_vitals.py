"""The cached answers of the broker."""

import threading
from typing import Any

import pytest

from steelyard import errors
from steelyard.tags import TagStore
from steelyard.tags.jobs.broker import Broker, QueueState
from steelyard.tags.monitoring.vitals import Vitals
from support.tags import queues


class Clock:
    """A clock whose time tests set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def vitals(broker: Broker | None, clock: Clock) -> Vitals:
    return Vitals(TagStore("sqlite://"), broker, clock)


def test_no_broker_passes_its_check() -> None:
    found = vitals(None, Clock())
    assert not found.has_broker
    assert found.queues() is None
    found.check_broker()


def test_state_of_queues_are_cached_for_seconds() -> None:
    clock = Clock()
    with queues.own_queue() as broker:
        found = vitals(broker, clock)
        assert found.queues() == QueueState(0, 0, 0)
        queues.send(broker, b"one")
        clock.now = 4.9
        assert found.queues() == QueueState(0, 0, 0)
        clock.now = 5.0
        assert found.queues() == QueueState(1, 0, 0)


def test_failure_of_the_broker_is_cached_for_seconds() -> None:
    clock = Clock()
    with queues.own_queue() as broker:
        down: Any = Broker("amqp://127.0.0.1:1/")
        found = vitals(down, clock)
        for _ in range(2):
            with pytest.raises(errors.NoAccess):
                found.check_broker()
            down.__dict__.update(broker.__dict__)  # the broker works again
        clock.now = 5.0
        found.check_broker()


def test_callers_get_the_last_answer_while_one_of_them_asks() -> None:
    clock = Clock()
    asked, go_on = threading.Event(), threading.Event()

    class Slow(Broker):
        """A broker whose second answer takes long."""

        def queue_state(self) -> QueueState:
            if clock.now:
                asked.set()
                assert go_on.wait(20)
            return super().queue_state()

    with queues.own_queue() as broker:
        slow = Slow(queue=broker.queue.name)
        found = vitals(slow, clock)
        assert found.queues() == QueueState(0, 0, 0)
        queues.send(broker, b"one")
        clock.now = 5.0
        answers: list[QueueState | None] = []
        thread = threading.Thread(target=lambda: answers.append(found.queues()))
        thread.start()
        assert asked.wait(20)
        assert found.queues() == QueueState(0, 0, 0)
        go_on.set()
        thread.join()
        assert answers == [QueueState(1, 0, 0)]
        assert found.queues() == QueueState(1, 0, 0)
