"""gunicorn with the worker that slow and idle clients cannot block."""

import contextlib
import os
import pathlib
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest

from support.web.api_process import Served, running, under_gunicorn

WORKER = "steelyard.web.gunicorn_worker.BufferingWorker"
OPTIONS = {"--worker-class": WORKER, "--workers": 2, "--threads": 4, "--graceful-timeout": 20}
APPLICATION = '''
import os, time

def application(environ, start):
    """Answer with the process and the body, after the seconds in the query."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    time.sleep(float(environ["QUERY_STRING"] or 0))
    said = f"{os.getpid()} {environ['wsgi.multiprocess']} ".encode() + body
    start("200 OK", [("Content-Length", str(len(said)))])
    return [said]
'''
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
CLIENTS = 250


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> str:
    (tmp_path / "echoing.py").write_text(APPLICATION)
    return str(tmp_path)


@contextlib.contextmanager
def serving(folder: str, **changed: object) -> Iterator[Served]:
    options = {**OPTIONS, **{f"--{name}": value for name, value in changed.items()}}
    with under_gunicorn("echoing:application", {}, options, PYTHONPATH=_path(folder)) as served:
        yield served


def _path(folder: str) -> str:
    return os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])


def read(served: Served, query: str = "") -> bytes:
    url = f"http://127.0.0.1:{served.port}/{query}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        found: bytes = answer.read()
        return found


def connected(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=60)


def test_slow_and_idle_clients_do_not_block_the_worker(folder: str) -> None:
    body = HEAD + b"Content-Length: 1000\r\n\r\n{"
    with serving(folder) as served, contextlib.ExitStack() as stack:
        for number in range(CLIENTS):
            client = stack.enter_context(connected(served))
            client.sendall((b"", HEAD, body)[number % 3])
        began = time.monotonic()
        for _ in range(10):
            read(served)
        assert time.monotonic() - began < 20


def test_stopped_worker_answers_the_requests_that_it_has_read(folder: str) -> None:
    with serving(folder) as served, connected(served) as idle, connected(served) as half:
        half.sendall(HEAD)
        answers: list[bytes] = []
        threads = [
            threading.Thread(target=lambda: answers.append(read(served, "?2"))) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        time.sleep(1)
        began = time.monotonic()
        served.process.terminate()
        assert served.process.wait(30) == 0
        for thread in threads:
            thread.join()
        assert len(answers) == 6
        # It waits neither for the idle nor for the slow client.
        assert time.monotonic() - began < 15
        assert idle.recv(1) == b""
        with contextlib.suppress(ConnectionResetError):
            assert half.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            connected(served)


def test_stopped_worker_gives_up_after_the_graceful_timeout(folder: str) -> None:
    with serving(folder, **{"graceful-timeout": 1}) as served, connected(served) as client:
        client.sendall(b"GET /?60 HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.5)
        began = time.monotonic()
        served.process.terminate()
        served.process.wait(30)
        assert time.monotonic() - began < 15


def test_connection_is_kept_for_further_requests(folder: str) -> None:
    with serving(folder) as served, connected(served) as client, client.makefile("rb") as answers:
        for number in range(3):
            client.sendall(HEAD + b"Content-Length: 1\r\n\r\n" + b"%d" % number)
            assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
            while answers.readline() not in (b"", b"\r\n"):
                pass
            # The answer names the process, and says that there are several.
            assert answers.read(len(b"%d True 0" % served.process.pid)).endswith(
                b" True %d" % number
            )


def test_killed_worker_is_replaced(folder: str) -> None:
    with serving(folder, workers=1) as served:
        worker, several, *_ = read(served).split()
        assert several == b"False"
        os.kill(int(worker), signal.SIGKILL)
        deadline = time.monotonic() + 60
        found = worker
        while found == worker and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                found = read(served).split()[0]
        assert found != worker


def test_reload_replaces_workers_without_losing_requests(folder: str) -> None:
    with serving(folder) as served:
        answers: list[bytes] = []
        thread = threading.Thread(target=lambda: answers.append(read(served, "?3")))
        thread.start()
        time.sleep(0.5)
        before = {read(served).split()[0] for _ in range(20)}
        served.process.send_signal(signal.SIGHUP)
        thread.join()
        assert len(answers) == 1
        deadline = time.monotonic() + 60
        while read(served).split()[0] in before:
            assert time.monotonic() < deadline


def test_tls_is_refused(folder: str) -> None:
    words = [f"{name} {value}" for name, value in {**OPTIONS, "--certfile": "x.pem"}.items()]
    line = f"{sys.executable} -m gunicorn {' '.join(words)} --bind 127.0.0.1:0 echoing:application"
    pathlib.Path(folder, "x.pem").touch()
    command = ["sh", "-c", f"cd {folder} && {line} 2>&1; echo ended $?"]
    with running(command, "ended", {}, PYTHONPATH=_path(folder)) as served:
        assert "BufferingWorker has no TLS: remove certfile" in served.said
        assert "Worker failed to boot" in served.said
        assert "ended 0" not in served.said
