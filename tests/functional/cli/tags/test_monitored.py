"""Health and metrics of ``steelyard tags watch`` and ``steelyard tags dispatch``."""

import json
import os
import signal
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from steelyard.tags.backends.memory import MemoryBackend
from support.tags.queues import until

pytestmark = pytest.mark.usefixtures("closed_databases")

DOWN = "amqp://u:secret@127.0.0.1:1/tags"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(steelyard: Command, url: str, tmp_path: Any, monkeypatch: Any) -> Any:
    """Return a function that runs ``watch`` or ``dispatch`` with options, then with arguments."""
    monkeypatch.setattr(MemoryBackend, "in_process", False)
    path = tmp_path / "tags.conf"
    path.touch(mode=0o600)

    def run(name: str, *words: str, **values: object) -> tuple[int, str, str]:
        given = {"connection": url, "poll_interval": 0.1, **values}
        lines = [f"{option} = {value}" for option, value in given.items()]
        path.write_text("\n".join(["[steelyard_tags]", *lines, ""]))
        return steelyard("--config-file", str(path), "tags", name, *words)

    return run


@pytest.fixture
def port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def read(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


class Monitor(threading.Thread):
    """A thread that reads health and metrics once a metric appears, and then ends the process."""

    health: tuple[int, str] = (0, "")
    metrics = ""

    def __init__(self, port: int, expected: str) -> None:
        super().__init__()
        self._port = port
        self._expected = expected

    def run(self) -> None:
        try:
            until(lambda: self._expected in read(self._port, "/metrics")[1])
            self.health = read(self._port, "/health")
            self.metrics = read(self._port, "/metrics")[1]
        finally:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("given", ["option", "argument"])
def test_watch_answers_while_it_runs(command: Any, port: int, given: str) -> None:
    monitor = Monitor(port, 'steelyard_tags_watch_runs_total{result="success"} 2.0')
    monitor.start()
    address = f"127.0.0.1:{port}"
    words = ["--metrics-listen", address] if given == "argument" else []
    option = "192.0.2.1:1" if words else address
    status, out, err = command("watch", *words, metrics_listen=option)
    monitor.join()
    assert (status, err) == (0, "")
    assert f"answering GET /metrics and GET /health at http://{address}\n" in out
    assert monitor.health[0] == 200
    assert json.loads(monitor.health[1])["checks"] == {"database": "ok"}
    assert 'steelyard_tags_watch_runs_total{result="failure"} 0.0' in monitor.metrics
    assert "steelyard_tags_watch_last_success_timestamp_seconds 1" in monitor.metrics
    assert "process_open_fds " in monitor.metrics
    assert read(port, "/health") == (0, "")


def test_dispatcher_answers_although_the_broker_fails(command: Any, port: int) -> None:
    monitor = Monitor(port, "steelyard_tags_messages_total")
    monitor.start()
    words = ("--metrics-listen", f"127.0.0.1:{port}")
    status, _, err = command("dispatch", *words, transport_url=DOWN)
    monitor.join()
    assert status == 0
    assert "secret" not in err
    assert monitor.health[0] == 503
    assert json.loads(monitor.health[1])["checks"] == {"database": "ok", "broker": "failed"}
    assert 'steelyard_tags_check_success{check="broker"} 0.0' in monitor.metrics
    assert 'steelyard_tags_messages_total{result="retried"} 0.0' in monitor.metrics


def test_nothing_listens_by_default(command: Any, monkeypatch: Any) -> None:
    listeners: list[object] = []
    create_server = socket.create_server

    def note(*arguments: Any, **more: Any) -> socket.socket:
        listeners.append(arguments)
        return create_server(*arguments, **more)

    monkeypatch.setattr(socket, "create_server", note)
    names: list[str] = []

    def end() -> None:
        names.extend(thread.name for thread in threading.enumerate())
        os.kill(os.getpid(), signal.SIGTERM)

    timer = threading.Timer(1, end)
    timer.start()
    assert command("watch")[0] == 0
    timer.join()
    assert listeners == []
    assert "MainThread" in names
    assert "monitoring" not in names


@pytest.mark.parametrize("name", ["watch", "dispatch"])
@pytest.mark.parametrize("value", ["", "9781", ":9781", "h:65536", "::1:9781", "[h]:x"])
def test_invalid_address_is_reported(command: Any, name: str, value: str) -> None:
    expected = "expected a host and a port, such as 127.0.0.1:9781 or [::1]:9781"
    status, _, err = command(name, f"--metrics-listen={value}", transport_url=DOWN)
    assert status == 2
    assert f"steelyard: invalid --metrics-listen {value!r}: {expected}" in err
    status, _, err = command(name, transport_url=DOWN, metrics_listen=value)
    assert status == 2
    assert f"[steelyard_tags] metrics_listen = {value!r}: {expected}" in err


def test_address_in_use_is_reported(command: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        status, _, err = command("watch", metrics_listen=f"127.0.0.1:{port}")
    assert status == 2
    assert f"cannot listen on '127.0.0.1', port {port}: Address already in use" in err
    assert "change metrics_listen" in err
