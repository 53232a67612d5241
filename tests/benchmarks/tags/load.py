"""Requests per second and latencies of the API of tags, beside idle and slow clients.

One worker of gunicorn with the threads of the unit serves the API over the backend in memory. Other
clients hold idle connections and connections with half a request meanwhile. The same worker serves
an application of Falcon that does nothing, for the ratio. The requests are GET of all tags of a
server, and PUT of a new tag, each on a server chosen at random. The clients send one request after
the other on a connection of their own; they run in the process of the benchmark.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import itertools
import os
import pathlib
import random
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import falcon
import sqlalchemy as sa

from benchmarks.tags.reconciliation import fill
from benchmarks.traits.sql import database
from steelyard.tags import TagStore
from support.repository import ROOT
from support.services import databases
from support.tags import units
from support.web.api_process import Served, under_gunicorn

SERVERS = [10_000, 100_000]
CLIENTS = [1, 16, 64]
SLOW = 200
SECONDS = 5.0
_HEAD = b"Host: 127.0.0.1\r\nX-Project-Id: p\r\nX-User-Id: u\r\n"
_PATIENCE = 120


class _Bare:
    """The least that an application does."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, server: str) -> None:
        resp.media = {"tags": [], "statuses": {}}

    def on_put(self, req: falcon.Request, resp: falcon.Response, server: str, tag: str) -> None:
        resp.status = falcon.HTTP_201


bare = falcon.App()
bare.add_route("/servers/{server}/tags", _Bare())
bare.add_route("/servers/{server}/tags/{tag:path}", _Bare())


@dataclasses.dataclass(frozen=True)
class Rate:
    """The requests per second, and latencies in milliseconds."""

    per_second: float
    median: float
    slowest: float
    """The latency that one in a hundred requests exceeds."""


@dataclasses.dataclass(frozen=True)
class Row:
    database: str
    servers: int
    request: str
    clients: int
    ours: Rate
    bare: Rate

    def __str__(self) -> str:
        ours, bare = self.ours, self.bare
        return (
            f"{self.database:>10} | {self.servers:7} | {self.request:7} | {self.clients:7} | "
            f"{ours.per_second:9.0f} | {ours.median:8.1f} | {ours.slowest:8.1f} | "
            f"{bare.per_second:9.0f} | {bare.median:8.1f} | {bare.slowest:8.1f} | "
            f"{bare.per_second / ours.per_second:5.1f}"
        )


HEADER = (
    f"{'database':>10} | {'servers':>7} | {'request':7} | {'clients':>7} | "
    f"{'ours/s':>9} | {'p50 ms':>8} | {'p99 ms':>8} | "
    f"{'bare/s':>9} | {'p50 ms':>8} | {'p99 ms':>8} | {'ratio':>5}"
)


def get(server: str, _number: int) -> bytes:
    return f"GET /servers/{server}/tags HTTP/1.1\r\n".encode()


def put(server: str, number: int) -> bytes:
    return f"PUT /servers/{server}/tags/tag-{number:x} HTTP/1.1\r\n".encode()


REQUESTS: dict[str, Callable[[str, int], bytes]] = {"GET": get, "PUT tag": put}


@contextlib.contextmanager
def serving(application: str, home: str) -> Iterator[Served]:
    """Serve the application with the worker and the threads of the unit, in one process."""
    unit = "steelyard-tags-api.service"
    words = units.command(unit, units.environment(unit))
    options: dict[str, object] = dict(zip(words[1:-1:2], words[2:-1:2], strict=True))
    environment = {
        "HOME": home,
        "PYTHONPATH": f"{ROOT / 'tests'}:{os.environ.get('PYTHONPATH', '')}",
    }
    with under_gunicorn(application, {}, {**options, "--workers": 1}, **environment) as served:
        yield served


@contextlib.contextmanager
def slow_clients(port: int, count: int) -> Iterator[None]:
    """Hold connections of which half are idle, and half have sent a part of a request."""
    with contextlib.ExitStack() as stack:
        for number in range(count):
            client = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)
            stack.enter_context(client).sendall((b"", get("s", 0))[number % 2])
        yield


def answered(client: socket.socket, request: bytes) -> None:
    """Send the request and read its answer, which must be a success."""
    client.sendall(request + _HEAD + b"\r\n")
    data = _received(client)
    while b"\r\n\r\n" not in data:
        data += _received(client)
    head, _, body = data.partition(b"\r\n\r\n")
    assert head[9:10] == b"2", data
    length = next(
        (int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"),
        0,
    )
    while len(body) < length:
        body += _received(client)


def _received(client: socket.socket) -> bytes:
    data = client.recv(65536)
    assert data, "the server closed the connection"
    return data


def measure(port: int, request: str, names: Sequence[str], clients: int, seconds: float) -> Rate:
    """Return the rate at which this many clients are answered."""
    numbers = itertools.count(random.getrandbits(40))
    stop = threading.Event()

    def send(chance: random.Random) -> list[float]:
        taken = []
        with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE) as client:
            while not stop.is_set():
                line = REQUESTS[request](chance.choice(names), next(numbers))
                began = time.perf_counter()
                answered(client, line)
                taken.append(time.perf_counter() - began)
        return taken

    with concurrent.futures.ThreadPoolExecutor(clients) as threads:
        began = time.perf_counter()
        sent = [threads.submit(send, random.Random(number)) for number in range(clients)]
        time.sleep(seconds)
        stop.set()
        taken = sorted(itertools.chain.from_iterable(each.result() for each in sent))
        whole = time.perf_counter() - began
    return Rate(
        len(taken) / whole,
        1000 * taken[len(taken) // 2],
        1000 * taken[len(taken) * 99 // 100],
    )


def configure(home: str, engine: sa.Engine) -> None:
    """Write the configuration that the API finds in the home directory.

    It logs to a file: the pipe from gunicorn, which is not read, would fill and stop the API.
    """
    path = pathlib.Path(home, ".steelyard", "steelyard.conf")
    path.parent.mkdir()
    path.touch(mode=0o600)
    path.write_text(
        f"[DEFAULT]\nlog_file = {home}/log\n"
        f"[steelyard_tags]\nconnection = {engine.url.render_as_string(hide_password=False)}\n"
        f"trusted_proxies = 127.0.0.1\nbackend = memory\n"
    )


def run(
    urls: Iterable[sa.URL],
    sizes: Iterable[int],
    clients: Sequence[int],
    show: Callable[[str], None],
    **limits: Any,
) -> list[Row]:
    """Measure all combinations. ``limits`` are the ``slow`` clients, and ``seconds`` of each."""
    slow, seconds = limits.get("slow", SLOW), limits.get("seconds", SECONDS)
    measured = []
    show(HEADER)
    for url, servers in itertools.product(urls, sizes):
        with (
            database(url) as engine,
            tempfile.TemporaryDirectory() as home,
            serving("steelyard.tags.http.api:application", home) as api,
            serving("benchmarks.tags.load:bare", home) as nothing,
        ):
            names = fill(engine, servers)
            configure(home, engine)
            # Otherwise, the process would first reconcile all servers: it polls this backend itself.
            TagStore(engine).follow(None, 0)
            for each in (api, nothing):  # the API reads all servers at the first request
                measure(each.port, "GET", names[:1], 1, 0.01)
            for request, count in itertools.product(REQUESTS, clients):
                rates = []
                for each in (api, nothing):
                    with slow_clients(each.port, slow):
                        rates.append(measure(each.port, request, names, count, seconds))
                measured.append(Row(engine.dialect.name, servers, request, count, *rates))
                show(str(measured[-1]))
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, nargs="+", default=SERVERS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    run(
        [databases.url("postgresql")],
        options.servers,
        CLIENTS,
        lambda line: print(line, flush=True),  # noqa: T201
        seconds=options.seconds,
    )
