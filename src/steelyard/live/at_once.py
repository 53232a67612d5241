"""Several requests that run at the same time."""

import collections
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

_AT_ONCE = 8

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")


def each_answered(ask: Callable[[ItemT], ValueT], items: Iterable[ItemT]) -> Generator[ValueT]:
    """Yield the results in the order of the items, with several requests running at once.

    The threads are daemons, so closing the generator early does not wait for running requests. The
    threads of an executor would be waited for at exit.
    """
    pending = [(item, concurrent.futures.Future[ValueT]()) for item in items]
    queue = collections.deque(pending)

    def work() -> None:
        while queue:
            with contextlib.suppress(IndexError):  # another thread has taken the last one
                _answer(ask, *queue.popleft())

    for _ in range(min(_AT_ONCE, len(pending))):
        threading.Thread(target=work, daemon=True).start()
    try:
        for _, answer in pending:
            yield answer.result()
    finally:
        queue.clear()


def started(load: Callable[[], ValueT]) -> concurrent.futures.Future[ValueT]:
    """Return the future result of the function, which runs in a thread of its own.

    The thread is a daemon, so an exit does not wait for it.
    """
    result = concurrent.futures.Future[ValueT]()
    threading.Thread(target=_answer, args=(lambda _: load(), None, result), daemon=True).start()
    return result


def _answer(
    ask: Callable[[ItemT], ValueT], item: ItemT, answer: concurrent.futures.Future[ValueT]
) -> None:
    try:
        answer.set_result(ask(item))
    except BaseException as error:  # noqa: BLE001  (answer.result() raises it)
        answer.set_exception(error)
