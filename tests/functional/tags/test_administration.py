"""Registration and creation of instances: checks of names, and answers of the backend."""

import contextlib
import pathlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steelyard import cli, errors
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.ganeti import GanetiBackend
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.http.api import make_application
from steelyard.tags.states.values import Instance
from support.tags import in_process_api
from support.tags.databases import dump, upgrade
from support.web import wsgi_client

pytestmark = pytest.mark.usefixtures("closed_databases")

SILENT = "https://127.0.0.1:9"
VM = Instance("s9", "vm-9", "p", "u")


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/tags.db"


def ganeti(address: str = SILENT) -> GanetiBackend:
    return GanetiBackend(
        in_process_api.configuration(
            ganeti_url=address,
            ganeti_user="steelyard",
            ganeti_password="hunter2",
            ganeti_connect_timeout=0.5,
            ganeti_timeout=0.5,
        )
    )


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """Yield the URL of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


def test_register_of_an_instance_missing_at_the_backend_is_refused(url: str) -> None:
    backend = MemoryBackend()
    service = in_process_api.service(url, backend)
    before = dump(url)
    with pytest.raises(errors.NotFound) as refused:
        service.register(VM)
    assert str(refused.value) == (
        "cannot register 's9': the backend has no instance 'vm-9'; create it there first, or give "
        "the full name that the backend lists"
    )
    assert dump(url) == before
    backend.adopt({"vm-9": []})
    service.register(VM)
    assert service.store.instance("s9") == VM


def test_register_of_an_invalid_name_is_rejected(url: str) -> None:
    service = TagService(TagStore(url), ganeti())
    with pytest.raises(errors.BadRequest, match="invalid instance name 'VM': expected"):
        service.register(Instance("s9", "VM", "p", "u"))


def test_register_reports_an_unreachable_backend(
    url: str, tmp_path: pathlib.Path, capsys: Any
) -> None:
    upgrade(TagStore(url), BackendIdentity("ganeti", "cluster.example.org"))
    before = dump(url)
    with silent() as address:
        file = tmp_path / "tags.conf"
        file.write_text(
            f"[steelyard_tags]\nconnection = {url}\nbackend = ganeti\nganeti_url = {address}\n"
            "ganeti_user = u\nganeti_password = p\nganeti_connect_timeout = 0.5\n"
        )
        file.chmod(0o600)
        command = ("tags", "register", "s9", "--name", "vm-9", "--project", "p", "--user", "u")
        assert cli.main(["--config-file", str(file), *command]) == 2
    assert f"steelyard: cannot reach Ganeti at {address}: " in capsys.readouterr().err
    assert dump(url) == before


Ask = Callable[..., wsgi_client.Answer]


@pytest.fixture
def ask(url: str) -> Ask:
    """Return a client of a service whose Ganeti is unreachable."""
    upgrade(TagStore(url), BackendIdentity("ganeti", "cluster.example.org"))
    service = TagService(TagStore(url), ganeti())
    return in_process_api.Client(make_application(service, in_process_api.configuration()))


@pytest.mark.parametrize(
    "name",
    ["VM-1", "vm-", "vm.", "a..b", "vm_", "", "a b", "größe", "a\x1b[2J", "a\u202eb", "a" * 256],
)
def test_create_with_an_invalid_name_is_a_400_with_the_reason(ask: Ask, name: str) -> None:
    answer = ask("POST", "/servers", {"server": {"name": name}})
    kind, message = answer.fault
    assert (answer.status, kind) == (400, "badRequest")
    assert repr(name)[:50] in message
    assert "a-z, 0-9" in message
    assert "letter or a digit" in message
    assert message.isprintable()


@pytest.mark.parametrize("server", ["..", "a/b", "a?b", "größe", "a" * 65])
def test_create_with_an_invalid_id_is_a_400_with_the_reason(ask: Ask, server: str) -> None:
    answer = ask("POST", "/servers", {"server": {"id": server, "name": "vm"}})
    assert answer.status == 400
    assert answer.fault[1].startswith(f"invalid server id {server!r}: expected 1 to 64 of A-Z")


@pytest.mark.parametrize("tag", ["a%1Bb", "%C2%9B", "a%2Fb", "%E4%BD%A0" * 20, "a" * 61])
def test_invalid_tag_is_a_400_with_the_reason(ask: Ask, url: str, tag: str) -> None:
    TagStore(url).register(VM)
    answer = ask("PUT", f"/servers/s9/tags/{tag}")
    assert answer.status == 400
    assert "invalid tag" in answer.fault[1]


def test_unreachable_backend_is_a_503(url: str) -> None:
    upgrade(TagStore(url), BackendIdentity("ganeti", "cluster.example.org"))
    TagStore(url).register(VM)
    with silent() as address:
        service = TagService(TagStore(url), ganeti(address))
        ask = in_process_api.Client(make_application(service, in_process_api.configuration()))
        for method, target, body in (
            ("PUT", "/servers/s9/tags/a", None),
            ("POST", "/servers", {"server": {"name": "vm"}}),
        ):
            answer = ask(method, target, body)
            kind, message = answer.fault
            assert (answer.status, kind) == (503, "serviceUnavailable")
            assert answer.json[kind]["reason"] == "backendUnreachable"
            assert message.startswith(
                "the backend is unreachable, and nothing was changed; try again"
            )
    assert TagStore(url).pending() == []
