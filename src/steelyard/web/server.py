"""The web server of the serving commands."""

import contextlib
import resource
import socket
import threading
from collections.abc import Iterator
from typing import Any
from wsgiref.types import WSGIApplication

from oslo_log import log as logging
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer, create_server

# The most connections. waitress reads a whole request before it gives it to a thread, so slow
# clients occupy connections but no threads; its default of 100 is too low for that.
_CONNECTIONS = 800
# Open files for everything else: databases, the backend, logs, libraries. While accept() fails
# because no file descriptor is free, waitress retries at once and logs a traceback each time.
_OTHER_FILES = 64
# Seconds until an idle connection, or one with an incomplete request, is closed; and seconds
# between checks for such connections.
_PATIENCE = 30
_CHECK_EVERY = 5
# Limits for monitoring: bytes of a body, connections, and seconds for answers at the end.
_NO_BODY = 1024
_FEW_CONNECTIONS = 64
_SHORT = 1


def serve(application: WSGIApplication, listener: socket.socket, most_sent: int) -> None:
    """Serve the application until interrupted.

    ``most_sent`` is the greatest size of a request's body in bytes.
    """
    server = buffering_server(
        application, listener, max_request_body_size=most_sent, connection_limit=connections()
    )
    server.run()
    server.close()


@contextlib.contextmanager
def serving(application: WSGIApplication, listener: socket.socket) -> Iterator[None]:
    """Serve an application without request bodies in a thread, for the few clients of monitoring.

    At the end of the block, requests that are still being handled are waited for only a moment.
    """
    sockets: dict[int, Any] = {}
    server = buffering_server(
        application,
        listener,
        sockets,
        max_request_body_size=_NO_BODY,
        connection_limit=_FEW_CONNECTIONS,
    )
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            wasyncore.loop(map=sockets, use_poll=True, count=1)

    thread = threading.Thread(target=run, name="monitoring", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        server.pull_trigger()  # wakes the thread
        thread.join()
        server.task_dispatcher.shutdown(timeout=_SHORT)
        wasyncore.close_all(sockets, ignore_all=True)


def buffering_server(
    application: WSGIApplication,
    listener: socket.socket,
    sockets: dict[int, Any] | None = None,
    **adjustments: Any,
) -> BaseWSGIServer:
    """Return a server that reads each request completely before it gives it to a thread.

    ``sockets`` gets its sockets, for a loop of the caller; the others are options of waitress.
    """
    # waitress would warn of every request that waits for a thread.
    logging.getLogger("waitress.queue").logger.setLevel("ERROR")
    server = create_server(
        application,
        map=sockets,
        sockets=[listener],
        ident=None,
        channel_timeout=_PATIENCE,
        cleanup_interval=_CHECK_EVERY,
        asyncore_use_poll=True,  # select() fails at file descriptors above 1023
        **adjustments,
    )
    assert isinstance(server, BaseWSGIServer)  # noqa: S101  (for one socket)
    server.channel_class = BufferedConnection
    return server


class BufferedConnection(HTTPChannel):
    """A connection that counts as idle from the beginning of a request until it is complete.

    waitress counts from the last byte, so a client that sends a byte now and then could occupy the
    connection for ever.
    """

    _since: float | None = None
    _ending = False

    @property
    def is_answering(self) -> bool:
        """Whether a complete request is being handled, or its answer being sent."""
        return bool(self.requests or self.total_outbufs_len)

    def end(self) -> None:
        """Read no more requests."""
        self._ending = True

    def readable(self) -> bool:
        return not self._ending and bool(super().readable())

    def received(self, data: bytes) -> bool:
        # waitress has just set last_activity to the present time.
        self._since = self.last_activity = self._since or self.last_activity
        return bool(super().received(data))

    def service(self) -> None:
        self._since = None
        super().service()


def connections() -> int:
    """Return how many connections to accept, after raising the limit of open files if possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return _CONNECTIONS
    return min(_CONNECTIONS, soft - min(_OTHER_FILES, soft // 2))
