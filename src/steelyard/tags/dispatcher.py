"""Outcomes of jobs as they come from a broker, one by one, and are settled."""

import collections
import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import kombu
from oslo_log import log as logging

from steelyard import errors
from steelyard.loops import Pauses, Stop
from steelyard.tags import messages
from steelyard.tags.broker import Broker
from steelyard.tags.names import DEFAULT_PREFIXES, Prefixes
from steelyard.tags.states import Outcome

LOG = logging.getLogger(__name__)

# Seconds without a message after which it looks whether it is to stop.
_PATIENCE = 0.5
_FIRST_PAUSE = 0.5


class Dispatcher:
    """Has each outcome settled, and only then takes it off the queue.

    So an outcome can be settled twice, and none is lost. When the database cannot settle it, or the
    broker is not there, all that has been sent ahead goes back to the queue, and after a pause it
    begins anew. What is malformed is put aside, with the reason.
    """

    def __init__(
        self,
        broker: Broker,
        settle: Callable[[Outcome], None],
        prefixes: Prefixes = DEFAULT_PREFIXES,
        prefetch: int = 100,
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        self._broker = broker
        self._settle = settle
        self._prefixes = prefixes
        self._prefetch = prefetch
        self._pauses = Pauses(first_pause)

    def run(self, stop: Stop) -> None:
        """Until it is stopped; then it finishes the message that it is at."""
        while not stop.is_set():
            try:
                self._dispatch(stop)
            except errors.SteelyardError as error:
                pause = self._pauses.next()
                LOG.warning("Outcomes wait; in %.1f seconds they are tried again: %s", pause, error)
                stop.wait(pause)
            except Exception:  # it is the process that all outcomes wait for: it goes on
                LOG.exception("Outcomes wait; they are tried again soon")
                stop.wait(self._pauses.next())

    def _dispatch(self, stop: Stop) -> None:
        """As long as both the broker and the database are there."""
        inbox: collections.deque[Any] = collections.deque()
        with self._broker.connected() as connection:
            channel = connection.channel()
            channel.auto_decode = False  # whatever a message says that it is, it is bytes
            consumer = kombu.Consumer(
                channel,
                [self._broker.queue],
                on_message=inbox.append,
                prefetch_count=self._prefetch,
                auto_declare=False,
            )
            with _given_back(inbox), consumer:
                LOG.info("Outcomes come from %s", self._broker)
                while not stop.is_set():
                    _await(connection)
                    while inbox and not stop.is_set():
                        self._handle(channel, inbox[0])
                        inbox.popleft()
                        self._pauses.begin_anew()

    def _handle(self, channel: Any, message: Any) -> None:
        try:
            outcome = messages.parse(message.body, self._prefixes)
            if outcome is not None:
                self._settle(outcome)
        except (errors.InvalidMessage, errors.CannotBeKept) as error:
            LOG.warning("A message is put aside: %s", error)
            self._broker.put_aside(channel, message.body, str(error))
        except errors.ServiceError:  # the database is in trouble, and that ends some time
            raise
        except Exception as error:  # a fault with this one must not stop all that come after it
            LOG.exception("A message is put aside: %.200r", message.body)
            self._broker.put_aside(channel, message.body, f"{type(error).__name__}: {error!s:.500}")
        message.ack()


@contextlib.contextmanager
def _given_back(messages_left: Iterable[Any]) -> Iterator[None]:
    """What is left in the end goes back to the queue.

    Most brokers see to that when the connection ends; the one within this process does not.
    """
    try:
        yield
    finally:
        for message in messages_left:
            message.requeue()


def _await(connection: Any) -> None:
    """Takes in what comes next, or nothing if that takes long."""
    with contextlib.suppress(TimeoutError):
        connection.drain_events(timeout=_PATIENCE)
    connection.heartbeat_check()
