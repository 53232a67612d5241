"""The broker that outcomes of jobs come through: AMQP, by kombu."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import kombu
import kombu.exceptions

from steelyard import errors
from steelyard.tags import messages
from steelyard.tags.states import Outcome

EMBEDDED = "memory://"
"""A broker within this process, for trying out."""

REASON = "steelyard-reason"
"""The header of a message that has been put aside, which says why."""

_PERSISTENT = 2
_CONNECT_TIMEOUT = 5.0
# Of what has been cut off from us we hear nothing; we do not wait for ever.
_ANSWER_TIMEOUT = 20
_HEARTBEAT = 60
# The one within this process is looked at this often.
_LOOK = 0.02


class Broker:
    """A queue of outcomes at a broker, and beside it one for what nobody can read.

    Both outlive the broker, and so does what is in them. Messages go to the queue directly; to have
    it filled by an exchange, bind it to that at the broker.
    """

    def __init__(self, url: str = EMBEDDED, queue: str = "steelyard.tags") -> None:
        self._url = url
        self.queue = kombu.Queue(queue, durable=True)
        self.dead = kombu.Queue(f"{queue}.dead", durable=True)

    def __str__(self) -> str:
        """Where it is, without a password."""
        return str(kombu.Connection(self._url).as_uri())

    @contextlib.contextmanager
    def connected(self) -> Iterator[kombu.Connection]:
        """A connection to it, where the queues are; NoAccess for whatever goes wrong with that."""
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
            yield connection
        except failures as error:
            raise errors.NoAccess(f"the broker {self} cannot do it: {_said(error)}") from error
        finally:
            connection.release()

    @contextlib.contextmanager
    def publishing(self) -> Iterator[Callable[[Outcome], None]]:
        """What publishes an outcome; it returns when the broker has it for good."""
        with self.connected() as connection:
            producer = kombu.Producer(connection.default_channel)

            def publish(outcome: Outcome) -> None:
                producer.publish(
                    messages.write(outcome).encode(),
                    routing_key=self.queue.name,
                    content_type="application/json",
                    content_encoding="utf-8",
                    delivery_mode=_PERSISTENT,
                )

            yield publish

    def put_aside(self, channel: Any, body: bytes | str, why: str) -> None:
        """Keeps a message, as it is, beside the queue."""
        kombu.Producer(channel).publish(
            body.encode(errors="surrogatepass") if isinstance(body, str) else body,
            routing_key=self.dead.name,
            content_type="application/octet-stream",
            content_encoding="binary",
            headers={REASON: why},
            delivery_mode=_PERSISTENT,
        )


def _settings(url: str) -> dict[str, Any]:
    if url.startswith(EMBEDDED):
        return {"transport_options": {"polling_interval": _LOOK}}
    # With the name of the host, the certificate must be for that, and from whom this host trusts.
    tls = {"ssl": {"server_hostname": None}} if url.startswith("amqps:") else {}
    options = {
        "confirm_publish": True,
        "read_timeout": _ANSWER_TIMEOUT,
        "write_timeout": _ANSWER_TIMEOUT,
    }
    return {"transport_options": options, **tls}


def _said(error: BaseException) -> str:
    """What the library says, in one line; some of its errors say nothing."""
    return " ".join(str(error).split()) or type(error).__name__
