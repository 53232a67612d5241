"""The JSON that the reference shows for each command that lists or shows."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme
import yaml

from steelyard import cli
from steelyard.consumers import ConsumerStore
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.service import Operator
from steelyard.tags.states.values import Instance
from support.cli.commands import DISPLAYING
from support.clients import canned_services
from support.consumers.store_laws import C1, C2, P1, body
from support.repository import ROOT
from support.services import brokers
from support.tags import queues
from support.tags.databases import upgrade
from support.tags.fake_ganeti import CLUSTER, Ganeti, served

pytestmark = [
    pytest.mark.usefixtures("closed_databases"),
    # openstacksdk warns of a missing InfluxDB.
    pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)"),
]

PAGE = (ROOT / "docs" / "reference" / "output.rst").read_text()
SERVER = "3d4c9b1e"

_EXAMPLE = re.compile(
    r"^``steelyard (?P<command>.*)``$\n\n\.\. code-block:: json\n(?P<output>(?:\n| +.*\n)+)",
    re.MULTILINE,
)
EXAMPLES = [
    pytest.param(match["command"], textwrap.dedent(match["output"]), id=match["command"])
    for match in _EXAMPLE.finditer(PAGE)
]


@contextlib.contextmanager
def consumers_db() -> Iterator[None]:
    """Create a store with two consumers of a project, one of a misspelt type."""
    with ConsumerStore("sqlite:///consumers.db") as store:
        store.upgrade()
        for consumer, kind in ((C1, "INSTANCE"), (C2, "INTANCE")):
            written = body(kind=kind, p1={"VCPU": 2, "MEMORY_MB": 4096})
            store.put_allocations(consumer, {**written, "project_id": "shop"})
    yield


@contextlib.contextmanager
def tags_db() -> Iterator[None]:
    """Create a tag database with one tag of the system."""
    with TagStore("sqlite:///tags.db") as store:
        upgrade(store)
        backend = MemoryBackend()
        backend.adopt({"snf-1042": []})
        service = TagService(store, backend)
        service.register(Instance(SERVER, "snf-1042", "shop", "ada"))
        service.add(Operator(), SERVER, "smtp")
        service.jobs.poll()
    yield


@contextlib.contextmanager
def ganeti_conf() -> Iterator[None]:
    """Serve a Ganeti whose instance has a tag that the database lacks."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path("ca.pem")
    with TagStore("sqlite:///ganeti.db") as store:
        upgrade(store, BackendIdentity("ganeti", CLUSTER))
        store.register(Instance(SERVER, "snf-1042", "shop", "ada"))
    known = Ganeti(instances={"snf-1042": ["cyclades:user:web"]})
    with served(known, authority.issue_cert("127.0.0.1")):
        conf = pathlib.Path("ganeti.conf")
        conf.touch(mode=0o600)  # it has a password
        conf.write_text(
            "[steelyard_tags]\nconnection = sqlite:///ganeti.db\nbackend = ganeti\n"
            f"ganeti_url = {known.url}\nganeti_user = steelyard\nganeti_password = secret\n"
            "ganeti_ca = ca.pem\n"
        )
        yield


@contextlib.contextmanager
def broker_conf() -> Iterator[None]:
    """Configure a queue at RabbitMQ with a dead letter; skip the test without RabbitMQ."""
    with queues.own_queue(brokers.needed()) as broker:
        with broker.connected() as connection:
            broker.dead_letter(connection.default_channel, b"{}", "malformed")
        conf = pathlib.Path("broker.conf")
        conf.touch(mode=0o600)  # it has a password
        conf.write_text(
            f"[steelyard_tags]\ntransport_url = {brokers.url()}\nqueue = {broker.queue.name}\n"
        )
        yield


@contextlib.contextmanager
def mycloud() -> Iterator[None]:
    """Serve a Placement with a consumer without a type."""
    version = {"id": "v1.0", "max_version": "1.39", "min_version": "1.0", "status": "CURRENT"}
    root = {"versions": [{**version, "links": [{"rel": "self", "href": ""}]}]}
    consumer = {**body(1, kind="unknown", p1={"VCPU": 2}), "project_id": "shop"}
    providers = [{"uuid": P1, "name": "node1"}]
    answers = {
        "/": root,
        "/resource_providers": {"resource_providers": providers},
        f"/resource_providers/{P1}/allocations": {"allocations": {C1: {}}},
        f"/allocations/{C1}": consumer,
    }
    canned = {path: (200, json.dumps(answer).encode()) for path, answer in answers.items()}
    with canned_services.answering(canned) as server:
        path = canned_services.describe(pathlib.Path(os.pardir), server.url)
        path.write_text(path.read_text().replace('"here"', '"mycloud"'))
        yield


PREPARED: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "consumers.db": consumers_db,
    "tags.db": tags_db,
    "ganeti.conf": ganeti_conf,
    "broker.conf": broker_conf,
    "mycloud": mycloud,
}
"""The databases and services that examples use, by the name in their command."""


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any) -> Iterator[Any]:
    """Return a function that runs a command and returns its status, its output and its errors."""
    here = shutil.copytree(ROOT / "docs" / "examples", tmp_path / "examples")
    monkeypatch.chdir(here)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    with contextlib.ExitStack() as prepared:

        def run(command: str) -> tuple[int, str, str]:
            for name, prepare in PREPARED.items():
                if name in command:
                    prepared.enter_context(prepare())
            status = cli.main(shlex.split(command))
            out, err = capsys.readouterr()
            return status, out, err

        yield run


def shape(value: Any) -> Any:
    """Return the keys and the types of a value; in a list, those of its different elements."""
    match value:
        case dict():
            return {key: shape(value[key]) for key in sorted(value)}
        case list():
            return sorted({repr(shape(each)) for each in value})
        case _:
            return type(value).__name__


def is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": None}),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": 1.0}, {"a": 1}),
        ([{"a": 1}], []),
        ([{"a": 1}], [{"a": 1}, {"a": None}]),
    ],
)
def test_shape_tells_structures_apart(left: Any, right: Any) -> None:
    assert shape(left) != shape(right)


def test_shape_ignores_values_order_of_keys_and_repetitions() -> None:
    assert shape([{"a": 1, "b": ""}]) == shape([{"b": "x", "a": 2}, {"a": 3, "b": ""}])


@pytest.mark.parametrize("name", DISPLAYING)
def test_reference_has_an_example_of_each_command(name: str) -> None:
    section = re.search(
        rf"^{name}\n-+\n\n(.*?)(?=^[^\n]+\n-+\n|\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
    assert section, "there is no section"
    commands = [match["command"] for match in _EXAMPLE.finditer(section[1])]
    assert commands
    assert all(f"{each} ".startswith(f"{name} ") for each in commands)


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_example_has_keys_in_snake_case(command: str, shown: str) -> None:
    document = json.loads(shown)
    rows = [row for each in document.values() if is_rows(each) for row in each]
    for each in (document, document.get("summary", {}), *rows):
        assert [key for key in each if not re.fullmatch("[a-z]+(_[a-z]+)*", key)] == []


@pytest.mark.parametrize(("form", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_output_has_the_structure_of_the_example(
    run: Any, command: str, shown: str, form: str, load: Callable[[str], Any]
) -> None:
    _, out, err = run(command.replace("-f json", f"-f {form}"))
    assert out, err
    assert shape(load(out)) == shape(json.loads(shown))
