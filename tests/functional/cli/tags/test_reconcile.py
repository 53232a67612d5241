"""``steelyard tags reconcile`` with a backend of another distribution."""

import functools
import json
import os
import pathlib
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.tags import TagStore, encode
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.database.model import instances
from steelyard.tags.states.values import (
    Instance,
    Kind,
    Operation,
    State,
    StateChange,
    Status,
    TagMark,
)
from support.cli.served_command import COMMAND
from support.third_parties import make_importable

pytestmark = pytest.mark.usefixtures("closed_databases")

USER = "cyclades:user:"


@pytest.fixture
def file(tmp_path: pathlib.Path) -> str:
    """Return the path of an option file with the database and the third-party backend."""
    path = tmp_path / "steelyard.conf"
    path.write_text(
        f"[steelyard_tags]\nconnection = sqlite:///{tmp_path}/tags.db\nbackend = files\n"
    )
    return str(path)


@pytest.fixture
def reconcile(
    steelyard: Callable[..., tuple[int, str, str]],
    third_party: str,
    file: str,
    backend: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Return a function that runs reconcile and returns its status, output and errors."""
    make_importable(monkeypatch, third_party, "weekend_plugins")
    monkeypatch.setenv("WEEKEND_TAGS", str(backend))
    return functools.partial(steelyard, "--config-file", file, "tags", "reconcile")


def there(backend: pathlib.Path, server: str, *names: str) -> None:
    (backend / f"vm-{server}").write_text("\n".join(encode(name, USER) for name in names))


def put(store: TagStore, server: str, tags: dict[str, Status], *begun: Operation) -> None:
    store.register(Instance(server, f"vm-{server}", "p", "u"))
    change = StateChange({Tag(USER, name): status for name, status in tags.items()}, begun=begun)
    store.change(server, lambda _: (change, None))


def test_reconcile_lists_its_changes_and_is_idempotent(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    put(store, "1", {"gone": Status.ACTIVE, "kept": Status.ACTIVE})
    put(
        store,
        "2",
        {"done": Status.PENDADD},
        Operation("o", Kind.ADD, USER, (Tag(USER, "done"),), 0.0, 5),
    )
    put(store, "3", {})
    put(store, "4", {"kept": Status.ACTIVE})
    there(backend, "1", "kept", "by hand")
    there(backend, "2", "done")
    (backend / "vm-3").write_text("other:a cyclades:user:a_b")
    planned = [
        {"action": "activated", "servers": 1, "tags": 1, "why": "the backend has it"},
        {"action": "created", "servers": 1, "tags": 1, "why": "the backend has it"},
        {"action": "deleted", "servers": 1, "tags": 1, "why": "the backend does not have it"},
        {"action": "left alone", "servers": 1, "tags": 2, "why": "it belongs to no owner"},
        {
            "action": "left alone",
            "servers": 1,
            "tags": 0,
            "why": "the backend does not have the instance",
        },
    ]
    before = store.state("1")
    for argv in (["--dry-run"], []):
        assert store.state("1") == before
        status, out, _ = reconcile("-f", "json", *argv)
        said = json.loads(out)["actions"]
        assert [each.pop("example") for each in said] == [
            *("2 done", "1 by hand", "1 gone", "3 cyclades:user:a_b", "4"),
        ]
        assert (status, said) == (0, planned)
    assert list(store.state("1").of(USER)) == ["by hand", "kept"]
    assert store.state("2").operations == ()
    _, out, _ = reconcile("-f", "json", "-c", "Action", "-c", "Servers")
    assert json.loads(out)["actions"] == [
        {"action": "left alone", "servers": 1},
        {"action": "left alone", "servers": 1},
        {"action": "nothing to do", "servers": 2},
    ]


def test_reconcile_long_lists_the_tags_of_one_owner(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    put(store, "1", {"gone": Status.ACTIVE})
    there(backend, "1", "new")
    status, out, _ = reconcile("--long", "--owner", "system", "-f", "json")
    assert (status, json.loads(out)["tags"]) == (0, [])
    status, out, _ = reconcile("--long", "--owner", "user", "-f", "json")
    kept = {"server": "1", "owner": "user"}
    assert json.loads(out)["tags"] == [
        {**kept, "tag": "gone", "action": "deleted", "why": "the backend does not have it"},
        {**kept, "tag": "new", "action": "created", "why": "the backend has it"},
    ]


def test_reconcile_forget_jobs_forgets_the_marks(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    put(store, "1", {"kept": Status.ACTIVE})
    store.change(
        "1", lambda _: (StateChange(marked={Tag(USER, "kept"): TagMark(1000, there=True)}), None)
    )
    there(backend, "1", "kept")
    status, _, err = reconcile("--forget-jobs", "--dry-run")
    assert (status, "leave out --dry-run" in err) == (2, True)
    assert store.state("1").marks
    assert reconcile("--forget-jobs")[0] == 0
    assert store.state("1") == State({Tag(USER, "kept"): Status.ACTIVE})


def test_reconcile_forgets_missing_servers(
    store: TagStore, backend: pathlib.Path, reconcile: Any, caplog: pytest.LogCaptureFixture
) -> None:
    put(store, "1", {"kept": Status.ACTIVE})
    put(store, "2", {"gone": Status.ACTIVE})
    creation = Operation("o", Kind.CREATE, USER, (), time.time())
    put(store, "3", {}, creation)
    there(backend, "1", "kept")
    rows = [
        {"server": "2", "action": "forgotten", "why": "the backend does not have the instance"},
        {"server": "3", "action": "left alone", "why": "it is still being created"},
    ]
    argv = ("--forget-missing", "--long", "-f", "json", "-c", "Server", "-c", "Action", "-c", "Why")
    status, out, _ = reconcile(*argv, "--dry-run")
    assert (status, json.loads(out)["tags"]) == (0, rows)
    assert store.count() == 3
    with caplog.at_level("INFO", "steelyard.tags.audit"):
        status, out, _ = reconcile(*argv)
    assert (status, json.loads(out)["tags"]) == (0, rows)
    assert [each.id for each in store.instances()] == ["1", "3"]
    (line,) = caplog.messages
    assert line.startswith('event=forgotten operation=- caller="operator" project="p" server="2"')
    assert line.endswith('reason="the backend does not have the instance"')
    assert json.loads(reconcile(*argv)[1])["tags"] == rows[1:]


def test_reconcile_forgets_no_server_if_the_backend_has_none(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    assert reconcile("--forget-missing")[0] == 0
    put(store, "1", {"kept": Status.ACTIVE})
    put(store, "2", {})
    status, out, err = reconcile("--forget-missing")
    assert (status, out) == (2, "")
    assert "cannot forget missing instances: the backend has none of the 2 registered" in err
    assert store.count() == 2


def test_reconcile_forgets_servers_only_for_all_owners(store: TagStore, reconcile: Any) -> None:
    status, _, err = reconcile("--forget-missing", "--owner", "user")
    assert (status, "leave out --owner" in err) == (2, True)


def test_failed_dry_run_reports_that_nothing_was_changed(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    put(store, "1", {})
    (backend / "vm-1").mkdir()
    status, _, err = reconcile("--dry-run")
    assert status == 2
    assert "stopped after 0 of 1 servers; nothing was changed" in err


def test_failed_reconcile_lists_the_changes_made(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    for number in range(501):
        put(store, f"{number:03}", {})
        there(backend, f"{number:03}", "new")
    (backend / "vm-500").unlink()
    (backend / "vm-500").mkdir()
    status, out, err = reconcile("-f", "json", "-c", "Action", "-c", "Tags")
    assert status == 2
    assert json.loads(out)["actions"] == [{"action": "created", "tags": 500}]
    assert "'vm-500': Is a directory" in err
    assert "\nsteelyard: stopped after 500 of 501 servers; the listed changes are made; run" in err


@pytest.mark.parametrize("on_a_terminal", [True, False])
def test_progress_is_shown_only_on_a_terminal(
    store: TagStore,
    third_party: str,
    file: str,
    backend: pathlib.Path,
    *,
    on_a_terminal: bool,
) -> None:
    """Check that the progress bar goes to standard error, so that programs can read the rows."""
    names = [f"{number:04}" for number in range(1001)]
    rows = [{"id": name, "name": name, "project": "p", "user": "u"} for name in names]
    store.in_a_transaction(lambda connection: connection.execute(sa.insert(instances), rows))
    command = [*COMMAND, "--config-file", file, "tags", "reconcile", "-f", "json", "-c", "Servers"]
    environment = {
        "PYTHONPATH": third_party,
        "WEEKEND_TAGS": str(backend),
        "WEEKEND_PAUSE": "1.1",
    }
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (24, 80))
    with open(ours, "rb", buffering=0) as screen, open(theirs, "wb", buffering=0):
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=theirs if on_a_terminal else subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, **environment},
        )
        shows = bool(select.select([screen], [], [], 0)[0])
        shown = screen.read(100_000).decode() if shows else ""
    assert json.loads(done.stdout)["actions"] == [{"servers": 1001}]
    assert bool(re.search(r"servers: +\d+%.* 1000/1001 ", shown)) is on_a_terminal
    assert not done.stderr


def test_reconcile_rejects_the_backend_in_memory(
    store: TagStore, steelyard: Any, tmp_path: Any
) -> None:
    store.move_to_backend(MemoryBackend().identity())
    status, _, err = steelyard("tags", "reconcile", "--url", f"sqlite:///{tmp_path}/tags.db")
    assert status == 2
    assert "nothing to reconcile: the backend 'memory' has only the tags of the database" in err
