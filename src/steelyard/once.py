"""What is said once."""

import collections
import threading


class Once:
    """True the first time it is asked about a key; remembers the last ``size`` keys."""

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._seen: collections.OrderedDict[object, None] = collections.OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, key: object) -> bool:
        with self._lock:
            first = key not in self._seen
            self._seen[key] = None
            self._seen.move_to_end(key)
            if len(self._seen) > self._size:
                self._seen.popitem(last=False)
            return first
