"""A test for the first occurrence of a key."""

import collections
import threading


class Once:
    """A callable that returns True the first time it is called with a key.

    It remembers the last ``size`` keys; a key that it has forgotten counts as new. Threads may
    share it.
    """

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._seen: collections.OrderedDict[object, None] = collections.OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, key: object) -> bool:
        """Return whether the key is new, and remember it."""
        with self._lock:
            first = key not in self._seen
            self._seen[key] = None
            self._seen.move_to_end(key)
            if len(self._seen) > self._size:
                self._seen.popitem(last=False)
            return first
