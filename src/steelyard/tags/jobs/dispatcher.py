"""The dispatcher, which applies outcomes of jobs from a broker one by one."""

import collections
import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import kombu
from oslo_log import log as logging

from steelyard import errors
from steelyard.tags.jobs import messages
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.jobs.loops import Pauses, Stop
from steelyard.tags.jobs.observers import DispatcherObserver, Handled
from steelyard.tags.names import DEFAULT_PREFIXES, Prefixes
from steelyard.tags.states.values import Outcome

LOG = logging.getLogger(__name__)

# Seconds to wait for a message between checks of the stop flag.
_PATIENCE = 0.5
_FIRST_PAUSE = 0.5


class Dispatcher:
    """A consumer of outcomes that acknowledges each one only after applying it.

    So an outcome can be applied twice, but none is lost. While the database or the broker fails,
    all prefetched messages go back to the queue, and the dispatcher retries after a pause.
    Malformed messages become dead letters, with the reason.
    """

    def __init__(
        self,
        broker: Broker,
        apply: Callable[[Outcome], None],
        prefixes: Prefixes = DEFAULT_PREFIXES,
        prefetch: int = 100,
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        self._broker = broker
        self._apply = apply
        self._prefixes = prefixes
        self._prefetch = prefetch
        self._pauses = Pauses(first_pause)
        self.observer = DispatcherObserver()

    def run(self, stop: Stop) -> None:
        """Dispatch outcomes until stopped, but finish the current message first."""
        while not stop.is_set():
            try:
                self._dispatch(stop)
            except errors.SteelyardError as error:
                pause = self._pauses.next()
                LOG.warning("Cannot apply outcomes; retrying in %.1f seconds: %s", pause, error)
                stop.wait(pause)
            except Exception:  # outcomes would pile up if the process exited, so it retries
                LOG.exception("Cannot apply outcomes; retrying soon")
                stop.wait(self._pauses.next())

    def _dispatch(self, stop: Stop) -> None:
        """Dispatch outcomes until stopped, or until the broker or the database fails."""
        inbox: collections.deque[Any] = collections.deque()
        with self._broker.connected() as connection:
            channel = connection.channel()
            channel.auto_decode = False  # bodies stay bytes, whatever their content type
            consumer = kombu.Consumer(
                channel,
                [self._broker.queue],
                on_message=inbox.append,
                prefetch_count=self._prefetch,
                auto_declare=False,
            )
            with _requeued(inbox), consumer:
                LOG.info("Receiving outcomes from '%s'", self._broker)
                while not stop.is_set():
                    _await(connection)
                    while inbox and not stop.is_set():
                        self._handle(channel, inbox[0])
                        inbox.popleft()
                        self._pauses.reset()

    def _handle(self, channel: Any, message: Any) -> None:
        result = Handled.DEAD_LETTER
        try:
            outcome = messages.parse(message.body, self._prefixes)
            if outcome is not None:
                self._apply(outcome)
            result = Handled.IGNORED if outcome is None else Handled.APPLIED
        except (errors.InvalidMessage, errors.CannotBeKept) as error:
            LOG.warning("Moved a message to the dead letters: %s", error)
            self._broker.dead_letter(channel, message.body, str(error))
        except errors.ServiceError:  # the database or the backend fails, so this is retried
            self.observer.handled(Handled.RETRIED)
            raise
        except Exception as error:  # one bad message must not block all later ones
            LOG.exception("Moved a message to the dead letters: %.200r", message.body)
            self._broker.dead_letter(
                channel, message.body, f"{type(error).__name__}: {error!s:.500}"
            )
        message.ack()
        self.observer.handled(result)


@contextlib.contextmanager
def _requeued(messages_left: Iterable[Any]) -> Iterator[None]:
    """Requeue the messages that are left at the end of the block.

    Most brokers do so when the connection ends, but not the one within this process.
    """
    try:
        yield
    finally:
        for message in messages_left:
            message.requeue()


def _await(connection: Any) -> None:
    """Wait a moment for messages, and check that the connection is alive."""
    with contextlib.suppress(TimeoutError):
        connection.drain_events(timeout=_PATIENCE)
    connection.heartbeat_check()
