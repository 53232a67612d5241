"""The state of the database and the broker, as monitoring sees it."""

import dataclasses
import threading
import time
from typing import TYPE_CHECKING

from steelyard import errors
from steelyard.tags.database import backlog, watched
from steelyard.tags.database.backlog import Backlog
from steelyard.tags.database.store import TagStore
from steelyard.tags.database.watched import Watched
from steelyard.tags.jobs.loops import Clock

if TYPE_CHECKING:
    from steelyard.tags.jobs.broker import Broker, QueueState

# Seconds for which an answer of the broker is cached. Callers of the health need no identity, and
# an unreachable broker would occupy a thread for seconds on each call.
_REMEMBERED_FOR = 5.0


class Vitals:
    """The state of the database of tags and of the broker, if there is one.

    Its methods raise the error of the system that failed.
    """

    def __init__(
        self, store: TagStore, broker: "Broker | None" = None, clock: Clock = time.monotonic
    ) -> None:
        self._store = store
        self._asked = None if broker is None else _Asked(broker, clock)

    @property
    def has_broker(self) -> bool:
        """Whether a broker is configured."""
        return self._asked is not None

    def check_database(self) -> None:
        """Raise an error unless the database is reachable and its tables are up to date."""
        self._store.require_tables()

    def check_broker(self) -> None:
        """Raise an error unless the broker accepts connections. Without a broker, do nothing."""
        self.queues()

    def backlog(self) -> Backlog:
        """Return the pending operations as a whole."""
        return self._store.reading(backlog.read)

    def watched(self) -> Watched:
        """Return the progress of the watch."""
        return self._store.reading(watched.read)

    def queues(self) -> "QueueState | None":
        """Return the state of the broker's queues, at most some seconds old.

        None without a broker.
        """
        return None if self._asked is None else self._asked.queue_state()


@dataclasses.dataclass(frozen=True, slots=True)
class _Answer:
    state: "QueueState | errors.SteelyardError"
    until: float


class _Asked:
    """The last answer of the broker. Only one thread at a time asks the broker."""

    def __init__(self, broker: "Broker", clock: Clock) -> None:
        self._broker = broker
        self._clock = clock
        self._asking = threading.Lock()
        self._last: _Answer | None = None

    def queue_state(self) -> "QueueState":
        last = self._last
        # While one thread asks, the others get the last answer. They wait only for the first one.
        if (last is None or last.until <= self._clock()) and self._asking.acquire(
            blocking=last is None
        ):
            try:
                if self._last is last:
                    self._last = _Answer(self._ask(), self._clock() + _REMEMBERED_FOR)
            finally:
                self._asking.release()
            last = self._last
        assert last is not None  # noqa: S101  (the first answer was waited for)
        if isinstance(last.state, errors.SteelyardError):
            raise last.state
        return last.state

    def _ask(self) -> "QueueState | errors.SteelyardError":
        try:
            return self._broker.queue_state()
        except errors.SteelyardError as error:
            return error
