"""A worker of gunicorn that slow and idle clients cannot block."""

import os
import time
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from gunicorn.workers import base
from waitress import wasyncore

from steelyard import errors
from steelyard.web.server import BufferedConnection, buffering_server, connections

# The size limit of a request's body in bytes. Applications have lower limits of their own.
_MOST_SENT = 16 << 20
# Seconds between signs of life for gunicorn, and between checks for the last answers at the end.
_NOTIFY_EVERY = 1.0
_CHECK_EVERY = 0.1


class BufferingWorker(base.Worker):  # type: ignore[misc]
    """A worker whose threads handle only requests that were read completely.

    A thread of gunicorn's own worker reads the request that it handles, so as many slow clients as
    there are threads would stop the service. Here, waitress reads all requests in one loop. When
    the worker stops, it answers the requests that it has read. It has no TLS and no access log, and
    ignores ``max_requests``.
    """

    def init_process(self) -> None:
        if self.cfg.is_ssl:
            raise errors.BadRequest(
                f"{type(self).__name__} has no TLS: remove certfile and keyfile, and let the proxy "
                f"in front of gunicorn terminate TLS"
            )
        self._sockets: dict[int, Any] = {}
        self._servers: list[Any] = []
        super().init_process()

    def run(self) -> None:
        """Serve until gunicorn stops the worker or exits."""
        self._servers = [
            buffering_server(
                self._called,
                listener.sock,
                self._sockets,
                max_request_body_size=_MOST_SENT,
                connection_limit=connections(),
                threads=self.cfg.threads,
            )
            for listener in self.sockets
        ]
        while self.alive and self.ppid == os.getppid():
            self._loop(_NOTIFY_EVERY)
        self._finish()

    def handle_exit(self, sig: int, frame: Any) -> None:
        super().handle_exit(sig, frame)
        for server in self._servers:
            server.pull_trigger()  # wakes the loop

    def _called(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ["wsgi.multiprocess"] = self.cfg.workers > 1
        found: Iterable[bytes] = self.wsgi(environ, start_response)
        return found

    def _loop(self, timeout: float) -> None:
        self.notify()
        wasyncore.loop(timeout=timeout, map=self._sockets, use_poll=True, count=1)

    def _finish(self) -> None:
        """Answer the requests that are read, accept no others, and close all connections."""
        for server in self._servers:
            server.accepting = False
        opened = [each for each in self._sockets.values() if isinstance(each, BufferedConnection)]
        for connection in opened:
            connection.end()
        deadline = time.monotonic() + self.cfg.graceful_timeout
        while any(each.is_answering for each in opened) and time.monotonic() < deadline:
            self._loop(_CHECK_EVERY)
        wasyncore.close_all(self._sockets, ignore_all=True)
