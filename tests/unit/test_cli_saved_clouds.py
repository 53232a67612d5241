"""The commands that change a cloud file."""

import io
import json
import pathlib
from typing import Any

import pytest

from steelyard import cli
from steelyard.scheduler import Cloud

CLOUD = """\
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 4, ram_mb: 8192, disk_gb: 100}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}
server_groups:
  near: {policy: soft-affinity}
"""


@pytest.fixture
def cloud(tmp_path: Any) -> Any:
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return path


@pytest.fixture
def steelyard(cloud: Any, capsys: Any) -> Any:
    """Runs a command on the cloud file; its rows as JSON, if it has any."""

    def run(*argv: str, rows: bool = True) -> tuple[int, Any, str]:
        form = ["-f", "json"] if rows else []
        status = cli.main([*argv, "--cloud", str(cloud), *form])
        out, err = capsys.readouterr()
        return status, json.loads(out) if rows and status == 0 else out, err

    return run


def test_groups_come_and_go(steelyard: Any, cloud: Any) -> None:
    status, made, _ = steelyard(
        "group", "create", "--policy", "anti-affinity", "--rule", "max_server_per_host=2", "web"
    )
    assert status == 0
    assert made == {
        "Name": "web",
        "Policy": "anti-affinity",
        "Rules": {"max_server_per_host": 2},
        "Servers": [],
        "Hosts": [],
    }
    _, listed, _ = steelyard("group", "list")
    assert [row["Name"] for row in listed] == ["near", "web"]
    _, shown, _ = steelyard("group", "show", "web")
    assert shown["UUID"] == Cloud.load(cloud).server_group("web").uuid
    status, said, _ = steelyard("group", "delete", "web", rows=False)
    assert (status, said) == (0, "web is gone; servers that were in it: 0\n")
    assert list(Cloud.load(cloud).server_groups) == ["near"]


def test_group_create_rejects_a_second_policy(steelyard: Any, cloud: Any) -> None:
    before = pathlib.Path(cloud).read_text()
    argv = ("group", "create", "both", "--policy", "affinity", "--policy", "anti-affinity")
    status, _, err = steelyard(*argv)
    assert status == 2
    assert "--policy affinity --policy anti-affinity: expected one policy" in err
    assert pathlib.Path(cloud).read_text() == before


def test_the_life_of_servers_in_a_group(steelyard: Any, cloud: Any) -> None:
    place = ("schedule", "--flavor", "small", "--group", "near", "--commit")
    assert [row["Host"] for row in steelyard(*place, "--count", "2")[1]] == ["h2", "h2"]
    assert [row["Host"] for row in steelyard(*place)[1]] == ["h2"]
    _, listed, _ = steelyard("server", "list")
    assert [(row["Name"], row["Host"], row["Group"]) for row in listed] == [
        (f"small-{number}", "h2", "near") for number in (1, 2, 3)
    ]
    status, moved, _ = steelyard("server", "move", "small-1")
    assert (status, moved["From"], moved["To"], moved["Hosts that fit"]) == (0, "h2", "h1", 1)
    _, rebuilt, _ = steelyard("server", "rebuild", "small-1")
    assert (rebuilt["From"], rebuilt["To"]) == ("h1", "h1")
    _, evacuated, _ = steelyard("server", "evacuate", listed[0]["UUID"])
    assert (evacuated["Server"], evacuated["From"], evacuated["To"]) == ("small-1", "h1", "h2")
    _, shown, _ = steelyard("group", "show", "near")
    assert (shown["Hosts"], shown["Servers"]) == (["h2"], ["small-1", "small-2", "small-3"])
    _, said, _ = steelyard("group", "delete", "near", rows=False)
    assert said == "near is gone; servers that were in it: 3\n"
    assert {server.group for server in Cloud.load(cloud).servers.values()} == {None}


def test_nothing_changes_when_no_host_fits(steelyard: Any, cloud: Any) -> None:
    steelyard("group", "create", "--policy", "affinity", "tight")
    place = ("schedule", "--flavor", "small", "--group", "tight", "--commit", "--count", "2")
    assert steelyard(*place)[0] == 0
    before = cloud.read_text()
    for command in ("move", "evacuate"):
        status, _, said = steelyard("server", command, "small-1")
        assert status == 1
        assert "no valid host" in said
        assert "server group 'tight' is on 'h2'" in said
    assert cloud.read_text() == before


@pytest.mark.parametrize(
    "argv",
    [
        ("group", "create", "--policy", "affinity", "g", "-c", "Nmae"),
        ("schedule", "--flavor", "small", "--commit", "-c", "Hots"),
        ("schedule", "--flavor", "small", "--commit", "--sort-column", "Hots"),
        ("server", "move", "s", "-c", "Tp"),
    ],
)
def test_nothing_changes_when_what_is_to_be_shown_is_unknown(
    steelyard: Any, cloud: Any, argv: Any
) -> None:
    cloud.write_text(CLOUD + "servers: {s: {host: h1, flavor: small}}\n")
    before = cloud.read_text()
    status, _, said = steelyard(*argv)
    assert status == 2
    assert "there is no column" in said
    assert cloud.read_text() == before


def test_a_move_shows_the_weight_of_the_chosen_host(cloud: Any, tmp_path: Any, capsys: Any) -> None:
    hosts = "".join(f"  h{i}: {{vcpus: 9, ram_mb: {i}0000, disk_gb: 99}}\n" for i in range(1, 6))
    conf = tmp_path / "subset.conf"
    conf.write_text("[steelyard]\nhost_subset_size = 4\n")
    flavors = "flavors: {f: {vcpus: 1, ram_mb: 1, disk_gb: 1}}\nservers: {s: {host: h1, flavor: f}}"
    text = f"hosts:\n{hosts}{flavors}\n"
    weights = set()
    for seed in range(16):
        cloud.write_text(text)
        argv = ["--config-file", str(conf), "server", "move", "s", "--seed", str(seed)]
        assert cli.main([*argv, "--cloud", str(cloud), "-f", "json"]) == 0
        moved = json.loads(capsys.readouterr().out)
        weights.add((moved["To"], round(moved["Weight"], 3)))
    assert weights == {("h2", 0.4), ("h3", 0.6), ("h4", 0.8), ("h5", 1.0)}


def test_a_host_that_is_left_is_no_candidate(steelyard: Any, cloud: Any) -> None:
    cloud.write_text(
        "hosts: {h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}}\n"
        "flavors: {small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}}\n"
        "servers: {s: {host: h1, flavor: small}}\n"
    )
    status, _, said = steelyard("server", "move", "s")
    assert status == 1
    assert "of 0 hosts besides 'h1', which it leaves, none fits flavor 'small'" in said


def test_what_only_reads_reads_standard_input(cloud: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(CLOUD))
    assert cli.main(["group", "list", "--cloud", "-", "-f", "csv"]) == 0
    assert "near" in capsys.readouterr().out
    assert cli.main(["group", "delete", "near", "--cloud", "-"]) == 2
    assert "there is no file to change" in capsys.readouterr().err


def test_lost_comments_are_mentioned(steelyard: Any, cloud: Any) -> None:
    cloud.write_text("# mine\n" + CLOUD)
    assert steelyard("group", "list")[2] == ""
    _, _, said = steelyard("group", "delete", "near", rows=False)
    assert said == f"steelyard: {cloud}: its comments are gone\n"
    assert "#" not in cloud.read_text()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("group", "create", "--policy", "soft", "g"), "unknown policy 'soft'; write one of"),
        (("group", "create", "--policy", "affinity", "near"), "already a server group 'near'"),
        (
            ("group", "create", "--policy", "affinity", "--rule", "max_server_per_host=2", "g"),
            "only the policy 'anti-affinity' has rules",
        ),
        (
            ("group", "create", "--policy", "anti-affinity", "--rule", "two", "g"),
            "--rule 'two' is not understood; write KEY=VALUE",
        ),
        (
            (*("group", "create", "--policy", "anti-affinity", "g"), *("--rule", "a=1") * 2),
            "--rule a=1 --rule a=1: a rule is there twice",
        ),
        (
            ("group", "create", "--policy", "affinity", "a\u200bb"),
            "the name 'a\\u200bb' cannot be printed",
        ),
        (
            ("group", "create", "--policy", "affinity", "\udcff"),
            "the name '\\udcff' cannot be printed",
        ),
        (("group", "show", "nera"), "there is no server group 'nera'; did you mean 'near'?"),
        (("group", "show", "near", "-c", "Nmae"), "there is no column 'Nmae'; did you mean 'Name'"),
        (("group", "delete", "nera"), "there is no server group 'nera'"),
        (("server", "move", "s"), "there is no server 's'; there is none at all"),
        (("server", "rebuild", "s"), "there is no server 's'"),
    ],
)
def test_mistakes(steelyard: Any, cloud: Any, argv: Any, said: Any) -> None:
    status, _, err = steelyard(*argv, rows=False)
    assert status == 2
    assert err.startswith("steelyard: ")
    assert said in err
    assert cloud.read_text() == CLOUD


@pytest.mark.parametrize("source", [("--example",), ("--cloud", "-")])
def test_committing_needs_a_file(capsys: Any, source: Any) -> None:
    assert cli.main(["schedule", *source, "--flavor", "web.small", "--commit"]) == 2
    assert "there is no file to change; name one with --cloud" in capsys.readouterr().err
