"""Closing of the connections that stores and commands open."""

import contextlib
import pathlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard import cli
from steelyard.consumers import ConsumerStore
from steelyard.errors import ServiceError
from steelyard.sql.stores import Store
from steelyard.tags import TagStore, configured
from support.tags.databases import upgrade

KINDS = [ConsumerStore, TagStore]


class Connections:
    """The number of connections opened and the connections that are still open."""

    def __init__(self) -> None:
        self.opened = 0
        self.open: list[object] = []

    def note_opened(self, connection: object, _record: object) -> None:
        self.opened += 1
        self.open.append(connection)

    def note_closed(self, connection: object, _record: object) -> None:
        self.open.remove(connection)


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    """Return the URL of a database with the tables of both stores."""
    url = f"sqlite:///{tmp_path}/both.db"
    for kind in KINDS:
        with kind(url) as store:
            store.upgrade()
    return url


@pytest.fixture
def connections(url: str) -> Iterator[Connections]:
    noted = Connections()
    listeners = (("connect", noted.note_opened), ("close", noted.note_closed))
    for name, listener in listeners:
        sa.event.listen(sa.Pool, name, listener)
    yield noted
    for name, listener in listeners:
        sa.event.remove(sa.Pool, name, listener)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("convert", [str, sa.make_url])
def test_store_of_a_url_closes_its_connections(
    url: str, connections: Connections, kind: type[Store], convert: Any
) -> None:
    with kind(convert(url)) as store:
        store.current()
        assert len(connections.open) == 1
    assert connections.open == []


def test_store_of_a_url_closes_its_connections_after_an_error(
    tmp_path: pathlib.Path, connections: Connections
) -> None:
    (tmp_path / "empty.db").touch()
    with (
        pytest.raises(ServiceError, match="no such table"),
        ConsumerStore(f"sqlite:///{tmp_path}/empty.db") as store,
    ):
        store.types()
    assert (connections.opened, connections.open) == (1, [])


def test_closed_store_connects_again(url: str) -> None:
    store = ConsumerStore(url)
    with store:
        newest = store.current()
    with store:
        assert store.current() == newest


@pytest.mark.parametrize("options", [{}, {"isolation_level": "AUTOCOMMIT"}])
def test_store_leaves_the_callers_engine_and_connection_open(
    url: str, connections: Connections, options: dict[str, Any]
) -> None:
    engine, other = sa.create_engine(url, **options), sa.create_engine(url)
    with ConsumerStore(engine) as store:
        store.current()
    assert len(connections.open) == 1
    with other.connect() as connection:
        with ConsumerStore(connection) as store:
            store.current()
        assert connection.scalar(sa.text("SELECT 1")) == 1
    assert len(connections.open) == 2
    engine.dispose()
    other.dispose()


@pytest.mark.parametrize(
    "command",
    [
        "db upgrade",
        "db current",
        "db history",
        "db upgrade --schema tags",
        "db current --schema tags",
        "db history --schema tags",
        "usage --project p",
        "consumer types",
        "consumer types --project p",
        "schedule --example --flavor web.small --commit",
        "tags list 1",
        "tags exists 1 web",
        "tags add 1 web",
        "tags remove 1 web",
        "tags replace 1 web",
        "tags clear 1",
        "tags register 1 --name vm --project p --user u",
        "tags forget 1",
        "tags selftest 1",
        "tags reconcile",
        "tags serve --port -1",
    ],
)
@pytest.mark.parametrize("tables", ["with tables", "without tables"])
def test_command_closes_its_connections(
    tmp_path: pathlib.Path, url: str, connections: Connections, command: str, tables: str
) -> None:
    if tables == "without tables":
        (tmp_path / "empty.db").touch()
        url = f"sqlite:///{tmp_path}/empty.db"
    cli.main([*command.split(), "--url", url])
    assert connections.opened > 0
    assert connections.open == []


@pytest.mark.parametrize("command", ["dispatch", "watch"])
def test_worker_that_fails_to_start_closes_its_connections(
    tmp_path: pathlib.Path, url: str, connections: Connections, command: str
) -> None:
    path = tmp_path / "steelyard.conf"
    broker = "amqp://127.0.0.1:1/tags"
    path.write_text(f"[steelyard_tags]\nconnection = {url}\ntransport_url = {broker}\n")
    with TagStore(url) as store:
        store.downgrade("base")
    before = connections.opened
    assert cli.main(["--config-file", str(path), "tags", command]) == 2
    assert connections.opened > before
    assert connections.open == []


def test_service_that_fails_to_start_closes_its_connections(
    tmp_path: pathlib.Path, conf: Any, connections: Connections
) -> None:
    # The memory backend reads the instances and fails on a database of an old revision.
    url = f"sqlite:///{tmp_path}/old.db"
    store = TagStore(url)
    upgrade(store)
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.execute("DROP TABLE tag_marks")
        connection.execute("INSERT INTO tag_instances VALUES (1, 's', 'vm', 'p', 'u', 0, 0)")
        connection.commit()
    before = connections.opened
    with pytest.raises(ServiceError, match="no such table"):
        configured.service(conf, url)
    assert connections.opened > before
    assert connections.open == []
