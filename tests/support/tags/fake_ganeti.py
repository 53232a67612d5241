"""A server that answers as Ganeti's remote API does, and fails as Ganeti and networks do."""

import contextlib
import dataclasses
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import trustme
from oslo_config import cfg

from steelyard import conf as options
from steelyard.tags.backends.ganeti import GanetiBackend

CLOSED, RESET, SILENT, TRICKLING = "closed", "reset", "silent", "trickling"
CLUSTER = "cluster.example.org"
SECRET = "hunter2"

Answer = Any
"""A status and a body, or the name of a failure."""
MakeBackend = Callable[..., GanetiBackend]
"""A function that returns a backend for the server at a URL, with further options."""


@dataclasses.dataclass
class Asked:
    """A request that the server received."""

    method: str
    target: str
    headers: dict[str, str]
    body: Any

    @property
    def is_query(self) -> bool:
        return self.target.startswith("/2/query/") or self.target == "/2/info"


@dataclasses.dataclass
class Ganeti:
    """A server that answers queries from its fields, and other requests with a job number.

    The answers in ``to_queries`` and ``to_others`` come first, one for each request.
    """

    url: str = ""
    instances: dict[str, list[str]] = dataclasses.field(default_factory=lambda: {"vm": []})
    jobs: dict[int, str] = dataclasses.field(default_factory=dict)
    to_queries: list[Answer] = dataclasses.field(default_factory=list)
    to_others: list[Answer] = dataclasses.field(default_factory=list)
    asked: list[Asked] = dataclasses.field(default_factory=list)
    delay: float = 0.0
    """Seconds before each answer."""
    pause: Callable[[float], object] = time.sleep
    """The function that waits before an answer."""

    given_up: threading.Event = dataclasses.field(default_factory=threading.Event)

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        waiting = self.to_queries if asked.is_query else self.to_others
        if waiting:
            return waiting.pop(0)
        if asked.target == "/2/info":
            return (200, {"name": CLUSTER})
        if not asked.is_query:
            return (200, 42)
        if asked.target.endswith("instance") and asked.body["qfilter"] is None:
            return (200, {"data": [[[0, name]] for name in self.instances]})
        rows = self.rows(asked.target, list(filter_values(asked.body["qfilter"])))
        return (200, {"data": [[[0, value] for value in row] for row in rows]})

    def rows(self, target: str, asked_for: list[Any]) -> list[list[Any]]:
        if target.endswith("instance"):
            return [[name, tags] for name, tags in self.instances.items() if name in asked_for]
        return [[number, self.jobs.get(number)] for number in asked_for or self.jobs]

    @property
    def submitted(self) -> list[Asked]:
        return [each for each in self.asked if not each.is_query]


def filter_values(qfilter: Any) -> Iterator[Any]:
    """Yield the values that a filter compares with."""
    match qfilter:
        case ["=", _, value]:
            yield value
        case [_, *parts]:
            for part in parts:
                yield from filter_values(part)


def fail(handler: BaseHTTPRequestHandler, how: str, given_up: threading.Event) -> None:
    if how == SILENT:
        given_up.wait(10)
    elif how == TRICKLING:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        with contextlib.suppress(OSError):
            while not given_up.wait(0.1):
                handler.wfile.write(b" ")
    elif how == RESET:
        linger = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


@contextlib.contextmanager
def served(ganeti: Ganeti, certificate: trustme.LeafCert) -> Iterator[Ganeti]:
    """Run the server during the block, at its ``url``."""

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            asked = Asked(self.command, self.path, dict(self.headers), body)
            ganeti.pause(ganeti.delay)
            match ganeti.answer(asked):
                case int(status), content:
                    data = content if isinstance(content, bytes) else json.dumps(content).encode()
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    if 300 <= status < 400:
                        self.send_header("Location", "https://elsewhere.example.org/")
                    self.end_headers()
                    self.wfile.write(data)
                case how:
                    fail(self, how, ganeti.given_up)
            self.close_connection = True

        do_GET = do_PUT = do_POST = do_DELETE = handle_one

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 64

        def finish_request(self, request: Any, client_address: Any) -> None:
            with (
                contextlib.suppress(OSError),  # clients that reject the certificate disconnect
                context.wrap_socket(request, server_side=True) as wrapped,
            ):
                Handler(wrapped, client_address, self)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        ganeti.url = f"https://127.0.0.1:{server.server_port}"
        try:
            yield ganeti
        finally:
            ganeti.given_up.set()
            server.shutdown()
            thread.join()


def configuration(given: dict[str, Any]) -> cfg.ConfigOpts:
    """Return a configuration with these options of tags."""
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    options.register_tags(conf)
    for name, value in given.items():
        conf.set_override(name, value, group=options.TAGS_GROUP)
    return conf
