"""Ownership of the tag database: commands record a backend, and change nothing of another one."""

import contextlib
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

from steelyard.tags import TagStore
from support.tags.databases import RECORDING, WRITING, dump
from support.tags.owned_database import BOTH, MEMORY, fill

pytestmark = pytest.mark.usefixtures("closed_databases")

COMMANDS = {**WRITING, **RECORDING}

Steelyard = Callable[..., tuple[int, str, str]]


def option_file(tmp_path: pathlib.Path, **values: object) -> str:
    path = tmp_path / "tags.conf"
    lines = [f"{name} = {value}" for name, value in values.items()]
    path.write_text("\n".join(["[steelyard_tags]", *lines, ""]))
    return str(path)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_command_without_configuration_changes_nothing_of_another_backend(
    store: TagStore, url: str, steelyard: Steelyard, command: Sequence[str]
) -> None:
    before = dump(url)
    status, out, err = steelyard("tags", *command, "--url", url)
    assert (status, out) == (2, "")
    assert "ganeti 'cluster.example.org'" in err
    assert "memory 'in-process'" in err
    assert dump(url) == before


@pytest.mark.parametrize("command", ["watch", "dispatch", "serve"])
def test_service_with_default_backend_does_not_start_on_another_backend(
    store: TagStore, url: str, steelyard: Steelyard, tmp_path: pathlib.Path, command: str
) -> None:
    before = dump(url)
    broker = "amqp://127.0.0.1:9/none"
    file = option_file(tmp_path, connection=url, transport_url=broker)
    status, out, err = steelyard("--config-file", file, "tags", command)
    assert (status, out) == (2, "")
    assert BOTH in err
    assert dump(url) == before


@pytest.mark.parametrize("command", ["list", "exists"])
def test_read_command_needs_no_backend(
    store: TagStore, url: str, steelyard: Steelyard, command: str
) -> None:
    tag = ["smtp"] if command == "exists" else []
    status, out, err = steelyard("tags", command, "s1", *tag, "--owner", "user", "--url", url)
    assert (status, err) == (0, "")
    assert "ACTIVE" in out


@pytest.mark.parametrize("command", WRITING.values(), ids=WRITING)
def test_command_without_recorded_backend_changes_nothing(
    url: str, steelyard: Steelyard, command: Sequence[str]
) -> None:
    # A database of the first release has instances and no recorded backend.
    store = TagStore(url)
    store.upgrade()
    fill(store)
    before = dump(url)
    status, out, err = steelyard("tags", *command, "--url", url)
    assert (status, out) == (2, "")
    assert "memory" in err
    assert re.search("records (no backend|none)", err)
    assert dump(url) == before


def test_application_with_default_backend_changes_nothing_of_another_backend(
    store: TagStore, url: str, tmp_path: pathlib.Path
) -> None:
    before = dump(url)
    program = (
        "import sys\n"
        "from oslo_config import cfg\n"
        "from falcon import testing\n"
        "from steelyard.tags.http import api\n"
        "cfg.CONF(['--config-file', sys.argv[1]], project='ours')\n"
        "headers = {'X-Project-Id': 'p', 'X-User-Id': 'u'}\n"
        "client = testing.TestClient(api.application, headers=headers)\n"
        "print(client.simulate_put('/servers/s1/tags/web', remote_addr='127.0.0.1').status_code)\n"
    )
    file = option_file(tmp_path, connection=url, trusted_proxies="127.0.0.1")
    run = subprocess.run(
        [sys.executable, "-c", program, file], text=True, capture_output=True, check=True
    )
    assert run.stdout == "500\n"
    assert BOTH in run.stderr
    assert dump(url) == before


def test_backend_show_reports_the_backend_that_set_recorded(url: str, steelyard: Steelyard) -> None:
    steelyard("db", "upgrade", "--schema", "tags", "--url", url)
    status, _, err = steelyard("tags", "backend", "show", "--url", url)
    assert (status, "the database records no backend" in err) == (2, True)
    for _ in "ab":  # recording the same backend twice changes nothing
        status, out, _ = steelyard("tags", "backend", "set", "memory", "--url", url, "-f", "json")
        assert status == 0
        assert json.loads(out) == {
            "driver": "memory",
            "name": "in-process",
            "instances": 0,
            "unfinished_operations": 0,
        }
    assert TagStore(url).backend() == MEMORY
    status, out, _ = steelyard("tags", "backend", "show", "--url", url, "-f", "value")
    assert (status, out) == (0, "memory\nin-process\n0\n0\n")


def test_backend_set_rejects_driver_that_the_configuration_does_not_name(
    store: TagStore, url: str, steelyard: Steelyard, tmp_path: pathlib.Path
) -> None:
    file = option_file(tmp_path, connection=url, backend="ganeti")
    before = dump(url)
    status, _, err = steelyard("--config-file", file, "tags", "backend", "set", "memory")
    assert (status, "[steelyard_tags] has backend = ganeti" in err) == (2, True)
    status, _, err = steelyard(
        "tags", "backend", "set", "memory", "--drop-unfinished", "--url", url
    )
    assert (status, "--drop-unfinished needs --moved" in err) == (2, True)
    status, _, err = steelyard("tags", "backend", "set", "ganety", "--url", url)
    assert (status, "'ganety'" in err) == (2, True)
    assert dump(url) == before


@pytest.mark.parametrize("named", [True, False])
def test_upgrade_records_the_backend_only_if_the_configuration_names_it(
    url: str, steelyard: Steelyard, tmp_path: pathlib.Path, named: bool
) -> None:
    values = {"backend": "memory"} if named else {}
    file = option_file(tmp_path, connection=url, **values)
    status, out, err = steelyard("--config-file", file, "db", "upgrade", "--schema", "tags")
    assert (status, err) == (0, "")
    assert TagStore(url).backend() == (MEMORY if named else None)
    assert ("belongs to backend memory 'in-process'" in out) is named
    assert ("no backend is recorded" in out) is not named


@pytest.mark.parametrize("revision", ["head", "0006"])
def test_upgrade_for_another_backend_changes_nothing(
    store: TagStore, url: str, steelyard: Steelyard, tmp_path: pathlib.Path, revision: str
) -> None:
    if revision != "head":  # the table of the backend exists, a later revision is missing
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute("UPDATE steelyard_tags_version SET version_num = ?", [revision])
            connection.commit()
    file = option_file(tmp_path, connection=url, backend="memory")
    before = dump(url)
    status, _, err = steelyard("--config-file", file, "db", "upgrade", "--schema", "tags")
    assert (status, BOTH in err) == (2, True)
    assert dump(url) == before
