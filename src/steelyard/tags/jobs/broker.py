"""The message broker that delivers outcomes of jobs: AMQP, by kombu."""

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import kombu
import kombu.exceptions

from steelyard import errors
from steelyard.tags.jobs import messages
from steelyard.tags.states.values import Outcome

EMBEDDED = "memory://"
"""The URL of a broker within this process, for trials."""

REASON = "steelyard-reason"
"""The header of a dead letter with the reason why the message was rejected."""

PERSISTENT = 2
"""The delivery mode of messages that survive a restart of the broker."""

_CONNECT_TIMEOUT = 5.0
# Seconds to wait for an answer. Without a timeout, a broken network would block for ever.
_ANSWER_TIMEOUT = 20
_HEARTBEAT = 60
# Random bytes in the ID of a dead letter: operators type it.
_ID_BYTES = 6
# Seconds between polls of the broker within this process.
_POLL_EVERY = 0.02


class QueueState(NamedTuple):
    """The numbers of outcomes and dead letters that wait in the queues, and of dispatchers."""

    outcomes: int
    dead_letters: int
    dispatchers: int


class Broker:
    """A queue of outcomes at a broker, and a queue of dead letters for malformed messages.

    The queues and their messages survive a restart of the broker. Messages are published to the
    queue directly. If ``bound_to`` is the name of a topic exchange and a pattern for routing keys,
    the queue also receives matching messages of that exchange.
    """

    def __init__(
        self,
        url: str = EMBEDDED,
        queue: str = "steelyard.tags",
        bound_to: tuple[str, str] | None = None,
    ) -> None:
        self._url = url
        self._bound_to = bound_to
        self.queue = kombu.Queue(queue, durable=True)
        self.dead = kombu.Queue(f"{queue}.dead", durable=True)

    def __str__(self) -> str:
        """Return the URL of the broker without the password."""
        return str(kombu.Connection(self._url).as_uri())

    @contextlib.contextmanager
    def connected(self) -> Iterator[kombu.Connection]:
        """Yield a connection to the broker, after declaring the queues.

        Raises NoAccess for failures of the broker and of the connection, in the block too.
        """
        connection = kombu.Connection(
            self._url,
            connect_timeout=_CONNECT_TIMEOUT,
            heartbeat=_HEARTBEAT,
            **_settings(self._url),
        )
        failures = (
            *connection.connection_errors,
            *connection.channel_errors,
            *connection.recoverable_connection_errors,
            kombu.exceptions.OperationalError,
        )
        try:
            connection.ensure_connection(max_retries=0)
            for queue in (self.queue, self.dead):
                queue(connection.default_channel).declare()
            if self._bound_to is not None:
                self._bind(connection.default_channel, *self._bound_to)
            yield connection
        except failures as error:
            raise errors.NoAccess(f"the broker '{self}' failed: {_message(error)}") from error
        finally:
            connection.release()

    def _bind(self, channel: Any, name: str, pattern: str) -> None:
        """Bind the queue to the exchange, which is declared as snf-ganeti-eventd declares it."""
        exchange = kombu.Exchange(name, type="topic", durable=True)
        exchange(channel).declare()
        self.queue(channel).bind_to(exchange, routing_key=pattern)

    def queue_state(self) -> QueueState:
        """Return the state of the queues, without messages that a process is handling."""
        with self.connected() as connection:
            outcomes, dead = (
                queue(connection.default_channel).queue_declare(passive=True)
                for queue in (self.queue, self.dead)
            )
            return QueueState(
                int(outcomes.message_count), int(dead.message_count), int(outcomes.consumer_count)
            )

    @contextlib.contextmanager
    def publishing(self) -> Iterator[Callable[[Outcome], None]]:
        """Yield a function that publishes an outcome and waits for the broker's confirmation."""
        with self.connected() as connection:
            producer = kombu.Producer(connection.default_channel)

            def publish(outcome: Outcome) -> None:
                producer.publish(
                    messages.write(outcome).encode(),
                    routing_key=self.queue.name,
                    content_type="application/json",
                    content_encoding="utf-8",
                    delivery_mode=PERSISTENT,
                )

            yield publish

    def dead_letter(self, channel: Any, body: bytes | str, why: str) -> None:
        """Publish the message unchanged to the queue of dead letters, with the reason.

        It gets an ID and the time, too.
        """
        kombu.Producer(channel).publish(
            body.encode(errors="surrogatepass") if isinstance(body, str) else body,
            routing_key=self.dead.name,
            content_type="application/octet-stream",
            content_encoding="binary",
            headers={REASON: why},
            message_id=secrets.token_hex(_ID_BYTES),
            timestamp=int(time.time()),
            delivery_mode=PERSISTENT,
        )


def _settings(url: str) -> dict[str, Any]:
    if url.startswith(EMBEDDED):
        return {"transport_options": {"polling_interval": _POLL_EVERY}}
    # With None, kombu checks the certificate against the host name in the URL.
    tls = {"ssl": {"server_hostname": None}} if url.startswith("amqps:") else {}
    options = {
        "confirm_publish": True,
        "read_timeout": _ANSWER_TIMEOUT,
        "write_timeout": _ANSWER_TIMEOUT,
    }
    return {"transport_options": options, **tls}


def _message(error: BaseException) -> str:
    """Return the error's message on one line, or the error's name if it has none."""
    return " ".join(str(error).split()) or type(error).__name__
