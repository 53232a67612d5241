"""What is done again and again, until somebody wants it to end."""

import contextlib
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

from oslo_log import log as logging

from steelyard import errors

LOG = logging.getLogger(__name__)

_LONGEST = 30.0
# A handler of a signal can only leave word: who waits looks this often whether there is any.
_SLICE = 0.2


class Stop:
    """Whether it is to end.

    A handler of a signal may set it, which of an Event it must not: it might interrupt one who
    holds the lock of that.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, seconds: float) -> bool:
        """Waits so long, or until it is set; whether it is."""
        deadline = time.monotonic() + seconds
        while not self._set and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _SLICE))
        return self._set


@contextlib.contextmanager
def stopped_by(*numbers: signal.Signals) -> Iterator[Stop]:
    """What these signals set meanwhile, instead of what they do otherwise."""
    stop = Stop()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Pauses:
    """The seconds before each new attempt: twice as many each time, up to a limit.

    Half of them are up to chance, so that those whom the same has stopped do not all come back at
    the same time.
    """

    def __init__(self, first: float, longest: float = _LONGEST) -> None:
        self._first = first
        self._longest = max(first, longest)
        self._next = first

    def begin_anew(self) -> None:
        """Once something has succeeded."""
        self._next = self._first

    def next(self) -> float:
        """The next of them."""
        pause = self._next
        self._next = min(2 * pause, self._longest)
        return pause * random.uniform(0.5, 1.0)


class Loop:
    """Does its work every so many seconds, whatever that raises; less often while it fails."""

    def __init__(self, work: Callable[[], object], interval: float, failure: str) -> None:
        self._work = work
        self._interval = interval
        self._failure = failure
        self._pauses = Pauses(2 * interval)

    def run(self, stop: Stop) -> None:
        """Until it is stopped; what it is at then is finished."""
        pause = self._interval
        while not stop.wait(pause):
            pause = self._interval if self._done() else self._pauses.next()

    @contextlib.contextmanager
    def in_background(self) -> Iterator[None]:
        """In a thread, meanwhile."""
        stop = self.begin()
        try:
            yield
        finally:
            stop.set()

    def begin(self) -> Stop:
        """In a thread, until it is stopped or the process ends."""
        stop = Stop()
        threading.Thread(target=self.run, args=(stop,), name="loop", daemon=True).start()
        return stop

    def _done(self) -> bool:
        try:
            self._work()
        except errors.SteelyardError as error:
            LOG.warning("%s: %s", self._failure, error)
        except Exception:  # a backend of somebody's can raise anything; it is tried again
            LOG.exception(self._failure)
        else:
            self._pauses.begin_anew()
            return True
        return False
