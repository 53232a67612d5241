"""A scheduler over a cloud file that is reloaded after a change."""

import os
import threading

from oslo_config import cfg

from steelyard import errors
from steelyard.cloud import Cloud
from steelyard.scheduler import FilterScheduler

_Stamp = tuple[int, int, int]


class WatchedCloud:
    """A scheduler over the current content of a cloud file.

    The constructor raises InvalidCloud if the file cannot be loaded. Threads may share an object.
    """

    def __init__(self, path: str, conf: cfg.ConfigOpts | None = None) -> None:
        self._path = path
        self._conf = conf
        self._lock = threading.Lock()
        self._stamp: _Stamp | None = None
        self._found: FilterScheduler | errors.InvalidCloud
        self.scheduler()

    def scheduler(self) -> FilterScheduler:
        """Return the current scheduler. Raises InvalidCloud while the file cannot be loaded."""
        with self._lock:
            stamp = self._current_stamp()
            if stamp != self._stamp:
                # The stamp is taken before reading, so a change meanwhile is detected by the next
                # call.
                self._found = self._read()
                self._stamp = stamp
            found = self._found
        if isinstance(found, errors.InvalidCloud):
            raise found.with_traceback(None)  # repeated raises would lengthen the traceback
        return found

    def _current_stamp(self) -> _Stamp:
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise errors.InvalidCloud(str(error.strerror), self._path) from error
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> FilterScheduler | errors.InvalidCloud:
        """Return the scheduler, or the error about the file."""
        try:
            return FilterScheduler(Cloud.load(self._path), self._conf)
        except errors.InvalidCloud as error:
            return error
