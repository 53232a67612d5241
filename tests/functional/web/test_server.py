"""Servers with many clients that send their requests slowly or not at all."""

import contextlib
import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest

from steelyard.tags import TagStore
from support.cli.served_command import serving
from support.repository import DOCS
from support.tags.databases import upgrade

pytestmark = pytest.mark.usefixtures("closed_databases")

GUIDE = DOCS / "guides" / "serve-tags.rst"
HALF_OPEN = 200
SLOW = 50
HEAD = b"PUT /servers/s/tags HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BODY = HEAD + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"


@contextlib.contextmanager
def slow_clients(port: int) -> Iterator[list[socket.socket]]:
    """Yield clients that have sent nothing, half a header, or the first byte of a body."""
    with contextlib.ExitStack() as stack:
        found = []
        for number in range(HALF_OPEN + SLOW):
            client = socket.create_connection(("127.0.0.1", port), timeout=20)
            found.append(stack.enter_context(client))
            sent = (b"", HEAD)[number % 2] if number < HALF_OPEN else BODY
            client.sendall(sent)
        yield found


def seconds_to_answer(url: str) -> float:
    """Return how long the server takes to answer with 200."""
    begun = time.monotonic()
    with urllib.request.urlopen(url, timeout=20) as answer:
        assert answer.status == 200
    return time.monotonic() - begun


def check_responds_despite_slow_clients(port: int, path: str) -> None:
    url = f"http://127.0.0.1:{port}{path}"
    with slow_clients(port) as clients:
        assert seconds_to_answer(url) < 5
        for client in clients[HALF_OPEN:]:
            client.sendall(b" ")
        assert seconds_to_answer(url) < 5


@pytest.fixture
def home(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a home directory with a configuration that oslo.config finds."""
    url = f"sqlite:///{tmp_path}/tags.db"
    upgrade(TagStore(url))
    (tmp_path / ".steelyard").mkdir()
    (tmp_path / ".steelyard" / "steelyard.conf").write_text(
        f"[steelyard_tags]\nconnection = {url}\ntrusted_proxies = 127.0.0.1\n"
    )
    return tmp_path


def test_tags_serve_responds_despite_slow_clients(home: pathlib.Path) -> None:
    file = str(home / ".steelyard" / "steelyard.conf")
    with serving("--config-file", file, "tags", "serve") as served:
        check_responds_despite_slow_clients(served.port, "/openapi.json")


def test_serve_responds_despite_slow_clients() -> None:
    with serving("serve", "--example") as served:
        check_responds_despite_slow_clients(served.port, "/")


def test_waitress_command_of_guide_responds_despite_slow_clients(home: pathlib.Path) -> None:
    (line,) = re.findall(
        r"^   waitress-serve --listen=10.1.0.9:8780 (.+)$", GUIDE.read_text(), re.MULTILINE
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = pathlib.Path(sys.executable).with_name("waitress-serve")
    command = [program, f"--listen=127.0.0.1:{port}", *line.split()]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": str(home)}
    ) as process:
        try:
            assert process.stderr is not None
            while "Serving on" not in process.stderr.readline():
                assert process.poll() is None
            check_responds_despite_slow_clients(port, "/openapi.json")
        finally:
            process.kill()


SERVING = """
import socket, sys
from steelyard.web import server
server._PATIENCE, server._CHECK_EVERY, server._CONNECTIONS = 2, 0.5, 20

def application(environ, start):
    start("200 OK", [("Content-Length", "2")])
    return [b"ok"]

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
server.serve(application, listener, 2000)
"""


@contextlib.contextmanager
def impatient_server() -> Iterator[int]:
    """Serve with 20 connections at most and 2 seconds for a request; yield the port."""
    command = [sys.executable, "-c", SERVING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def trickle(clients: list[socket.socket], what: bytes, stop: threading.Event) -> None:
    while not stop.wait(0.2):
        for client in clients:
            with contextlib.suppress(OSError):
                client.sendall(what)


@pytest.mark.parametrize(
    ("begin", "more"),
    [(HEAD, b"X-A: b\r\n"), (BODY, b" "), (b"", b"\r\n")],
    ids=["headers", "body", "empty-lines"],
)
def test_serve_closes_connections_with_slow_requests(begin: bytes, more: bytes) -> None:
    with impatient_server() as port, contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(30)
        ]
        for client in clients:
            client.sendall(begin)
        stop = threading.Event()
        thread = threading.Thread(target=trickle, args=(clients, more, stop))
        thread.start()
        stack.callback(thread.join)
        stack.callback(stop.set)
        assert seconds_to_answer(f"http://127.0.0.1:{port}/") < 10


def test_serve_keeps_connection_with_complete_requests() -> None:
    with (
        impatient_server() as port,
        socket.create_connection(("127.0.0.1", port), timeout=5) as client,
        client.makefile("rb") as answers,
    ):
        for _ in range(8):  # 4 seconds
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
            time.sleep(0.5)
            client.sendall(b"\r\n")
            assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
            while answers.readline() != b"\r\n":
                pass
            assert answers.read(2) == b"ok"


@pytest.mark.parametrize(("soft", "hard"), [(256, 4096), (256, 256)])
def test_serve_responds_with_fewer_open_files_than_clients(
    home: pathlib.Path, soft: int, hard: int
) -> None:
    # With a higher hard limit, the server raises the soft limit. Otherwise, it must not log an
    # error for each connection that it cannot accept.
    file = str(home / ".steelyard" / "steelyard.conf")
    mine = resource.getrlimit(resource.RLIMIT_NOFILE)
    if mine[1] != resource.RLIM_INFINITY:
        hard = min(hard, mine[1])
    with (
        serving("--config-file", file, "tags", "serve", files=(soft, hard)) as served,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(400 if soft < hard else 150):
            client = socket.create_connection(("127.0.0.1", served.port), timeout=20)
            stack.enter_context(client).sendall(HEAD)
        assert seconds_to_answer(f"http://127.0.0.1:{served.port}/openapi.json") < 5
        if soft == hard:
            for _ in range(250):
                client = socket.create_connection(("127.0.0.1", served.port), timeout=20)
                stack.enter_context(client).sendall(HEAD)
            time.sleep(2)
            served.process.kill()
            _, said = served.process.communicate()
            assert "Traceback" not in said
            assert len(said) < 1000
