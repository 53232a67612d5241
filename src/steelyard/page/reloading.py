"""A cloud file that is reloaded after a change."""

import datetime
import os
import threading

from oslo_config import cfg

from steelyard import errors
from steelyard.cloud import Cloud
from steelyard.page.served_cloud import ServedCloud
from steelyard.scheduler import FilterScheduler

_Stamp = tuple[int, int, int]


class WatchedCloud:
    """The current content of a cloud file.

    The constructor raises InvalidCloud if the file cannot be loaded. Threads may share an object.
    """

    def __init__(self, path: str, conf: cfg.ConfigOpts | None = None) -> None:
        self._path = path
        self._conf = conf
        self._lock = threading.Lock()
        self._stamp: _Stamp | None = None
        self._found: ServedCloud | errors.InvalidCloud
        self.current()

    def current(self) -> ServedCloud:
        """Return the current cloud. Raises InvalidCloud while the file cannot be loaded."""
        with self._lock:
            stamp = self._current_stamp()
            if stamp != self._stamp:
                # The stamp is taken before reading, so a change meanwhile is detected by the next
                # call.
                self._found = self._read(modified_at(stamp[0]))
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

    def _read(self, modified: datetime.datetime) -> ServedCloud | errors.InvalidCloud:
        """Return the cloud, or the error about the file."""
        try:
            return ServedCloud(FilterScheduler(Cloud.load(self._path), self._conf), modified)
        except errors.InvalidCloud as error:
            return error


def modified_at(nanoseconds: int) -> datetime.datetime:
    """Return the time of a file's modification, in UTC and in whole seconds."""
    return datetime.datetime.fromtimestamp(nanoseconds // 10**9, datetime.UTC)
