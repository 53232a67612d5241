"""Brokers for tests, what is put into their queues, and what is in them."""

import collections
import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import kombu

from steelyard import errors
from steelyard.loops import Stop
from steelyard.tags.broker import EMBEDDED, REASON, Broker
from steelyard.tags.dispatcher import Dispatcher

PATIENCE = 30.0


@contextlib.contextmanager
def own_queue(url: str = EMBEDDED) -> Iterator[Broker]:
    """A queue of its own at the broker, which is deleted in the end."""
    broker = Broker(url, f"steelyard.test.{uuid.uuid4().hex}")
    try:
        yield broker
    finally:
        with broker.connected() as connection:
            for queue in (broker.queue, broker.dead):
                queue(connection.default_channel).delete()


def send(broker: Broker, *bodies: bytes, **properties: Any) -> None:
    """Puts messages into the queue, as somebody else might."""
    with broker.connected() as connection:
        producer = kombu.Producer(connection.default_channel)
        for body in bodies:
            producer.publish(
                body,
                routing_key=broker.queue.name,
                **{"content_type": "text/plain", "content_encoding": "binary", **properties},
            )


def send_surely(broker: Broker, bodies: Iterable[bytes]) -> None:
    """The same, again and again until the broker has each; perhaps some of them twice."""
    left = collections.deque(bodies)
    while left:
        with contextlib.suppress(errors.NoAccess), broker.connected() as connection:
            producer = kombu.Producer(connection.default_channel)
            while left:
                producer.publish(
                    left[0],
                    routing_key=broker.queue.name,
                    content_type="application/json",
                    content_encoding="binary",
                )
                left.popleft()


def count(broker: Broker, queue: kombu.Queue) -> int:
    """How many messages wait in it."""
    with broker.connected() as connection:
        return int(queue(connection.default_channel).queue_declare(passive=True).message_count)


def put_aside(broker: Broker) -> list[tuple[bytes, str]]:
    """What is in the queue of dead letters, and the reasons; it is there no more then."""
    found = []
    with broker.connected() as connection:
        queue = broker.dead(connection.default_channel)
        while (message := queue.get(no_ack=True)) is not None:
            body = message.body
            found.append(
                (body if isinstance(body, bytes) else body.encode(), message.headers[REASON])
            )
    return found


@contextlib.contextmanager
def dispatching(dispatcher: Dispatcher, stop: Stop | None = None) -> Iterator[None]:
    """It runs in a thread meanwhile."""
    stop = stop or Stop()
    thread = threading.Thread(target=dispatcher.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def until(happened: Callable[[], object], patience: float = PATIENCE) -> None:
    """Waits until it has."""
    deadline = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < deadline, "it has not happened"
        time.sleep(0.02)
