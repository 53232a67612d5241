"""steelyard tags reconcile, with a backend of another distribution."""

import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import termios
from typing import Any

import pytest
import sqlalchemy as sa
from tag_databases import upgrade

from steelyard.tags import TagStore, encode
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.model import instances
from steelyard.tags.states import Change, Instance, Kind, Mark, Operation, State, Status

pytestmark = pytest.mark.usefixtures("closed_databases")

SOURCE = pathlib.Path(__file__).parent / "third_party"
USER = "cyclades:user:"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with the other distribution in it, to be put on the path."""
    target = str(tmp_path_factory.mktemp("scratch"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target]
    subprocess.run([*command, str(SOURCE)], check=True)
    return target


@pytest.fixture
def backend(tmp_path: pathlib.Path) -> pathlib.Path:
    directory = tmp_path / "backend"
    directory.mkdir()
    return directory


@pytest.fixture
def store(tmp_path: pathlib.Path) -> TagStore:
    made = TagStore(f"sqlite:///{tmp_path}/tags.db")
    upgrade(made, BackendIdentity("files", "backend"))
    return made


@pytest.fixture
def reconcile(scratch: str, tmp_path: pathlib.Path, backend: pathlib.Path) -> Any:
    file = tmp_path / "steelyard.conf"
    file.write_text(
        f"[steelyard_tags]\nconnection = sqlite:///{tmp_path}/tags.db\nbackend = files\n"
    )

    def run(
        *argv: str, stderr: int = subprocess.PIPE, pause: float = 0.0
    ) -> tuple[int, str, str | None]:
        done = subprocess.run(
            [
                *(sys.executable, "-c", "from steelyard.cli import main; raise SystemExit(main())"),
                *("--config-file", str(file), "tags", "reconcile", *argv),
            ],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            check=False,
            env={
                **os.environ,
                "PYTHONPATH": scratch,
                "WEEKEND_TAGS": str(backend),
                "WEEKEND_PAUSE": str(pause),
            },
        )
        return done.returncode, done.stdout, done.stderr

    return run


def there(backend: pathlib.Path, server: str, *names: str) -> None:
    (backend / f"vm-{server}").write_text("\n".join(encode(name, USER) for name in names))


def put(store: TagStore, server: str, tags: dict[str, Status], *begun: Operation) -> None:
    store.register(Instance(server, f"vm-{server}", "p", "u"))
    change = Change({(USER, name): status for name, status in tags.items()}, begun=begun)
    store.change(server, lambda _: (change, None))


def test_it_says_what_it_does_and_the_second_time_there_is_nothing_to_do(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    put(store, "1", {"gone": Status.ACTIVE, "kept": Status.ACTIVE})
    put(store, "2", {"done": Status.PENDADD}, Operation("o", Kind.ADD, USER, ("done",), 0.0, 5))
    put(store, "3", {})
    put(store, "4", {"kept": Status.ACTIVE})
    there(backend, "1", "kept", "by hand")
    there(backend, "2", "done")
    (backend / "vm-3").write_text("other:a cyclades:user:a_b")
    planned = [
        {"Action": "activated", "Servers": 1, "Tags": 1, "Why": "the backend has it"},
        {"Action": "created", "Servers": 1, "Tags": 1, "Why": "the backend has it"},
        {"Action": "deleted", "Servers": 1, "Tags": 1, "Why": "the backend does not have it"},
        {"Action": "left alone", "Servers": 1, "Tags": 2, "Why": "it is nobody's here"},
        {
            "Action": "left alone",
            "Servers": 1,
            "Tags": 0,
            "Why": "the backend has no such instance",
        },
    ]
    before = store.state("1")
    for argv in (["--dry-run"], []):
        assert store.state("1") == before
        status, out, _ = reconcile("-f", "json", *argv)
        said = json.loads(out)
        assert [each.pop("Example") for each in said] == [
            *("2 done", "1 by hand", "1 gone", "3 cyclades:user:a_b", "4"),
        ]
        assert (status, said) == (0, planned)
    assert list(store.state("1").of(USER)) == ["by hand", "kept"]
    assert store.state("2").operations == ()
    _, out, _ = reconcile("-f", "json", "-c", "Action", "-c", "Servers")
    assert json.loads(out) == [
        {"Action": "left alone", "Servers": 1},
        {"Action": "left alone", "Servers": 1},
        {"Action": "nothing to do", "Servers": 2},
    ]


def test_each_tag_can_be_listed_and_an_owner_be_named(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    put(store, "1", {"gone": Status.ACTIVE})
    there(backend, "1", "new")
    status, out, _ = reconcile("--long", "--owner", "system", "-f", "json")
    assert (status, json.loads(out)) == (0, [])
    status, out, _ = reconcile("--long", "--owner", "user", "-f", "json")
    kept = {"Server": "1", "Owner": "user"}
    assert json.loads(out) == [
        {**kept, "Tag": "gone", "Action": "deleted", "Why": "the backend does not have it"},
        {**kept, "Tag": "new", "Action": "created", "Why": "the backend has it"},
    ]


def test_a_backend_that_counts_from_1_again(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    put(store, "1", {"kept": Status.ACTIVE})
    store.change("1", lambda _: (Change(marked={(USER, "kept"): Mark(1000, there=True)}), None))
    there(backend, "1", "kept")
    status, _, err = reconcile("--jobs-anew", "--dry-run")
    assert (status, "leave --dry-run out" in err) == (2, True)
    assert store.state("1").marks
    assert reconcile("--jobs-anew")[0] == 0
    assert store.state("1") == State({(USER, "kept"): Status.ACTIVE})


def test_a_dry_run_that_cannot_go_on_says_that_nothing_is_changed(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    put(store, "1", {})
    (backend / "vm-1").mkdir()
    status, _, err = reconcile("--dry-run")
    assert status == 2
    assert "stopped after 0 of 1 servers; what is listed is looked at; nothing is changed" in err


def test_what_is_done_is_shown_when_it_cannot_go_on(
    store: TagStore, backend: pathlib.Path, reconcile: Any
) -> None:
    for number in range(501):
        put(store, f"{number:03}", {})
        there(backend, f"{number:03}", "new")
    (backend / "vm-500").unlink()
    (backend / "vm-500").mkdir()
    status, out, err = reconcile("-f", "json", "-c", "Action", "-c", "Tags")
    assert status == 2
    assert json.loads(out) == [{"Action": "created", "Tags": 500}]
    assert "'vm-500': Is a directory" in err
    assert "stopped after 500 of 501 servers; what is listed is done; run" in err


def test_where_somebody_looks_a_bar_shows_how_far_it_is(store: TagStore, reconcile: Any) -> None:
    """Only where it takes long, and on the side, so that what is listed can be read by programs."""
    names = [f"{number:04}" for number in range(1001)]
    rows = [{"id": name, "name": name, "project": "p", "user": "u"} for name in names]
    store.in_a_transaction(lambda connection: connection.execute(sa.insert(instances), rows))
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (24, 80))
    with open(ours, "rb", buffering=0) as screen, open(theirs, "wb", buffering=0):
        status, out, _ = reconcile("-f", "json", "-c", "Servers", stderr=theirs, pause=1.1)
        assert select.select([screen], [], [], 0)[0], "nothing is shown"
        shown = screen.read(100_000).decode()
    assert (status, json.loads(out)) == (0, [{"Servers": 1001}])
    assert re.search(r"servers: +\d+%.* 1000/1001 ", shown)
    assert reconcile("-f", "json", pause=1.1)[2] == ""


def test_the_backend_in_memory_knows_nothing_else(
    store: TagStore, capsys: Any, tmp_path: Any
) -> None:
    from steelyard import cli

    store.move_to_backend(MemoryBackend().identity())
    assert cli.main(["tags", "reconcile", "--url", f"sqlite:///{tmp_path}/tags.db"]) == 2
    assert "the backend memory has nothing but what the database has" in capsys.readouterr().err
