"""Queues of a broker, with their messages, dead letters and dispatchers."""

import collections
import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import kombu

from steelyard import errors
from steelyard.tags.jobs.broker import EMBEDDED, REASON, Broker
from steelyard.tags.jobs.dispatcher import Dispatcher
from steelyard.tags.jobs.loops import Stop

PATIENCE = 30.0


@contextlib.contextmanager
def own_queue(url: str = EMBEDDED) -> Iterator[Broker]:
    """Yield a new queue at the broker, and delete it after the block."""
    broker = Broker(url, f"steelyard.test.{uuid.uuid4().hex}")
    try:
        yield broker
    finally:
        with broker.connected() as connection:
            for queue in (broker.queue, broker.dead):
                queue(connection.default_channel).delete()


def send(broker: Broker, *bodies: bytes, **properties: Any) -> None:
    """Send messages to the queue, as any program may."""
    with broker.connected() as connection:
        producer = kombu.Producer(connection.default_channel)
        for body in bodies:
            producer.publish(
                body,
                routing_key=broker.queue.name,
                **{"content_type": "text/plain", "content_encoding": "binary", **properties},
            )


def publish_to(broker: Broker, exchange: str, routing_key: str, *bodies: bytes) -> None:
    """Publish messages to a topic exchange as eventd does, which declares it, too."""
    with broker.connected() as connection:
        topic = kombu.Exchange(exchange, type="topic", durable=True)
        producer = kombu.Producer(connection.default_channel, exchange=topic)
        for body in bodies:
            producer.publish(
                body,
                routing_key=routing_key,
                content_type="application/octet-stream",
                content_encoding="binary",
            )


def send_surely(broker: Broker, bodies: Iterable[bytes]) -> None:
    """Send each message until the broker accepts it; some may arrive twice."""
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
    """Return the number of messages in the queue."""
    with broker.connected() as connection:
        return int(queue(connection.default_channel).queue_declare(passive=True).message_count)


def dead_letters(broker: Broker) -> list[tuple[bytes, str]]:
    """Return the dead letters with their reasons, and remove them from the queue."""
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
    """Run the dispatcher in a thread during the block."""
    stop = stop or Stop()
    thread = threading.Thread(target=dispatcher.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def drain(broker: Broker, dispatcher: Dispatcher) -> None:
    """Run the dispatcher until it has handled all messages of the queue.

    The dispatcher takes messages before it handles them, and requeues those that are left when it
    stops. So the queue is counted again afterwards.
    """
    while count(broker, broker.queue):
        with dispatching(dispatcher):
            until(lambda: count(broker, broker.queue) == 0)


def until(happened: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait until the condition is true; fail at the timeout."""
    deadline = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < deadline, "timeout"
        time.sleep(0.02)
