"""The commands ``tags servers`` and ``tags unregister``."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.tags import Instance, TagService
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.service import Caller, Operator
from support.tags.served_api import served, tag_service, trusting

pytestmark = pytest.mark.usefixtures("closed_databases")

USER = Caller("p", "u")


@pytest.fixture
def service(tmp_path: Any, closed_databases: None) -> TagService:
    made = tag_service(tmp_path)
    assert isinstance(made.backend, MemoryBackend)
    for number, project in enumerate("ppq"):
        made.backend.adopt({f"i-{number}": []})
        made.register(Instance(f"s{number}", f"i-{number}", project, "u"))
    made.replace(USER, "s0", ["smtp", "ü"])
    made.jobs.poll()
    made.add(USER, "s1", "smtp")
    return made


@pytest.fixture
def url(service: TagService, tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/tags.db"


@pytest.fixture
def endpoint(service: TagService) -> Iterator[str]:
    with served(trusting(service)) as url:
        yield url


@pytest.fixture(params=["over HTTP", "in the database"])
def command(request: Any, steelyard: Any) -> Any:
    """Return a function that runs a command on tags of the user, once for each source."""
    if request.param == "over HTTP":
        way = ["--endpoint", request.getfixturevalue("endpoint"), "--project", "p", "--user", "u"]
    else:
        way = ["--url", request.getfixturevalue("url"), "--owner", "user"]

    def run(*argv: str) -> tuple[int, str, str]:
        answer: tuple[int, str, str] = steelyard("tags", *argv, *way)
        return answer

    return run


def ids(said: tuple[int, str, str]) -> list[str]:
    status, out, err = said
    assert (status, err) == (0, "")
    return [each["server"] for each in json.loads(out)["servers"]]


def test_servers_are_listed_with_their_tags(command: Any) -> None:
    status, out, err = command("servers")
    assert (status, err) == (0, "")
    assert out.splitlines()[3:5] == [
        "| s0     | i-0  | p       | u    | smtp, ü        |",
        "| s1     | i-1  | p       | u    | smtp (PENDADD) |",
    ]
    found = json.loads(command("servers", "-f", "json", "--tags", "ü,smtp")[1])
    tags = {"smtp": "ACTIVE", "ü": "ACTIVE"}
    server = {"server": "s0", "name": "i-0", "project": "p", "user": "u", "tags": tags}
    assert found == {"summary": {"servers": 1}, "servers": [server]}


def test_options_choose_servers(command: Any) -> None:
    listed = ("servers", "-f", "json", "--tags-any", "smtp,other")
    assert ids(command(*listed)) == ["s0", "s1"]
    assert ids(command(*listed, "--not-tags", "smtp,ü")) == ["s1"]
    assert ids(command(*listed, "--not-tags-any", "ü")) == ["s1"]
    assert ids(command(*listed, "--limit", "1")) == ["s0"]
    assert ids(command(*listed, "--limit", "1", "--marker", "s0")) == ["s1"]
    assert ids(command(*listed, "--marker", "s1")) == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--limit", "0"], "invalid --limit 0: expected at least 1"),
        (["--marker", "a/b"], "invalid server id 'a/b'"),
        (["--tags", "a,,b"], "tags: invalid tag ''"),
    ],
)
def test_invalid_option_is_explained(command: Any, argv: list[str], said: str) -> None:
    status, out, err = command("servers", *argv)
    assert (status, out, said in err) == (2, "", True), err


def test_operator_lists_servers_of_all_projects(steelyard: Any, url: str) -> None:
    assert ids(steelyard("tags", "servers", "--url", url, "-f", "json")) == ["s0", "s1", "s2"]
    of_the_system = steelyard("tags", "servers", "--url", url, "-f", "json", "--tags", "smtp")
    assert ids(of_the_system) == []


def test_tags_of_all_servers_are_listed(command: Any) -> None:
    status, out, err = command("list")
    assert (status, err) == (0, "")
    assert out.splitlines()[3:6] == [
        "| s0     | p       | user  | smtp | ACTIVE  |",
        "| s0     | p       | user  | ü    | ACTIVE  |",
        "| s1     | p       | user  | smtp | PENDADD |",
    ]
    found = json.loads(command("list", "--tags", "ü", "-f", "json")[1])
    row = {"server": "s0", "project": "p", "owner": "user", "tag": "ü", "status": "ACTIVE"}
    assert found["summary"] == {"servers": 1, "tags": 2}
    assert found["tags"] == [{**row, "tag": "smtp"}, row]
    listed = json.loads(command("list", "--marker", "s0", "--limit", "1", "-f", "json")[1])
    assert [each["server"] for each in listed["tags"]] == ["s1"]
    assert command("list", "--not-tags-any", "smtp", "--tags", "ü")[1] == ""


def test_operator_lists_the_tags_of_all_owners(
    steelyard: Any, service: TagService, url: str
) -> None:
    service.add(Operator(), "s2", "own")
    service.jobs.poll()
    every = json.loads(steelyard("tags", "list", "--url", url, "-f", "json")[1])
    assert every["summary"] == {"servers": 3, "tags": 4}
    assert every["tags"][-1] == {
        "server": "s2",
        "project": "q",
        "owner": "system",
        "tag": "own",
        "status": "ACTIVE",
    }
    argv = ("tags", "list", "--url", url, "--owner", "system", "-f", "json")
    assert json.loads(steelyard(*argv)[1])["summary"] == {"servers": 3, "tags": 1}


@pytest.mark.parametrize("argv", [["--tags", "a"], ["--limit", "1"], ["--marker", "s0"]])
def test_list_of_one_server_takes_no_filters(command: Any, argv: list[str]) -> None:
    status, out, err = command("list", "s0", *argv)
    assert (status, out) == (2, "")
    assert "options that choose servers exclude SERVER" in err


def test_unregister_needs_a_server_that_the_backend_lost(
    steelyard: Any, service: TagService, endpoint: str, url: str
) -> None:
    argv = ("tags", "unregister", "s0", "--endpoint", endpoint, "--project", "p", "--user", "u")
    status, out, err = steelyard(*argv)
    assert (status, out) == (2, "")
    assert err == (
        "steelyard: cannot unregister 's0': the backend has instance 'i-0'; remove it there first\n"
    )
    assert isinstance(service.backend, MemoryBackend)
    service.backend.remove("i-0")
    assert steelyard(*argv) == (0, "", "")
    assert steelyard(*argv) == (2, "", "steelyard: no instance 's0'\n")
    # The backend in the process of the command has all instances of the database.
    status, _, err = steelyard("tags", "unregister", "s1", "--url", url)
    assert (status, "the backend has instance 'i-1'" in err) == (2, True)
