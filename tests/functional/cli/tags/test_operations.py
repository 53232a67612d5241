"""The commands on tags: over HTTP as a user, and on the database as the operator."""

import json
import logging
import pathlib
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard import cli
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import Owner
from steelyard.tags.service import Caller
from steelyard.tags.states.values import Instance
from support.tags.served_api import polled, served, tag_service, trusting

with warnings.catch_warnings():
    # A module that WebOb imports warns of its removal.
    warnings.simplefilter("ignore")
    from keystonemiddleware import auth_token, fixture

pytestmark = [
    pytest.mark.usefixtures("closed_databases"),
    # openstacksdk warns of a missing InfluxDB and of this service type.
    pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)"),
]

SERVER = "3d4c9b1e"
USER = Caller("p", "u")


@pytest.fixture
def service(tmp_path: Any, closed_databases: None) -> TagService:
    made = tag_service(tmp_path)
    assert isinstance(made.backend, MemoryBackend)
    made.backend.adopt({"i-1": []})
    made.register(Instance(SERVER, "i-1", "p", "u"))
    return made


@pytest.fixture
def url(service: TagService, tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/tags.db"


@pytest.fixture
def endpoint(service: TagService) -> Iterator[str]:
    with served(trusting(service)) as url, polled(service):
        yield url


@pytest.fixture
def clouds(service: TagService, tmp_path: Any, monkeypatch: Any) -> Iterator[None]:
    """Describe a cloud "here" whose tag service authenticates by keystonemiddleware alone."""
    # Its messages would mix with those of the command.
    monkeypatch.setattr(logging.getLogger("keystonemiddleware.auth_token"), "disabled", True)
    front = auth_token.AuthProtocol(
        trusting(service, trusted_proxies=[]), {"www_authenticate_uri": "http://keystone.invalid"}
    )
    with fixture.AuthTokenFixture() as tokens, served(front) as url, polled(service):
        tokens.add_token_data(token_id="t", project_id="p", user_id="u", role_list=["member"])
        cloud = {"auth_type": "admin_token", "auth": {"endpoint": url, "token": "t"}}
        theirs = {**cloud, "auth": {"endpoint": url, "token": "nobody's"}}
        path = tmp_path / "clouds.yaml"
        path.write_text(json.dumps({"clouds": {"here": cloud, "theirs": theirs}}))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
        yield


@pytest.fixture(params=["over HTTP", "in a cloud", "in the database"])
def tags(request: Any, steelyard: Any) -> Any:
    """Return a function that runs a command on tags, once for each source."""
    if request.param == "over HTTP":
        way = ["--endpoint", request.getfixturevalue("endpoint"), "--project", "p", "--user", "u"]
    elif request.param == "in a cloud":
        request.getfixturevalue("clouds")
        way = ["--os-cloud", "here"]
    else:
        way = ["--url", request.getfixturevalue("url"), "--owner", "user"]

    def run(name: str, *argv: str) -> tuple[int, str, str]:
        answer: tuple[int, str, str] = steelyard("tags", name, SERVER, *argv, *way)
        return answer

    return run


def wait(tags: Any, tag: str) -> None:
    deadline = time.monotonic() + 20
    while (said := tags("exists", tag))[1] != "ACTIVE\n":
        assert said[0] == 0, said
        assert time.monotonic() < deadline


def test_tags_are_added_and_listed(tags: Any) -> None:
    status, out, err = tags("add", "web", "ü b", "web")
    assert (status, err) == (0, "")
    assert "| web | added  |" in out
    wait(tags, "web")
    wait(tags, "ü b")
    _, out, _ = tags("list")
    assert out.splitlines()[3:5] == ["| web | ACTIVE |", "| ü b | ACTIVE |"]
    assert json.loads(tags("list", "-f", "json")[1])["tags"][0] == {
        "tag": "web",
        "status": "ACTIVE",
    }
    added = json.loads(tags("add", "web", "db", "-f", "json")[1])["tags"]
    assert added == [{"tag": "web", "result": "unchanged"}, {"tag": "db", "result": "added"}]


def test_add_waits_until_the_tags_are_active(tags: Any) -> None:
    status, out, err = tags("add", "web", "ü", "--wait")
    assert (status, err) == (0, "")
    assert "| web | active |" in out
    assert tags("exists", "ü")[1] == "ACTIVE\n"
    assert json.loads(tags("add", "web", "--wait", "-f", "json")[1])["tags"] == [
        {"tag": "web", "result": "active"}
    ]


def test_tags_are_removed(tags: Any) -> None:
    tags("add", "a", "b")
    wait(tags, "b")
    status, out, _ = tags("remove", "a", "b", "-f", "csv")
    assert (status, out.split()[1:]) == (0, ['"a","deleted"', '"b","deleted"'])
    assert json.loads(tags("list", "-f", "json")[1])["tags"] == []


def test_remove_stops_at_a_failure_and_lists_finished_tags(tags: Any) -> None:
    tags("add", "a")
    wait(tags, "a")
    status, out, err = tags("remove", "a", "b", "c", "d")
    assert status == 2
    assert "| a   | deleted |" in out
    assert err == ("steelyard: no tag 'b'\nsteelyard: stopped at 'b'; not tried: 'c', 'd'\n")
    assert tags("remove", "b", "c") == (2, "", "steelyard: no tag 'b'\n")


def test_invalid_tag_changes_nothing(tags: Any) -> None:
    status, out, err = tags("add", "good", "b/ad")
    assert (status, out) == (2, "")
    assert "invalid tag 'b/ad': it contains '/'" in err
    assert json.loads(tags("list", "-f", "json")[1])["tags"] == []


def test_replace_and_clear_change_all_tags(tags: Any) -> None:
    tags("add", "a")
    wait(tags, "a")
    _, out, _ = tags("replace", "b", "a", "-f", "json")
    assert [row["tag"] for row in json.loads(out)["tags"]] == ["a", "b"]
    wait(tags, "b")
    status, out, _ = tags("clear", "-f", "json")
    assert (status, json.loads(out)["tags"]) == (0, [])


def test_exists_prints_the_status(tags: Any) -> None:
    assert tags("exists", "a") == (1, "", "")
    tags("add", "a")
    status, out, _ = tags("exists", "a")
    assert status == 0
    assert out in ("PENDADD\n", "ACTIVE\n")
    status, _, err = tags("exists", "a,b")
    assert (status, "invalid tag" in err) == (2, True)


def test_unknown_server_is_reported(steelyard: Any, url: str, endpoint: str) -> None:
    for way in (["--url", url], ["--endpoint", endpoint, "--project", "p", "--user", "u"]):
        for name in (["list"], ["clear"], ["exists"], ["add"]):
            tag = ["t"] if name[0] in ("exists", "add") else []
            status, _, err = steelyard("tags", *name, "nowhere", *tag, *way)
            assert (status, err) == (2, "steelyard: no instance 'nowhere'\n")


def test_server_is_hidden_from_another_project(steelyard: Any, endpoint: str) -> None:
    way = ["--endpoint", endpoint, "--project", "q", "--user", "u"]
    status, _, err = steelyard("tags", "list", SERVER, *way)
    assert (status, err) == (2, f"steelyard: no instance '{SERVER}'\n")


@pytest.mark.usefixtures("clouds")
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["theirs"], "requires authentication"),
        (["nowhere"], "--os-cloud nowhere: clouds.yaml has no cloud"),
        (["here", "--project", "q", "--user", "v"], "need --endpoint: add its URL"),
        (["here", "--owner", "system"], "--owner needs the database"),
    ],
)
def test_os_cloud_authenticates_by_its_token(steelyard: Any, argv: list[str], said: str) -> None:
    status, out, err = steelyard("tags", "list", SERVER, "--os-cloud", *argv)
    assert (status, out, said in err) == (2, "", True), err


def test_operator_changes_tags_of_the_system(steelyard: Any, url: str, service: TagService) -> None:
    assert steelyard("tags", "add", SERVER, "smtp", "--url", url)[0] == 0
    assert service.tags(USER, SERVER) == {}
    system = Caller("p", "u", Owner.SYSTEM)
    assert service.tags(system, SERVER) == {"smtp": "ACTIVE"}
    argv = ["tags", "list", SERVER, "--url", url, "--owner", "user", "-f", "json"]
    assert json.loads(steelyard(*argv)[1])["tags"] == []


def test_commands_continue_where_the_last_one_ended(steelyard: Any, url: str) -> None:
    """Check that jobs have increasing numbers, although each command has a new backend."""
    for _ in range(3):
        for name in ("add", "remove", "add"):
            assert steelyard("tags", name, SERVER, "t", "--url", url)[0] == 0
        assert steelyard("tags", "exists", SERVER, "t", "--url", url)[1] == "ACTIVE\n"
        assert steelyard("tags", "clear", SERVER, "--url", url)[0] == 0


def test_register_records_a_server(steelyard: Any, url: str) -> None:
    register = ["tags", "register", "new", "--name", "i-2", "--project", "p", "--user", "u"]
    status, out, _ = steelyard(*register, "--url", url, "-f", "json")
    assert (status, json.loads(out)) == (
        0,
        {"server": "new", "name": "i-2", "project": "p", "user": "u"},
    )
    assert steelyard("tags", "add", "new", "t", "--url", url)[0] == 0
    status, _, err = steelyard(*register, "--url", url)
    assert (status, "the instance id 'new' or the name" in err) == (2, True)


def registering(steelyard: Any, url: str, server: str, name: str) -> tuple[int, str, str]:
    given = ("--name", name, "--project", "p", "--user", "u", "--url", url)
    status, out, err = steelyard("tags", "register", *given, "--", server)
    return status, out, err


@pytest.mark.parametrize(
    "server",
    ["", ".", "..", "a/b", "/", "a?b", "a#b", "100%", "%2e", "größe", "a b", "-a", "a" * 65, "a\n"],
)
def test_register_rejects_an_id_that_no_url_can_address(
    steelyard: Any, url: str, server: str
) -> None:
    status, out, err = registering(steelyard, url, server, "i-2")
    assert (status, out) == (2, "")
    assert err == (
        f"steelyard: invalid server id {server!r}: expected 1 to 64 of A-Z, a-z, 0-9, ., _ "
        f"and -, beginning with a letter or a digit\n"
    )
    assert [each.id for each in TagStore(url).instances()] == [SERVER]


@pytest.mark.parametrize(
    "server", ["a", "3d4c9b1e-0f6a-4b5c-8d7e-9f0a1b2c3d4e", "A.b_c-", "a" * 64]
)
def test_register_accepts_an_id_that_a_client_can_address(
    steelyard: Any, service: TagService, endpoint: str, url: str, server: str
) -> None:
    assert isinstance(service.backend, MemoryBackend)
    service.backend.adopt({"i-2": []})
    service.register(Instance(server, "i-2", "p", "u"))
    who = ("--endpoint", endpoint, "--project", "p", "--user", "u")
    assert steelyard("tags", "add", server, "t", *who)[0] == 0


def test_forget_removes_a_server_and_its_tags(steelyard: Any, url: str) -> None:
    assert steelyard("tags", "add", SERVER, "t", "--url", url)[0] == 0
    assert steelyard("tags", "forget", SERVER, "--url", url) == (0, "", "")
    status, _, err = steelyard("tags", "forget", SERVER, "--url", url)
    assert (status, err) == (2, f"steelyard: no instance '{SERVER}'\n")
    register = ["tags", "register", SERVER, "--name", "i-1", "--project", "q", "--user", "v"]
    assert steelyard(*register, "--url", url)[0] == 0
    listed = steelyard("tags", "list", SERVER, "--url", url, "-f", "json")[1]
    assert json.loads(listed)["tags"] == []


def config(tmp_path: pathlib.Path, text: str, mode: int = 0o600) -> list[str]:
    path = tmp_path / "tags.conf"
    path.write_text(f"[steelyard_tags]\n{text}\n")
    path.chmod(mode)
    return ["--config-file", str(path)]


def test_commands_use_the_configured_database(steelyard: Any, url: str, tmp_path: Any) -> None:
    files = config(tmp_path, f"connection = {url}\nincompatible = slow, fast")
    assert steelyard(*files, "tags", "add", SERVER, "slow")[0] == 0
    assert steelyard(*files, "tags", "exists", SERVER, "slow")[1] == "ACTIVE\n"
    status, _, err = steelyard(*files, "tags", "add", SERVER, "fast")
    assert (status, "the incompatible tag 'slow'" in err) == (2, True)


SECRET = "postgresql+psycopg://me:hush@127.0.0.1:9/tags"


@pytest.mark.parametrize("url", [SECRET, "postgresql://h/tags?password=hush", "x//me:hush@h"])
def test_password_in_an_argument_is_rejected(steelyard: Any, url: str) -> None:
    for argv in (
        ["list", SERVER],
        ["register", SERVER, "--name", "n", "--project", "p", "--user", "u"],
    ):
        status, out, err = steelyard("tags", *argv, "--url", url)
        assert status == 2
        assert "hush" not in out + err


def test_password_in_a_readable_file_is_rejected(steelyard: Any, tmp_path: Any) -> None:
    files = config(tmp_path, f"connection = {SECRET}", 0o644)
    status, _, err = steelyard(*files, "tags", "list", SERVER)
    assert status == 2
    assert "all users can read or change it; run 'chmod o-rw" in err
    assert "hush" not in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "missing --url: name the tag database, or set connection in [steelyard_tags]"),
        (["--endpoint", "http://h"], "--endpoint needs a user: add --project and"),
        (["--endpoint", "http://h", "--user", "u"], "add --project and --user"),
        (["--url", "sqlite://", "--project", "p"], "need --endpoint: add its URL"),
        (
            ["--endpoint", "http://h", "--project", "p", "--user", "u", "--owner", "system"],
            "--owner needs the database",
        ),
        (["--endpoint", "h", "--project", "p", "--user", "u"], "invalid endpoint 'h'"),
        (["--url", "sqlite:////nowhere/tags.db"], "no file '/nowhere/tags.db'"),
        (["--url", "sqlite://"], "no such table: tag_instances; run 'steelyard db upgrade'"),
    ],
)
def test_mistake_in_the_source_is_explained(steelyard: Any, argv: list[str], said: str) -> None:
    status, out, err = steelyard("tags", "list", SERVER, *argv)
    assert (status, out) == (2, "")
    assert said in err


def test_two_sources_are_rejected(capsys: Any) -> None:
    argv = ["tags", "list", SERVER, "--url", "sqlite://", "--endpoint", "http://h"]
    assert cli.main(argv) == 2
    assert "not allowed with argument" in capsys.readouterr().err


def test_selftest_runs_all_steps(tags: Any) -> None:
    status, out, _ = tags("selftest", "-f", "json")
    rows = json.loads(out)["steps"]
    assert [row["step"] for row in rows if row["result"] != "ok"] == []
    assert status == 0
    assert [row["step"] for row in rows][-3:] == ["replace all", "delete all", "clean up"]
    assert json.loads(tags("list", "-f", "json")[1])["tags"] == []


def test_selftest_leaves_other_tags_unchanged(tags: Any) -> None:
    tags("add", "web")
    wait(tags, "web")
    status, out, _ = tags("selftest", "-f", "json")
    results = {row["step"]: (row["result"], row["what"]) for row in json.loads(out)["steps"]}
    reason = ("skipped", "the step would change other tags: 1")
    assert (results.pop("replace all"), results.pop("delete all")) == (reason, reason)
    assert {result for result, _ in results.values()} == {"ok"}
    assert status == 0
    assert json.loads(tags("list", "-f", "json")[1])["tags"] == [{"tag": "web", "status": "ACTIVE"}]


def test_selftest_of_an_unreachable_service_fails(steelyard: Any) -> None:
    way = ["--endpoint", "http://127.0.0.1:9", "--project", "p", "--user", "u", "-f", "json"]
    status, out, _ = steelyard("tags", "selftest", SERVER, *way)
    first, *others, last = json.loads(out)["steps"]
    assert status == 1
    assert (first["result"], "refused" in first["what"]) == ("failed", True)
    assert {row["what"] for row in others} == {"step 'list' failed"}
    assert last["result"] == "failed"
    assert "; delete the tags that begin with 'steelyard-selftest-" in last["what"]


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1"])
def test_selftest_rejects_an_invalid_timeout(steelyard: Any, url: str, seconds: str) -> None:
    argv = ["tags", "selftest", SERVER, "--url", url, "--timeout", seconds]
    status, _, err = steelyard(*argv)
    assert (status, "expected a number of seconds from 0 up" in err) == (2, True)


def test_upgrade_creates_the_tables_of_tags(steelyard: Any, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    assert steelyard("db", "upgrade", "--schema", "tags", "--url", url)[0] == 0
    assert TagStore(url).instances() == []
