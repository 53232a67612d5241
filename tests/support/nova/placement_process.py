"""A real Placement over HTTP, in a process of its own.

Run as ``python placement_process.py DATABASE_URL HELD_WRITE``, with ``tests`` in PYTHONPATH. It
prints its port, and then each request before it answers. It answers the write of that number (0:
none) only when the client has closed the connection. It exits when its standard input is closed.
"""

import io
import select
import sys
import wsgiref.simple_server
from typing import Any

from oslo_config import cfg
from placement import conf as placement_conf
from placement import db_api, deploy

from support.nova.kept_connections import kept_connections


class Announced:
    """A WSGI application that prints each request and may hold one write."""

    def __init__(self, app: Any, held_write: int) -> None:
        self._app = app
        self._held_write = held_write
        self._writes = 0

    def __call__(self, environ: Any, start_response: Any) -> Any:
        stream = environ["wsgi.input"]
        environ["wsgi.input"] = io.BytesIO(stream.read(int(environ["CONTENT_LENGTH"] or 0)))
        print(environ["REQUEST_METHOD"], environ["PATH_INFO"], flush=True)  # noqa: T201
        self._writes += environ["REQUEST_METHOD"] != "GET"
        if environ["REQUEST_METHOD"] != "GET" and self._writes == self._held_write:
            stream.read()  # returns when the client closes the connection
        return self._app(environ, start_response)


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    """A request handler that does not log."""

    def log_message(self, *args: Any) -> None:
        pass


def main(database_url: str, held_write: str) -> None:
    """Serve until standard input is closed."""
    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    conf.set_override("auth_strategy", "noauth2", group="api")
    conf.set_override("connection", database_url, group="placement_database")
    conf([], default_config_files=[], default_config_dirs=[])
    db_api.configure(conf)
    with kept_connections():
        app = Announced(deploy.loadapp(conf), int(held_write))
    with wsgiref.simple_server.make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        print(server.server_port, flush=True)  # noqa: T201
        while server in select.select([server, sys.stdin], [], [])[0]:
            server.handle_request()


if __name__ == "__main__":
    main(*sys.argv[1:])
