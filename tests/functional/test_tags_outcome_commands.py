"""steelyard tags dispatch and steelyard tags watch: what they refuse, and why."""

import logging
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import trustme
from tag_brokers import until
from tag_databases import upgrade

from steelyard import cli, errors
from steelyard.tags import TagStore
from steelyard.tags.broker import Broker

pytestmark = pytest.mark.usefixtures("closed_databases")

SECRET = "hunter2"
BROKER = f"amqp://steelyard:{SECRET}@127.0.0.1:1/tags"


@pytest.fixture
def url(tmp_path: Any) -> str:
    made = f"sqlite:///{tmp_path}/tags.db"
    upgrade(TagStore(made))
    return made


@pytest.fixture
def steelyard(capsys: Any, tmp_path: Any) -> Iterator[Any]:
    """What the command says, on both sides, with such a configuration."""
    handlers, level = logging.root.handlers[:], logging.root.level

    def run(name: str, mode: int = 0o600, status: int = 2, **values: object) -> tuple[str, str]:
        path = tmp_path / "tags.conf"
        lines = [f"{option} = {value}" for option, value in values.items()]
        path.write_text("\n".join(["[steelyard_tags]", *lines, ""]))
        path.chmod(mode)
        assert cli.main(["--config-file", str(path), "tags", name]) == status
        out, err = capsys.readouterr()
        assert SECRET not in out + err
        return out, err

    yield run
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def refused(steelyard: Any) -> Any:
    """Why the command does not begin, with such a configuration."""

    def run(name: str, mode: int = 0o600, **values: object) -> str:
        out, err = steelyard(name, mode, **values)
        assert out == ""
        return str(err)

    return run


def test_a_dispatcher_needs_a_broker(refused: Any, url: str) -> None:
    assert refused("dispatch", connection=url) == (
        "steelyard: no broker is named: set transport_url in [steelyard_tags] of a --config-file; "
        "without one, steelyard tags watch settles outcomes by itself\n"
    )


@pytest.mark.parametrize("transport_url", [None, BROKER])
def test_what_is_in_memory_cannot_be_watched_from_here(
    refused: Any, url: str, transport_url: str | None
) -> None:
    more = {"transport_url": transport_url} if transport_url else {}
    said = refused("watch", connection=url, **more)
    assert "the backend 'memory' is within the process that has it" in said
    assert "name another one, as backend in [steelyard_tags]" in said


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
def test_a_url_that_is_none_is_not_repeated(refused: Any, url: str, name: str, value: str) -> None:
    said = refused(name, connection=url, transport_url=value)
    assert "transport_url in [steelyard_tags]: this is no URL of a broker; write one" in said


@pytest.mark.parametrize("name", ["dispatch", "watch"])
def test_a_file_with_credentials_is_not_for_everybody(
    refused: Any, url: str, name: str, tmp_path: Any
) -> None:
    said = refused(name, mode=0o644, connection=url, transport_url=BROKER)
    assert f"{tmp_path}/tags.conf has credentials in it" in said
    assert "chmod o-rw" in said


@pytest.mark.parametrize("name", ["dispatch", "watch"])
def test_tables_that_are_missing(refused: Any, tmp_path: Any, name: str) -> None:
    said = refused(name, connection=f"sqlite:///{tmp_path}/none.db", transport_url=BROKER)
    assert "the database has none of the tables of tags" in said


@pytest.mark.parametrize("name", ["dispatch", "watch"])
@pytest.mark.parametrize("value", ["", "amq.tags", "a b", "q" * 201])
def test_queues_that_cannot_be(refused: Any, url: str, name: str, value: str) -> None:
    said = refused(name, connection=url, transport_url=BROKER, queue=value)
    assert "Value for option queue from" in said


@pytest.mark.parametrize("value", ["0", "65536", "", "x"])
def test_a_prefetch_that_cannot_be(refused: Any, url: str, value: str) -> None:
    said = refused("dispatch", connection=url, transport_url=BROKER, prefetch=value)
    assert "prefetch" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("name", "transport_url", "said"),
    [
        (
            "dispatch",
            BROKER,
            "outcomes come from amqp://steelyard:**@127.0.0.1:1/tags, from the queue "
            "steelyard.tags; Ctrl-C ends it\n",
        ),
        (
            "watch",
            BROKER,
            "outcomes go to amqp://steelyard:**@127.0.0.1:1/tags, into the queue steelyard.tags; "
            "Ctrl-C ends it\n",
        ),
        ("watch", None, "outcomes are settled; Ctrl-C ends it\n"),
    ],
)
def test_they_run_until_they_are_told_to_end(
    steelyard: Any,
    url: str,
    monkeypatch: Any,
    name: str,
    transport_url: str | None,
    said: str,
    number: int,
) -> None:
    """Whether there is a broker or not."""
    monkeypatch.setattr("steelyard.cli.tags_watch.MemoryBackend", Iterator)
    more = {"transport_url": transport_url} if transport_url else {}
    before = signal.getsignal(number)

    def end_it() -> None:
        until(lambda: signal.getsignal(number) != before)  # or it would end the tests
        time.sleep(1)
        os.kill(os.getpid(), number)

    threading.Thread(target=end_it).start()
    out, err = steelyard(name, status=0, connection=url, poll_interval=0.1, **more)
    assert out == said
    assert ("Outcomes wait" in err) == (name == "dispatch")


@pytest.fixture
def stranger(tmp_path: Any) -> Iterator[int]:
    """The port of a server whose certificate is signed by somebody whom nobody here knows."""
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


def test_a_broker_that_nobody_vouches_for_is_told_nothing(stranger: int) -> None:
    broker = Broker(f"amqps://u:{SECRET}@127.0.0.1:{stranger}/v")
    with (
        pytest.raises(errors.NoAccess, match="certificate verify failed") as raised,
        broker.connected(),
    ):
        pass
    assert SECRET not in str(raised.value)


def test_a_certificate_of_somebody_else_is_refused(
    stranger: int, tmp_path: Any, monkeypatch: Any
) -> None:
    """Though it is one that is trusted."""
    monkeypatch.setitem(os.environ, "SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(2, 1, 6, "", ("127.0.0.1", stranger))])
    with (
        pytest.raises(errors.NoAccess, match=r"not valid for 'mq\.example\.org'"),
        Broker("amqps://mq.example.org/v").connected(),
    ):
        pass


def test_a_broker_shows_no_password() -> None:
    assert str(Broker(BROKER)) == "amqp://steelyard:**@127.0.0.1:1/tags"
    with pytest.raises(errors.NoAccess) as raised, Broker(BROKER).connected():
        pass
    assert SECRET not in str(raised.value)
    assert "amqp://steelyard:**@127.0.0.1:1/tags cannot do it" in str(raised.value)
