"""``steelyard tags dispatch`` and ``steelyard tags watch``, and the configurations they reject."""

import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from steelyard import cli, errors
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.jobs.loops import Stop
from support.tags.queues import until

pytestmark = pytest.mark.usefixtures("closed_databases")

SECRET = "hunter2"
BROKER = f"amqp://steelyard:{SECRET}@127.0.0.1:1/tags"


@pytest.fixture
def steelyard(capsys: Any, tmp_path: Any) -> Any:
    """Return a function that runs a command with options and returns its output and errors."""

    def run(name: str, mode: int = 0o600, status: int = 2, **values: object) -> tuple[str, str]:
        path = tmp_path / "tags.conf"
        lines = [f"{option} = {value}" for option, value in values.items()]
        path.write_text("\n".join(["[steelyard_tags]", *lines, ""]))
        path.chmod(mode)
        assert cli.main(["--config-file", str(path), "tags", name]) == status
        out, err = capsys.readouterr()
        assert SECRET not in out + err
        return out, err

    return run


@pytest.fixture
def refused(steelyard: Any) -> Any:
    """Return a function that runs a rejected command and returns its errors."""

    def run(name: str, mode: int = 0o600, **values: object) -> str:
        out, err = steelyard(name, mode, **values)
        assert out == ""
        return str(err)

    return run


def test_dispatch_requires_a_broker(refused: Any, url: str) -> None:
    assert refused("dispatch", connection=url) == (
        "steelyard: no broker configured: set transport_url in [steelyard_tags] of a --config-file; "
        "without one, steelyard tags watch applies outcomes itself\n"
    )


@pytest.mark.parametrize("transport_url", [None, BROKER])
def test_watch_rejects_the_backend_in_memory(
    refused: Any, url: str, transport_url: str | None
) -> None:
    more = {"transport_url": transport_url} if transport_url else {}
    said = refused("watch", connection=url, **more)
    assert "cannot watch the backend 'memory': it exists only in the process of" in said
    assert "name another backend in [steelyard_tags]" in said


@pytest.mark.parametrize("name", ["dispatch", "watch"])
@pytest.mark.parametrize(
    "value",
    [
        "",
        "mq.example.org",
        f"rabbit://u:{SECRET}@h/v",
        f"memory://u:{SECRET}@h/v",
        f"sqla+mysql://u:{SECRET}@h/v",
        f"amqp://u:{SECRET}",
        f"amqp://u:{SECRET}@h:port/v",
        f"amqp://u:{SECRET}/x@h/v",
        f"amqp://u:1/{SECRET}@h/v",
        f"amqp://u:{SECRET}#x@h/v",
        f"amqp://u:{SECRET}@h/v?heartbeat=1",
        f"amqp://u:{SECRET};x@h/v",
        f"amqp://u:{SECRET}@h/v;amqp://u:{SECRET}@g/v",
        f"amqp://u:{SECRET}@[h/v",
        "amqp:///v",
        "amqp://h:0/v",
    ],
)
def test_invalid_broker_url_is_reported_without_its_text(
    refused: Any, url: str, name: str, value: str
) -> None:
    said = refused(name, connection=url, transport_url=value)
    assert "transport_url in [steelyard_tags]: invalid broker URL: expected one" in said


@pytest.mark.parametrize("name", ["dispatch", "watch"])
def test_readable_file_with_credentials_is_rejected(
    refused: Any, url: str, name: str, tmp_path: Any
) -> None:
    said = refused(name, mode=0o644, connection=url, transport_url=BROKER)
    assert f"insecure configuration file '{tmp_path}/tags.conf'" in said
    assert "chmod o-rw" in said


@pytest.mark.parametrize("name", ["dispatch", "watch"])
def test_missing_tables_are_reported(refused: Any, tmp_path: Any, name: str) -> None:
    (tmp_path / "none.db").touch()
    said = refused(name, connection=f"sqlite:///{tmp_path}/none.db", transport_url=BROKER)
    assert "the tables of tags are missing" in said


@pytest.mark.parametrize("name", ["dispatch", "watch"])
@pytest.mark.parametrize("value", ["", "amq.tags", "a b", "q" * 201])
def test_invalid_queue_name_is_reported(refused: Any, url: str, name: str, value: str) -> None:
    said = refused(name, connection=url, transport_url=BROKER, queue=value)
    assert f"tags.conf:4: [steelyard_tags] queue = {value!r:.200}: expected 1 to 200 of A-Z" in said


@pytest.mark.parametrize("value", ["0", "65536", "", "x"])
def test_invalid_prefetch_is_reported(refused: Any, url: str, value: str) -> None:
    said = refused("dispatch", connection=url, transport_url=BROKER, prefetch=value)
    assert "prefetch" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("name", "transport_url", "said"),
    [
        (
            "dispatch",
            BROKER,
            "applying outcomes from the queue steelyard.tags of "
            "amqp://steelyard:**@127.0.0.1:1/tags; press Ctrl-C to stop\n",
        ),
        (
            "watch",
            BROKER,
            "publishing outcomes to the queue steelyard.tags of "
            "amqp://steelyard:**@127.0.0.1:1/tags; press Ctrl-C to stop\n",
        ),
        ("watch", None, "applying outcomes; press Ctrl-C to stop\n"),
    ],
)
def test_dispatch_and_watch_run_until_a_signal(
    steelyard: Any,
    url: str,
    monkeypatch: Any,
    name: str,
    transport_url: str | None,
    said: str,
    number: int,
) -> None:
    monkeypatch.setattr(MemoryBackend, "in_process", False)
    more = {"transport_url": transport_url} if transport_url else {}
    pauses: list[float] = []
    wait = Stop.wait

    def note(stop: Stop, seconds: float) -> bool:
        pauses.append(seconds)
        return wait(stop, seconds)

    def end_it() -> None:
        # The watch pauses before its first poll, the dispatcher after its first attempt.
        until(lambda: len(pauses) >= (2 if name == "watch" else 1))
        os.kill(os.getpid(), number)

    monkeypatch.setattr(Stop, "wait", note)

    threading.Thread(target=end_it).start()
    out, err = steelyard(name, status=0, connection=url, poll_interval=0.1, **more)
    assert out == said
    assert ("Cannot apply outcomes" in err) == (name == "dispatch")


@pytest.fixture
def stranger(tmp_path: Any) -> Iterator[int]:
    """Yield the port of a server with a certificate of an unknown authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    with context.wrap_socket(connection, server_side=True) as secured:
                        heard.append(secured.recv(100))
                except OSError as error:
                    heard.append(str(error).encode())

    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert heard
    assert not any(said.startswith(b"AMQP") for said in heard)


def test_broker_with_an_untrusted_certificate_gets_no_password(stranger: int) -> None:
    broker = Broker(f"amqps://u:{SECRET}@127.0.0.1:{stranger}/v")
    with (
        pytest.raises(errors.NoAccess, match="certificate verify failed") as raised,
        broker.connected(),
    ):
        pass
    assert SECRET not in str(raised.value)


def test_certificate_of_another_host_is_rejected(
    stranger: int, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setitem(os.environ, "SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(2, 1, 6, "", ("127.0.0.1", stranger))])
    with (
        pytest.raises(errors.NoAccess, match=r"not valid for 'mq\.example\.org'"),
        Broker("amqps://mq.example.org/v").connected(),
    ):
        pass


def test_broker_text_hides_the_password() -> None:
    assert str(Broker(BROKER)) == "amqp://steelyard:**@127.0.0.1:1/tags"
    with pytest.raises(errors.NoAccess) as raised, Broker(BROKER).connected():
        pass
    assert SECRET not in str(raised.value)
    assert "amqp://steelyard:**@127.0.0.1:1/tags' failed" in str(raised.value)
