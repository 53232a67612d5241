"""A pause of Python's garbage collection while many objects are made and kept."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Pause the collection in the block, unless it is off already.

    Without a pause, each collection visits all objects again, and finds no garbage among them.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
