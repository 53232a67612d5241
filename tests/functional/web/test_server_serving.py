"""The server for monitoring, in a thread of another program."""

import socket
import threading
import time
import urllib.request
from collections.abc import Iterable
from typing import Any

import pytest

from steelyard.web.server import serving


def answer_ok(environ: Any, start: Any) -> Iterable[bytes]:
    start("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def test_server_answers_despite_slow_clients_until_the_block_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, serving(answer_ok, listener):
        port = listener.getsockname()[1]
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
        try:
            for client in clients:
                client.sendall(b"GET / HTTP/1.1\r\n")
            for _ in range(3):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
                    assert answer.read() == b"ok"
        finally:
            for client in clients:
                client.close()
    assert "monitoring" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_block_ends_although_an_answer_takes_long() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer_late(environ: Any, start: Any) -> Iterable[bytes]:
        asked.set()
        assert go_on.wait(20)
        return answer_ok(environ, start)

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        try:
            with serving(answer_late, listener):
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert asked.wait(20)
                began = time.monotonic()
            assert time.monotonic() - began < 10
        finally:
            go_on.set()
