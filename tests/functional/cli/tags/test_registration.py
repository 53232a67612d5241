"""``steelyard tags register --from-backend`` with a backend of another distribution."""

import functools
import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from steelyard.tags import Instance, TagStore
from support.tags.databases import upgrade
from support.third_parties import make_importable

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "steelyard.conf"
    path.write_text(
        f"[steelyard_tags]\nconnection = sqlite:///{tmp_path}/tags.db\nbackend = files\n"
    )
    return path


@pytest.fixture
def register(
    steelyard: Callable[..., tuple[int, str, str]],
    third_party: str,
    file: pathlib.Path,
    backend: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Return a function that registers servers for a project and a user."""
    make_importable(monkeypatch, third_party, "weekend_plugins")
    monkeypatch.setenv("WEEKEND_TAGS", str(backend))
    argv = ("--config-file", str(file), "tags", "register", "--project", "p", "--user", "u")
    return functools.partial(steelyard, *argv)


def there(backend: pathlib.Path, *names: str) -> None:
    for name in names:
        (backend / name).write_text("")


def test_all_servers_of_the_backend_are_registered_once(
    store: TagStore, backend: pathlib.Path, register: Any
) -> None:
    there(backend, "vm-1", "vm-2", "vm-3", "x" * 65, "taken")
    store.register(Instance("3d4c9b1e", "vm-3", "q", "v"))
    store.register(Instance("taken", "vm-4", "q", "v"))
    status, out, err = register("--from-backend", "-f", "json")
    left = [
        {"reason": "its ID is taken", "servers": 1, "example": "taken"},
        {"reason": "its name cannot be the ID of a server", "servers": 1, "example": "x" * 65},
    ]
    said = {"registered": 2, "already_registered": 1, "left_alone": 2, "why": left}
    assert (status, json.loads(out), err) == (0, said, "")
    assert store.instance("vm-1") == Instance("vm-1", "vm-1", "p", "u")
    said |= {"registered": 0, "already_registered": 3}
    assert json.loads(register("--from-backend", "-f", "json")[1]) == said


def test_match_chooses_servers_by_their_names(
    store: TagStore, backend: pathlib.Path, register: Any
) -> None:
    there(backend, "shop-1", "shop-2", "web-1")
    assert register("--from-backend", "--match", "shop-*")[0] == 0
    assert [each.id for each in store.instances()] == ["shop-1", "shop-2"]


def test_limit_of_the_project_leaves_servers_alone(
    store: TagStore, backend: pathlib.Path, register: Any, file: pathlib.Path
) -> None:
    file.write_text(file.read_text() + "instances_per_project = 2\n")
    there(backend, "vm-1", "vm-2", "vm-3", "vm-4")
    status, out, _ = register("--from-backend")
    assert status == 0
    assert "| 2: project 'p' has reached its limit of 2 instances, such as 'vm-3' |" in out
    assert store.count() == 2
    status, _, err = register("s9", "--name", "vm-4")
    assert status == 2
    assert "cannot register instance 'vm-4': project 'p' has reached its limit of 2" in err


def test_stopped_registration_reports_its_progress(
    store: TagStore, backend: pathlib.Path, register: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    there(backend, *(f"vm-{number:04}" for number in range(1100)))
    insert = TagStore.register_all
    done: list[Any] = []

    def registered(store: TagStore, wanted: Any, *more: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(wanted)
        return insert(store, wanted, *more)

    monkeypatch.setattr(TagStore, "register_all", registered)
    status, out, err = register("--from-backend")
    assert (status, out) == (130, "")
    assert "stopped after 1000 of 1100 servers, 1000 of which are registered now" in err
    monkeypatch.undo()
    assert store.count() == 1000


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--from-backend", "s1"], "leave out SERVER and --name"),
        (["--from-backend", "--name", "vm"], "leave out SERVER and --name"),
        (["s1"], "missing server: name it with SERVER and --name, or add --from-backend"),
        (["s1", "--name", "vm", "--match", "*"], "--match needs --from-backend"),
    ],
)
def test_contradictory_arguments_are_rejected(register: Any, argv: list[str], said: str) -> None:
    status, out, err = register(*argv)
    assert (status, out, said in err) == (2, "", True), err


def test_backend_in_memory_is_rejected(steelyard: Any, tmp_path: pathlib.Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    upgrade(TagStore(url))
    argv = ("tags", "register", "--from-backend", "--project", "p", "--user", "u", "--url", url)
    status, _, err = steelyard(*argv)
    assert status == 2
    assert "nothing to register: the backend 'memory' has only the servers of the database" in err
