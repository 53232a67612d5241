"""Dead letters: the messages that a dispatcher could not apply, with their reasons."""

import contextlib
import dataclasses
import hashlib
from collections.abc import Container, Iterator
from typing import Any

import kombu

from steelyard.tags.jobs.broker import PERSISTENT, REASON, Broker

# Hexadecimal digits of the ID of a message without one; another program published it.
_DIGITS = 12


@dataclasses.dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message in the queue of dead letters.

    ``reason`` and ``since``, when the dispatcher moved it there, are None if another program
    published the message. Then the ID depends on the body, and equal messages have the same one.
    """

    id: str
    since: float | None
    reason: str | None
    body: bytes


class DeadLetters:
    """The dead letters of a broker.

    Messages that a call does not remove return to their positions in the queue, also if the process
    is killed. Until then, other processes do not see them.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def queue(self) -> str:
        """The name of the queue of dead letters."""
        return str(self._broker.dead.name)

    def first(self, most: int | None = None) -> tuple[int, list[DeadLetter]]:
        """Return the number of dead letters, and the oldest ones, at most ``most``."""
        with self._taking() as taken:
            return taken.total, list(taken.letters(most))

    def replay(self, wanted: Container[str] | None = None) -> list[str]:
        """Return the dead letters with the wanted IDs to the queue of outcomes; None means all.

        Returns their IDs. A message is removed after the broker has confirmed its copy. So an
        interruption can leave a message in both queues, but loses none.
        """
        done = []
        with self._taking() as taken:
            producer = kombu.Producer(taken.channel)
            for letter in taken.letters():
                if wanted is None or letter.id in wanted:
                    producer.publish(
                        letter.body,
                        routing_key=self._broker.queue.name,
                        content_type="application/json",
                        content_encoding="binary",
                        delivery_mode=PERSISTENT,
                    )
                    taken.remove_last()
                    done.append(letter.id)
        return done

    def drop(self, wanted: Container[str]) -> list[str]:
        """Delete the dead letters with the wanted IDs, and return their IDs."""
        done = []
        with self._taking() as taken:
            for letter in taken.letters():
                if letter.id in wanted:
                    taken.remove_last()
                    done.append(letter.id)
        return done

    @contextlib.contextmanager
    def _taking(self) -> Iterator["_Taken"]:
        with self._broker.connected() as connection:
            channel = connection.channel()
            channel.auto_decode = False  # bodies stay bytes, whatever their content type
            taken = _Taken(channel, self._broker.dead(channel))
            try:
                yield taken
            finally:
                taken.requeue()


class _Taken:
    """The messages that are taken from a queue and not removed yet."""

    def __init__(self, channel: Any, queue: Any) -> None:
        self.channel = channel
        self.total = int(queue.queue_declare(passive=True).message_count)
        self._queue = queue
        self._left: list[Any] = []
        """The delivery tags: without the bodies, a long queue fits into memory."""

    def letters(self, most: int | None = None) -> Iterator[DeadLetter]:
        """Take the messages of the queue one by one, at most ``most``.

        Messages that arrive meanwhile are left out: dispatchers may return each replayed message at
        once.
        """
        for _ in range(self.total if most is None else min(most, self.total)):
            message = self._queue.get()
            if message is None:  # another process has taken it
                return
            self._left.append(message.delivery_tag)
            yield _letter(message)

    def remove_last(self) -> None:
        """Remove the message that was taken last."""
        self.channel.basic_ack(self._left.pop())

    def requeue(self) -> None:
        """Requeue the messages that are left, the oldest one first."""
        for tag in self._left:
            self.channel.basic_reject(tag, requeue=True)


def _letter(message: Any) -> DeadLetter:
    body = message.body if isinstance(message.body, bytes) else message.body.encode()
    since = message.properties.get("timestamp")
    reason = (message.headers or {}).get(REASON)
    return DeadLetter(
        str(message.properties.get("message_id") or hashlib.sha256(body).hexdigest()[:_DIGITS]),
        float(since) if isinstance(since, int) else None,
        None if reason is None else str(reason),
        body,
    )
