"""Loops, their stop flags and their pauses."""

import os
import signal
import threading
import time
from typing import Any

from steelyard import errors
from steelyard.tags.jobs.loops import Loop, Pauses, Stop, stopped_by


def test_pauses_double_up_to_limit_until_reset() -> None:
    pauses = Pauses(1.0, longest=5.0)
    for whole in (1.0, 2.0, 4.0, 5.0, 5.0):
        assert whole / 2 <= pauses.next() <= whole
    pauses.reset()
    assert pauses.next() <= 1.0


def test_first_pause_may_exceed_the_limit() -> None:
    pauses = Pauses(60.0, longest=5.0)
    assert min(pauses.next() for _ in range(5)) >= 30.0


def test_signal_ends_wait_and_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    with stopped_by(signal.SIGUSR1) as stop:
        assert not stop.wait(0.01)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        began = time.monotonic()
        assert stop.wait(60)
        assert time.monotonic() - began < 30
        assert stop.is_set()
    assert signal.getsignal(signal.SIGUSR1) == before


def test_loop_continues_after_any_error(caplog: Any) -> None:
    asked = threading.Semaphore(0)
    failures = [ZeroDivisionError("odd"), errors.ServiceError("not now"), None, None]

    def work() -> None:
        failure = failures.pop(0) if failures else None
        asked.release()
        if failure:
            raise failure

    with Loop(work, 0.01, "work failed").in_background():
        for _ in range(5):
            assert asked.acquire(timeout=20)
    assert "ZeroDivisionError: odd" in caplog.text
    assert "work failed: not now" in caplog.text


def test_loop_pauses_grow_while_work_fails(caplog: Any) -> None:
    class Noted(Stop):
        def __init__(self) -> None:
            super().__init__()
            self.pauses: list[float] = []

        def wait(self, seconds: float) -> bool:
            self.pauses.append(seconds)
            return len(self.pauses) > 9

    def work() -> None:
        if len(stop.pauses) < 8:
            raise errors.ServiceError("no")

    stop = Noted()
    Loop(work, 2.0, "failed").run(stop)
    first, *failing, last, _ = stop.pauses
    assert (first, last) == (2.0, 2.0)
    for pause, whole in zip(failing, (4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0), strict=True):
        assert whole / 2 <= pause <= whole
