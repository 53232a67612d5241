"""The deadline of a caller's request, which backends check before each request of their own.

A caller's request leads to several requests to the backend. Each has a timeout, but their sum has
none, so the client or a proxy could time out before the service.
"""

import contextlib
import contextvars
import math
import time
from collections.abc import Iterator

REQUEST_TIMEOUT = 90.0
"""Default for the seconds that all requests to the backend may take together."""

_deadline = contextvars.ContextVar("deadline", default=math.inf)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Set the deadline for the block; a block inside another one cannot extend the deadline."""
    token = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def left() -> float:
    """Return the seconds until the deadline; negative after it, infinity if there is none."""
    return _deadline.get() - time.monotonic()
