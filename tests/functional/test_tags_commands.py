"""The commands on tags: over HTTP as a user, and on the database as the operator."""

import json
import logging
import pathlib
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from tag_servers import polled, served, tag_service, trusting

from steelyard import cli
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import Owner
from steelyard.tags.service import Caller
from steelyard.tags.states import Instance

with warnings.catch_warnings():
    # What WebOb imports warns of its own end.
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
    made.register(Instance(SERVER, "i-1", "p", "u"))
    assert isinstance(made.backend, MemoryBackend)
    made.backend.adopt({"i-1": []})
    return made


@pytest.fixture
def url(service: TagService, tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/tags.db"


@pytest.fixture
def endpoint(service: TagService) -> Iterator[str]:
    with served(trusting(service)) as url, polled(service):
        yield url


@pytest.fixture
def steelyard(capsys: Any) -> Any:
    def run(*argv: str) -> tuple[int, str, str]:
        status = cli.main(list(argv))
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def clouds(service: TagService, tmp_path: Any, monkeypatch: Any) -> Iterator[None]:
    """A cloud "here", whose service of tags has keystonemiddleware in front and trusts nobody."""
    # It would say on the screen of the command what the log of the service has.
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
    """Runs a command on tags, each way."""
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
    assert json.loads(tags("list", "-f", "json")[1])[0] == {"Tag": "web", "Status": "ACTIVE"}
    added = json.loads(tags("add", "web", "db", "-f", "json")[1])
    assert added == [{"Tag": "web", "Result": "there already"}, {"Tag": "db", "Result": "added"}]


def test_tags_are_removed(tags: Any) -> None:
    tags("add", "a", "b")
    wait(tags, "b")
    status, out, _ = tags("remove", "a", "b", "-f", "csv")
    assert (status, out.split()[1:]) == (0, ['"a","deleted"', '"b","deleted"'])
    assert json.loads(tags("list", "-f", "json")[1]) == []


def test_what_fails_stops_and_what_is_done_is_listed(tags: Any) -> None:
    tags("add", "a")
    wait(tags, "a")
    status, out, err = tags("remove", "a", "b", "c", "d")
    assert status == 2
    assert "| a   | deleted |" in out
    assert err == (
        "steelyard: there is no tag 'b'\nsteelyard: stopped at 'b'; not tried: 'c', 'd'\n"
    )
    assert tags("remove", "b", "c") == (2, "", "steelyard: there is no tag 'b'\n")


def test_a_malformed_name_changes_nothing(tags: Any) -> None:
    status, out, err = tags("add", "good", "b/ad")
    assert (status, out) == (2, "")
    assert "'b/ad' is no tag: it has '/' in it" in err
    assert json.loads(tags("list", "-f", "json")[1]) == []


def test_all_are_replaced_and_deleted(tags: Any) -> None:
    tags("add", "a")
    wait(tags, "a")
    _, out, _ = tags("replace", "b", "a", "-f", "json")
    assert [row["Tag"] for row in json.loads(out)] == ["a", "b"]
    wait(tags, "b")
    assert tags("clear", "-f", "json")[:2] == (0, "[]\n")


def test_exists_says_the_status(tags: Any) -> None:
    assert tags("exists", "a") == (1, "", "")
    tags("add", "a")
    status, out, _ = tags("exists", "a")
    assert status == 0
    assert out in ("PENDADD\n", "ACTIVE\n")
    status, _, err = tags("exists", "a,b")
    assert (status, "is no tag" in err) == (2, True)


def test_an_unknown_server(steelyard: Any, url: str, endpoint: str) -> None:
    for way in (["--url", url], ["--endpoint", endpoint, "--project", "p", "--user", "u"]):
        for name in (["list"], ["clear"], ["exists"], ["add"]):
            tag = ["t"] if name[0] in ("exists", "add") else []
            status, _, err = steelyard("tags", *name, "nowhere", *tag, *way)
            assert (status, err) == (2, "steelyard: there is no instance 'nowhere'\n")


def test_another_project_is_told_nothing(steelyard: Any, endpoint: str) -> None:
    way = ["--endpoint", endpoint, "--project", "q", "--user", "u"]
    status, _, err = steelyard("tags", "list", SERVER, *way)
    assert (status, err) == (2, f"steelyard: there is no instance '{SERVER}'\n")


@pytest.mark.usefixtures("clouds")
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["theirs"], "requires authentication"),
        (["nowhere"], "--os-cloud nowhere: Cloud nowhere was not found"),
        (["here", "--project", "q", "--user", "v"], "say who asks --endpoint: name it too"),
        (["here", "--owner", "system"], "--owner is for the operator, with --url"),
    ],
)
def test_who_asks_a_cloud_is_who_its_token_says(steelyard: Any, argv: list[str], said: str) -> None:
    status, out, err = steelyard("tags", "list", SERVER, "--os-cloud", *argv)
    assert (status, out, said in err) == (2, "", True), err


def test_the_operators_tags_are_the_systems(steelyard: Any, url: str, service: TagService) -> None:
    assert steelyard("tags", "add", SERVER, "smtp", "--url", url)[0] == 0
    assert service.tags(USER, SERVER) == {}
    system = Caller("p", "u", Owner.SYSTEM)
    assert service.tags(system, SERVER) == {"smtp": "ACTIVE"}
    assert (
        json.loads(
            steelyard("tags", "list", SERVER, "--url", url, "--owner", "user", "-f", "json")[1]
        )
        == []
    )


def test_one_command_after_the_other(steelyard: Any, url: str) -> None:
    """Each is a process of its own, and a new backend in memory; no job is older than the last."""
    for _ in range(3):
        for name in ("add", "remove", "add"):
            assert steelyard("tags", name, SERVER, "t", "--url", url)[0] == 0
        assert steelyard("tags", "exists", SERVER, "t", "--url", url)[1] == "ACTIVE\n"
        assert steelyard("tags", "clear", SERVER, "--url", url)[0] == 0


def test_a_server_is_registered(steelyard: Any, url: str) -> None:
    register = ["tags", "register", "new", "--name", "i-2", "--project", "p", "--user", "u"]
    status, out, _ = steelyard(*register, "--url", url, "-f", "json")
    assert (status, json.loads(out)) == (
        0,
        {"Server": "new", "Name": "i-2", "Project": "p", "User": "u"},
    )
    assert steelyard("tags", "add", "new", "t", "--url", url)[0] == 0
    status, _, err = steelyard(*register, "--url", url)
    assert (status, "already an instance with the id 'new'" in err) == (2, True)


def test_a_server_is_forgotten(steelyard: Any, url: str) -> None:
    assert steelyard("tags", "add", SERVER, "t", "--url", url)[0] == 0
    assert steelyard("tags", "forget", SERVER, "--url", url) == (0, "", "")
    status, _, err = steelyard("tags", "forget", SERVER, "--url", url)
    assert (status, err) == (2, f"steelyard: there is no instance '{SERVER}'\n")
    register = ["tags", "register", SERVER, "--name", "i-1", "--project", "q", "--user", "v"]
    assert steelyard(*register, "--url", url)[0] == 0
    assert steelyard("tags", "list", SERVER, "--url", url, "-f", "json")[1].strip() == "[]"


def config(tmp_path: pathlib.Path, text: str, mode: int = 0o600) -> list[str]:
    path = tmp_path / "tags.conf"
    path.write_text(f"[steelyard_tags]\n{text}\n")
    path.chmod(mode)
    return ["--config-file", str(path)]


def test_the_database_of_the_configuration(steelyard: Any, url: str, tmp_path: Any) -> None:
    files = config(tmp_path, f"connection = {url}\nincompatible = slow, fast")
    assert steelyard(*files, "tags", "add", SERVER, "slow")[0] == 0
    assert steelyard(*files, "tags", "exists", SERVER, "slow")[1] == "ACTIVE\n"
    status, _, err = steelyard(*files, "tags", "add", SERVER, "fast")
    assert (status, "does not go together with 'slow'" in err) == (2, True)


SECRET = "postgresql+psycopg://me:hush@127.0.0.1:9/tags"


@pytest.mark.parametrize("url", [SECRET, "postgresql://h/tags?password=hush", "x//me:hush@h"])
def test_a_password_is_no_argument(steelyard: Any, url: str) -> None:
    for argv in (
        ["list", SERVER],
        ["register", SERVER, "--name", "n", "--project", "p", "--user", "u"],
    ):
        status, out, err = steelyard("tags", *argv, "--url", url)
        assert status == 2
        assert "hush" not in out + err


def test_a_password_that_everybody_can_read(steelyard: Any, tmp_path: Any) -> None:
    files = config(tmp_path, f"connection = {SECRET}", 0o644)
    status, _, err = steelyard(*files, "tags", "list", SERVER)
    assert status == 2
    assert "everybody can read or change it: chmod o-rw" in err
    assert "hush" not in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "no service of tags is named: name its database with --url, or a --config-file with"),
        (["--endpoint", "http://h"], "--endpoint has to be told who asks: add --project and"),
        (["--endpoint", "http://h", "--user", "u"], "add --project and --user"),
        (["--url", "sqlite://", "--project", "p"], "say who asks --endpoint: name it too"),
        (
            ["--endpoint", "http://h", "--project", "p", "--user", "u", "--owner", "system"],
            "--owner is for the operator, with --url",
        ),
        (["--endpoint", "h", "--project", "p", "--user", "u"], "'h' is no endpoint"),
        (["--url", "sqlite:////nowhere/tags.db"], "there is no file '/nowhere/tags.db'"),
        (["--url", "sqlite://"], "no such table: tag_instances; steelyard db upgrade"),
    ],
)
def test_mistakes(steelyard: Any, argv: list[str], said: str) -> None:
    status, out, err = steelyard("tags", "list", SERVER, *argv)
    assert (status, out) == (2, "")
    assert said in err


def test_exactly_one_way(capsys: Any) -> None:
    argv = ["tags", "list", SERVER, "--url", "sqlite://", "--endpoint", "http://h"]
    with pytest.raises(SystemExit, match="2"):
        cli.main(argv)
    assert "not allowed with argument" in capsys.readouterr().err


def test_the_self_test_tries_everything(tags: Any) -> None:
    status, out, _ = tags("selftest", "-f", "json")
    rows = json.loads(out)
    assert [row["Step"] for row in rows if row["Result"] != "ok"] == []
    assert status == 0
    assert [row["Step"] for row in rows][-3:] == ["replace all", "delete all", "tidy up"]
    assert json.loads(tags("list", "-f", "json")[1]) == []


def test_the_self_test_touches_no_other_tags(tags: Any) -> None:
    tags("add", "web")
    wait(tags, "web")
    status, out, _ = tags("selftest", "-f", "json")
    results = {row["Step"]: (row["Result"], row["What"]) for row in json.loads(out)}
    reason = ("skipped", "other tags, which it would touch: 1")
    assert (results.pop("replace all"), results.pop("delete all")) == (reason, reason)
    assert {result for result, _ in results.values()} == {"ok"}
    assert status == 0
    assert json.loads(tags("list", "-f", "json")[1]) == [{"Tag": "web", "Status": "ACTIVE"}]


def test_the_self_test_of_what_does_not_answer(steelyard: Any) -> None:
    way = ["--endpoint", "http://127.0.0.1:9", "--project", "p", "--user", "u", "-f", "json"]
    status, out, _ = steelyard("tags", "selftest", SERVER, *way)
    first, *others, last = json.loads(out)
    assert status == 1
    assert (first["Result"], "refused" in first["What"]) == ("failed", True)
    assert {row["What"] for row in others} == {"'list' has failed"}
    assert last["Result"] == "failed"
    assert "; delete what begins with 'steelyard-selftest-" in last["What"]


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1"])
def test_the_patience_of_the_self_test_has_an_end(steelyard: Any, url: str, seconds: str) -> None:
    argv = ["tags", "selftest", SERVER, "--url", url, "--timeout", seconds]
    status, _, err = steelyard(*argv)
    assert (status, "is no number of seconds" in err) == (2, True)


def test_the_tables_of_tags_are_asked_for(steelyard: Any, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    assert steelyard("db", "upgrade", "--schema", "tags", "--url", url)[0] == 0
    assert TagStore(url).instances() == []
