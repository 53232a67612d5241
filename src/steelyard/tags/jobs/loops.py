"""Repeated work: loops, the flags that stop them, pauses between attempts, and clocks."""

import contextlib
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

from oslo_log import log as logging

from steelyard import errors

LOG = logging.getLogger(__name__)

Clock = Callable[[], float]
"""A function such as ``time.monotonic``: it returns seconds, and never goes back."""

_LONGEST = 30.0
# Seconds between checks of the flag while waiting: a signal handler sets it, but wakes no thread.
_SLICE = 0.2


class Stop:
    """A flag that stops a loop.

    Signal handlers can set it. With a threading.Event, a handler could wait for ever: for the lock
    of the Event, while the thread that holds the lock is interrupted by the handler.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, seconds: float) -> bool:
        """Wait these seconds, or until the flag is set; return whether it is set."""
        deadline = time.monotonic() + seconds
        while not self._set and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _SLICE))
        return self._set


@contextlib.contextmanager
def stopped_by(*numbers: signal.Signals) -> Iterator[Stop]:
    """Yield a flag that these signals set during the block, instead of their usual effect."""
    stop = Stop()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Pauses:
    """The seconds before each new attempt, which double each time up to a limit.

    Each pause is shortened at random by up to half, so that processes that failed together do not
    retry together.
    """

    def __init__(self, first: float, longest: float = _LONGEST) -> None:
        self._first = first
        self._longest = max(first, longest)
        self._next = first

    def reset(self) -> None:
        """Restore the first pause, after an attempt has succeeded."""
        self._next = self._first

    def next(self) -> float:
        """Return the next pause in seconds."""
        pause = self._next
        self._next = min(2 * pause, self._longest)
        return pause * random.uniform(0.5, 1.0)


class Loop:
    """Work that is repeated at an interval, less often while it fails.

    Errors of the work are logged after the text ``failure``.
    """

    def __init__(self, work: Callable[[], object], interval: float, failure: str) -> None:
        self._work = work
        self._interval = interval
        self._failure = failure
        self._pauses = Pauses(2 * interval)

    def run(self, stop: Stop) -> None:
        """Repeat the work until stopped, but finish the current run first."""
        pause = self._interval
        while not stop.wait(pause):
            pause = self._interval if self._succeeds() else self._pauses.next()

    @contextlib.contextmanager
    def in_background(self) -> Iterator[None]:
        """Repeat the work in a daemon thread during the block.

        The current run may finish after the block.
        """
        stop = self.begin()
        try:
            yield
        finally:
            stop.set()

    def begin(self) -> Stop:
        """Repeat the work in a daemon thread, and return the flag that stops it."""
        stop = Stop()
        threading.Thread(target=self.run, args=(stop,), name="loop", daemon=True).start()
        return stop

    def _succeeds(self) -> bool:
        try:
            self._work()
        except errors.SteelyardError as error:
            LOG.warning("%s: %s", self._failure, error)
        except Exception:  # a third-party backend can raise anything
            LOG.exception(self._failure)
        else:
            self._pauses.reset()
            return True
        return False
