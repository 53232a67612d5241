"""A scheduler over a cloud file, which is read again when it has changed."""

import os
import threading

from oslo_config import cfg

from steelyard import errors
from steelyard.scheduler import Cloud, FilterScheduler

_Stamp = tuple[int, int, int]


class WatchedCloud:
    """The scheduler over the cloud as the file describes it now.

    InvalidCloud if it cannot be read to begin with. Threads may share it.
    """

    def __init__(self, path: str, conf: cfg.ConfigOpts | None = None) -> None:
        self._path = path
        self._conf = conf
        self._lock = threading.Lock()
        self._stamp: _Stamp | None = None
        self._found: FilterScheduler | str = ""
        self.scheduler()

    def scheduler(self) -> FilterScheduler:
        """The one for now; InvalidCloud while the file is not one that can be read."""
        with self._lock:
            stamp = self._look()
            if stamp != self._stamp:
                # What changes while it is read has another stamp the next time.
                self._found = self._read()
                self._stamp = stamp
            found = self._found
        if isinstance(found, str):
            raise errors.InvalidCloud(found)
        return found

    def _look(self) -> _Stamp:
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise errors.InvalidCloud(f"{self._path}: {error.strerror}") from error
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> FilterScheduler | str:
        """The scheduler, or what is wrong with the file."""
        try:
            return FilterScheduler(Cloud.load(self._path), self._conf)
        except errors.InvalidCloud as error:
            return str(error)
