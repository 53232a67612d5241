"""Requests per second of the HTTP API of consumers, compared with a Placement's.

Both are served by one worker of gunicorn with the same options, over databases of the same server
with the same consumers, and get the same requests from the same persistent connections, in turns:
GET /usages of a project by type, and PUT /allocations of new consumers with three resource classes.
Each connection writes to a provider of its own, since Placement's writers of one provider wait for
each other. "Ours" and "Placement" are the best rates of all rounds. No request is authenticated
with Keystone.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from benchmarks.consumers import usages
from benchmarks.traits import sql as trait_queries
from support.repository import ROOT
from support.services import databases
from support.web.api_process import Served, under_gunicorn

CONSUMERS = 200
CONNECTIONS = 4
REQUESTS = 1000
ROUNDS = 3
GUNICORN = {"--worker-class": "gthread", "--workers": 1, "--threads": 4, "--keep-alive": 60}
WHO = {
    "X-Auth-Token": "admin",
    "X-Project-Id": "admin",
    "X-User-Id": "admin",
    "X-Roles": "admin",
    "OpenStack-API-Version": "placement 1.38",
}
TOTAL = 2**31 - 1


@contextlib.contextmanager
def served(url: sa.URL, application: str) -> Iterator[Served]:
    environment = {
        "DATABASE": url.render_as_string(hide_password=False),
        "PYTHONPATH": f"{ROOT / 'tests'}:{os.environ.get('PYTHONPATH', '')}",
        "PYTHONWARNINGS": "ignore",
    }
    name = f"'benchmarks.consumers.served:{application}()'"
    with under_gunicorn(name, WHO, GUNICORN, **environment) as server:
        yield server


def placements_url(url: sa.URL) -> sa.URL:
    """Return the URL with a driver that Placement supports: it reads ``lastrowid`` of cursors."""
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg2")
    return url


def request(method: str, target: str, body: Any = None) -> bytes:
    """Return the bytes of a request."""
    data = b"" if body is None else json.dumps(body).encode()
    headers = {"Host": "127.0.0.1", "Accept": "application/json", **WHO}
    if data:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {headers[name]}" for name in headers)]
    return "\r\n".join([*lines, "", ""]).encode() + data


def send(port: int, requests: Sequence[bytes], status: bytes, ready: threading.Barrier) -> None:
    """Send the requests on one connection, one after the other; all answers have the status."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ready.wait()
        for each in requests:
            connection.sendall(each)
            answer = connection.recv(65536)
            while b"\r\n\r\n" not in answer:
                answer += connection.recv(65536)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.split(None, 2)[1] == status, answer
            _, found, length = head.lower().partition(b"content-length: ")
            left = int(length.split(None, 1)[0]) - len(body) if found else 0
            while left > 0:
                left -= len(connection.recv(left))


def rate(port: int, requests: Sequence[Sequence[bytes]], status: bytes) -> float:
    """Return how many of the requests are answered per second, one sequence per connection."""
    ready = threading.Barrier(len(requests) + 1)
    with concurrent.futures.ThreadPoolExecutor(len(requests)) as threads:
        sent = [threads.submit(send, port, each, status, ready) for each in requests]
        ready.wait()
        start = time.perf_counter()
        for each in sent:
            each.result()
    return sum(map(len, requests)) / (time.perf_counter() - start)


def reads(connections: int, count: int) -> list[list[bytes]]:
    query = request("GET", f"/usages?project_id={usages.PROJECT}")
    return [[query] * (count // connections) for _ in range(connections)]


def writes(providers: Sequence[str], count: int) -> list[list[bytes]]:
    return [[write(provider) for _ in range(count // len(providers))] for provider in providers]


def write(provider: str) -> bytes:
    """Return a request that writes a new consumer."""
    body = {
        "allocations": {provider: {"resources": dict.fromkeys(usages.RESOURCES, 1)}},
        "project_id": "written",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return request("PUT", f"/allocations/{uuid.uuid4()}", body)


def advance(engine: sa.Engine, *tables: str) -> None:
    """Let PostgreSQL number new rows after the filled ones, whose numbers were given."""
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection:
            for table in tables:
                sequence = f"pg_get_serial_sequence('{table}', 'id')"
                connection.exec_driver_sql(f"SELECT setval({sequence}, max(id)) FROM {table}")


def create(placement: Served, provider: str) -> None:
    """Create a resource provider with ample capacity."""
    ask = placement.connect()
    assert ask("POST", "/resource_providers", {"name": provider, "uuid": provider})[0] == 200
    inventories = {name: {"total": TOTAL} for name in usages.RESOURCES}
    body = {"resource_provider_generation": 0, "inventories": inventories}
    assert ask("PUT", f"/resource_providers/{provider}/inventories", body)[0] == 200


@dataclasses.dataclass(frozen=True)
class Row:
    database: str
    request: str
    ours: float
    placement: float

    def __str__(self) -> str:
        ratio = self.ours / self.placement
        return (
            f"{self.database:>10} | {self.request:12} | {self.ours:9.0f} | {self.placement:9.0f} | "
            f"{ratio:6.2f}x"
        )


HEADER = f"{'database':>10} | {'request':12} | {'ours/s':>9} | {'Placement':>9} | {'ratio':>7}"


def measure(
    dialect: str, ours: Served, placement: Served, count: int, rounds: int
) -> Iterator[Row]:
    # SQLite has one writer at a time, and those that wait for it sleep.
    connections = 1 if dialect == "sqlite" else CONNECTIONS
    providers = [str(uuid.uuid4()) for _ in range(connections)]
    for provider in providers:
        create(placement, provider)
    servers = [ours.port, placement.port]
    kinds: dict[str, tuple[bytes, Callable[[], list[list[bytes]]]]] = {
        "GET usages": (b"200", lambda: reads(connections, count)),
        "PUT": (b"204", lambda: writes(providers, count)),
    }
    for name, (status, requests) in kinds.items():
        rates = [[rate(port, requests(), status) for port in servers] for _ in range(rounds)]
        yield Row(dialect, name, *(max(each) for each in zip(*rates, strict=True)))


def run(
    urls: Iterable[sa.URL], consumers: int, count: int, rounds: int, show: Callable[[str], None]
) -> list[Row]:
    measured = []
    show(HEADER)
    for url in urls:
        with trait_queries.database(url) as engine, trait_queries.database(url) as theirs:
            usages.fill_ours(engine, consumers)
            advance(engine, "consumers")
            with trait_queries.placement_on(theirs) as context:
                usages.fill_placements(theirs, context, consumers)
            advance(theirs, "consumers", "consumer_types", "projects", "users")
            with (
                served(engine.url, "ours") as ours,
                served(placements_url(theirs.url), "placements") as placement,
            ):
                target = f"/usages?project_id={usages.PROJECT}"
                assert (
                    usages.named(placement.connect()("GET", target)[1]["usages"])
                    == (ours.connect()("GET", target)[1])
                )
                for row in measure(engine.dialect.name, ours, placement, count, rounds):
                    measured.append(row)
                    show(str(row))
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--consumers", type=int, default=CONSUMERS)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    servers = [sa.make_url("sqlite://"), *(databases.url(server) for server in databases.DEFAULTS)]
    run(
        servers,
        asked.consumers,
        asked.requests,
        asked.rounds,
        lambda line: print(line, flush=True),  # noqa: T201
    )
