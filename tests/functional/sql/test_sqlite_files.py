"""A mistyped path of an SQLite database: nothing but an upgrade creates a file there."""

import pathlib
from collections.abc import Callable
from typing import Any
from wsgiref.types import WSGIApplication

import pytest
from oslo_config import cfg

from steelyard import cli
from steelyard.consumers import ConsumerStore
from steelyard.consumers.http import api as consumers_api
from steelyard.errors import NoAccess, UpgradeNeeded
from steelyard.sql.stores import Store
from steelyard.tags import TagStore
from steelyard.tags.http import api as tags_api
from steelyard.tags.jobs.loops import Loop
from steelyard.web.configured import ConfiguredApplication
from support.web.wsgi_client import WsgiClient

pytestmark = pytest.mark.usefixtures("closed_databases")

CONSUMER = "71921e4e-1629-4c5b-bf8d-338d915d2ef3"
BROKER = "amqp://127.0.0.1:1/tags"
CALLER = (("X-Project-Id", "p"), ("X-User-Id", "u"), ("X-Roles", "admin"))
PROXY = "10.0.0.1"


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "databases"
    folder.mkdir()
    return folder / "typo.db"


@pytest.fixture
def configuration(tmp_path: pathlib.Path, path: pathlib.Path) -> str:
    """Return the path of a configuration that names the missing file."""
    file = tmp_path / "steelyard.conf"
    file.write_text(
        f"[steelyard_consumers]\nconnection = sqlite:///{path}\ntrusted_proxies = {PROXY}\n"
        f"[steelyard_tags]\nconnection = sqlite:///{path}\ntrusted_proxies = {PROXY}\n"
        f"transport_url = {BROKER}\n"
    )
    return str(file)


@pytest.mark.parametrize(
    "command",
    [
        "consumer serve --port 0",
        "db current --schema tags",
        "tags add s web",
        "tags backend set memory",
        "tags backend show",
        "tags dispatch",
        "tags list s",
        "tags reconcile",
        "tags serve --port 0",
        "tags watch",
    ],
)
def test_command_with_a_mistyped_path_in_the_configuration_creates_no_file(
    configuration: str, path: pathlib.Path, command: str, capsys: Any
) -> None:
    assert cli.main(["--config-file", configuration, *command.split()]) == 2
    assert f"no file '{path}': correct the path in the database URL" in capsys.readouterr().err
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("build", "kind", "target"),
    [
        (consumers_api._configured, ConsumerStore, f"/allocations/{CONSUMER}"),
        (consumers_api._configured, ConsumerStore, "/health"),
        (tags_api._configured, TagStore, "/servers/s/tags"),
    ],
)
def test_service_with_a_mistyped_path_in_the_configuration_creates_no_file(
    monkeypatch: pytest.MonkeyPatch,
    configuration: str,
    path: pathlib.Path,
    build: Callable[[cfg.ConfigOpts], WSGIApplication],
    kind: type[Store],
    target: str,
) -> None:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[configuration], default_config_dirs=[])
    module = consumers_api if kind is ConsumerStore else tags_api
    monkeypatch.setattr("steelyard.web.configured._configuration", lambda: conf)
    # The thread that polls the backend in memory would outlive the test.
    monkeypatch.setattr(Loop, "begin", lambda _self: None)
    application = ConfiguredApplication(build, module._ERRORS)
    client = WsgiClient(application, CALLER, PROXY)
    assert client("GET", target).status == 503
    assert list(path.parent.iterdir()) == []
    with kind(f"sqlite:///{path}") as store:
        store.upgrade()
    assert client("GET", target).status in (200, 404)


@pytest.mark.parametrize("kind", [ConsumerStore, TagStore])
@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite:///file:{}?uri=true"])
def test_upgrade_alone_creates_the_file_of_a_store(
    path: pathlib.Path, kind: type[Store], url: str
) -> None:
    with kind(url.format(path)) as store:
        for call in (store.current, store.require_tables, lambda: store.downgrade("base")):
            with pytest.raises(UpgradeNeeded, match=f"no file '{path}'"):
                call()
        assert not path.exists()
        store.upgrade()
        store.require_tables()


def test_upgrade_reports_a_missing_directory(tmp_path: pathlib.Path) -> None:
    with (
        ConsumerStore(f"sqlite:///{tmp_path}/none/consumers.db") as store,
        pytest.raises(NoAccess, match=r"none/consumers.db': No such file or directory; check the"),
    ):
        store.upgrade()
