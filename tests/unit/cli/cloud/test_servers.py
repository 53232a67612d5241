"""The commands that move, rebuild and evacuate servers of a cloud file."""

import json
import pathlib
from typing import Any

import pytest

from steelyard.cloud import Cloud
from support.cli.in_process import Run


def test_servers_of_a_group_are_placed_moved_and_rebuilt(
    steelyard: Any, cloud: pathlib.Path
) -> None:
    place = ("schedule", "--flavor", "small", "--group", "near", "--commit")
    assert [row["host"] for row in steelyard(*place, "--count", "2")[1]["servers"]] == ["h2", "h2"]
    assert [row["host"] for row in steelyard(*place)[1]["servers"]] == ["h2"]
    _, listed, _ = steelyard("server", "list")
    assert [(row["name"], row["host"], row["group"]) for row in listed["servers"]] == [
        (f"small-{number}", "h2", "near") for number in (1, 2, 3)
    ]
    status, moved, _ = steelyard("server", "move", "small-1")
    assert (status, moved["from"], moved["to"], moved["hosts_that_fit"]) == (0, "h2", "h1", 1)
    _, rebuilt, _ = steelyard("server", "rebuild", "small-1")
    assert (rebuilt["from"], rebuilt["to"]) == ("h1", "h1")
    _, found, _ = steelyard("server", "evacuate", listed["servers"][0]["uuid"])
    (evacuated,) = found["servers"]
    assert (evacuated["server"], evacuated["from"], evacuated["to"]) == ("small-1", "h1", "h2")
    _, shown, _ = steelyard("group", "show", "near")
    assert (shown["hosts"], shown["servers"]) == (["h2"], ["small-1", "small-2", "small-3"])
    _, said, _ = steelyard("group", "delete", "near", rows=False)
    assert said == "server group 'near' deleted; it had 3 servers\n"
    assert {server.group for server in Cloud.load(cloud).servers.values()} == {None}


def test_move_without_a_fitting_host_changes_nothing(steelyard: Any, cloud: pathlib.Path) -> None:
    steelyard("group", "create", "--policy", "affinity", "tight")
    place = ("schedule", "--flavor", "small", "--group", "tight", "--commit", "--count", "2")
    assert steelyard(*place)[0] == 0
    before = cloud.read_text()
    for command in ("move", "evacuate"):
        status, moved, said = steelyard("server", command, "small-1")
        assert status == 1
        moved = json.loads(moved)
        if command == "evacuate":
            assert moved["summary"] == {"servers": 1, "moved": 0}
            (moved,) = moved["servers"]
        (cause,) = moved.pop("causes")
        assert (cause["count"], cause["filter"]) == (1, "ServerGroupAffinityFilter")
        nowhere = {"to": None, "weight": None, "hosts_that_fit": 0}
        assert moved == {"server": "small-1", "from": "h2", **nowhere}
        assert steelyard("server", command, "small-1", rows=False)[1] == ""
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
def test_unknown_column_changes_nothing(steelyard: Any, cloud: pathlib.Path, argv: Any) -> None:
    cloud.write_text(cloud.read_text() + "servers: {s: {host: h1, flavor: small}}\n")
    before = cloud.read_text()
    status, _, said = steelyard(*argv)
    assert status == 2
    assert "no column" in said
    assert cloud.read_text() == before


def test_move_shows_the_weight_of_the_chosen_host(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    hosts = "".join(f"  h{i}: {{vcpus: 9, ram_mb: {i}0000, disk_gb: 99}}\n" for i in range(1, 6))
    conf = tmp_path / "subset.conf"
    conf.write_text("[steelyard]\nhost_subset_size = 4\n")
    flavors = "flavors: {f: {vcpus: 1, ram_mb: 1, disk_gb: 1}}\nservers: {s: {host: h1, flavor: f}}"
    text = f"hosts:\n{hosts}{flavors}\n"
    weights = set()
    for seed in range(16):
        cloud.write_text(text)
        argv = ("server", "move", "s", "--seed", str(seed), "--cloud", cloud, "-f", "json")
        moved = json.loads(run("--config-file", conf, *argv).out)
        weights.add((moved["to"], round(moved["weight"], 3)))
    assert weights == {("h2", 2.4), ("h3", 2.6), ("h4", 2.8), ("h5", 3.0)}


def test_move_never_chooses_the_current_host(steelyard: Any, cloud: pathlib.Path) -> None:
    cloud.write_text(
        "hosts: {h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}}\n"
        "flavors: {small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}}\n"
        "servers: {s: {host: h1, flavor: small}}\n"
    )
    status, _, said = steelyard("server", "move", "s")
    assert status == 1
    assert "0 of 0 hosts fit flavor 'small', not counting 'h1'" in said


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("server", "move", "s"), "no server 's'; there are none"),
        (("server", "rebuild", "s"), "no server 's'"),
    ],
)
def test_mistake_in_a_server_command_changes_nothing(
    steelyard: Any, cloud: pathlib.Path, argv: Any, said: Any
) -> None:
    before = cloud.read_text()
    status, _, err = steelyard(*argv, rows=False)
    assert status == 2
    assert err.startswith("steelyard: ")
    assert said in err
    assert cloud.read_text() == before


SERVERS = """\
servers:
  little: {host: h1, flavor: small, group: near}
  big: {host: h2, flavor: large, uuid: b1}
  bigger: {host: h2, flavor: large, uuid: b0, project: p}
"""


@pytest.fixture
def with_servers(cloud: pathlib.Path) -> pathlib.Path:
    """Return the path of the cloud, with servers on 'h1' and 'h2', and two more hosts."""
    text = cloud.read_text()
    text = text.replace(
        "aggregates:",
        "  h3: {vcpus: 4, ram_mb: 7168, disk_gb: 100}\n"
        "  h4: {vcpus: 1, ram_mb: 9999, disk_gb: 9}\naggregates:",
    )
    text = text.replace("flavors:\n", "flavors:\n  large: {vcpus: 1, ram_mb: 3072, disk_gb: 10}\n")
    cloud.write_text(text + SERVERS)
    return cloud


def test_evacuate_moves_the_servers_of_several_hosts_largest_first(
    steelyard: Any, with_servers: pathlib.Path
) -> None:
    status, found, err = steelyard("server", "evacuate", "--host", "h1", "--host", "h2")
    assert (status, err) == (0, "steelyard: 3 servers moved\n")
    assert found["summary"] == {"servers": 3, "moved": 3}
    assert [(row["server"], row["from"], row["to"]) for row in found["servers"]] == [
        ("bigger", "h2", "h3"),
        ("big", "h2", "h3"),
        ("little", "h1", "h3"),
    ]
    cloud = Cloud.load(with_servers)
    assert {server.host for server in cloud.servers.values()} == {"h3"}
    assert cloud.server("bigger").project == "p"
    assert cloud.server_group("near").hosts == {"h3"}
    assert steelyard("server", "evacuate", "--host", "h1")[1]["summary"] == {
        "servers": 0,
        "moved": 0,
    }


def test_evacuate_moves_a_group_with_affinity_from_failed_hosts_to_one_host(
    steelyard: Any, cloud: pathlib.Path
) -> None:
    cloud.write_text(
        "hosts:\n"
        "  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}\n"
        "  h2: {vcpus: 4, ram_mb: 4096, disk_gb: 100}\n"
        "  h3: {vcpus: 4, ram_mb: 4096, disk_gb: 100}\n"
        "  h4: {vcpus: 4, ram_mb: 4096, disk_gb: 100}\n"
        "flavors: {small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}}\n"
        "server_groups: {all-lost: {policy: affinity}, one-left: {policy: affinity}}\n"
        "servers:\n"
        "  a1: {host: h1, flavor: small, group: all-lost}\n"
        "  a2: {host: h1, flavor: small, group: all-lost}\n"
        "  a3: {host: h2, flavor: small, group: all-lost}\n"
        "  b1: {host: h2, flavor: small, group: one-left}\n"
        "  b2: {host: h4, flavor: small, group: one-left}\n"
    )
    status, found, err = steelyard("server", "evacuate", "--host", "h1", "--host", "h2")
    assert (status, err) == (0, "steelyard: 4 servers moved\n")
    hosts = {row["server"]: row["to"] for row in found["servers"]}
    assert hosts == {"a1": "h3", "a2": "h3", "a3": "h3", "b1": "h4"}
    groups = Cloud.load(cloud).server_groups
    assert {name: set(group.hosts) for name, group in groups.items()} == {
        "all-lost": {"h3"},
        "one-left": {"h4"},
    }


def test_evacuate_keeps_servers_without_another_host(
    steelyard: Any, with_servers: pathlib.Path
) -> None:
    with_servers.write_text(with_servers.read_text().replace("ram_mb: 7168", "ram_mb: 3500"))
    argv = ("server", "evacuate", "--host", "h2", "--host", "h1")
    status, out, err = steelyard(*argv, rows=False)
    assert status == 1
    assert [line.split("|")[1:4] for line in out.splitlines()[3:-1]] == [
        [" bigger ", " h2   ", " h3 "],
        [" big    ", " h2   ", "    "],
        [" little ", " h1   ", "    "],
    ]
    lines = err.splitlines()
    assert lines[0] == "steelyard: 1 server moved"
    assert lines[1] == (
        "steelyard: no valid host: 0 of 2 hosts fit flavor 'large', not counting 'h2'"
    )
    assert lines[-1] == (
        "steelyard: no valid host for 2 of 3 servers, which stay where they are: 'big', 'little'"
    )
    hosts = {server.name: server.host for server in Cloud.load(with_servers).servers.values()}
    assert hosts == {"little": "h1", "big": "h2", "bigger": "h3"}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "expected the name of a server, or failed hosts with --host, but not both"),
        (["big", "--host", "h1"], "expected the name of a server, or failed hosts with --host"),
        (["--host", "h9"], "no host 'h9'; available"),
    ],
)
def test_evacuate_rejects_unclear_arguments(
    steelyard: Any, with_servers: pathlib.Path, argv: list[str], said: str
) -> None:
    status, _, err = steelyard("server", "evacuate", *argv)
    assert status == 2
    assert err.startswith(f"steelyard: {said}")


def test_evacuate_checks_its_arguments_before_it_reads_the_cloud(run: Run) -> None:
    status, _, err = run("server", "evacuate", "--cloud", "missing.yaml")
    assert status == 2
    assert err.startswith("steelyard: expected the name of a server, or failed hosts with --host")


def test_evacuate_help_names_no_default_host(run: Run) -> None:
    out = " ".join(run("server", "evacuate", "--help").out.split())
    assert "--host HOST failed host, instead of SERVER; may be repeated" in out
    assert "default: all servers of the failed hosts" in out


def test_server_is_added_and_deleted(steelyard: Any, with_servers: pathlib.Path) -> None:
    argv = ("server", "add", "new", "--flavor", "small", "--host", "h4", "--group", "near")
    status, added, _ = steelyard(*argv)
    uuid = added.pop("uuid")
    assert (status, added) == (0, {"name": "new", "host": "h4", "flavor": "small", "group": "near"})
    cloud = Cloud.load(with_servers)
    assert cloud.server(uuid).name == "new"
    assert cloud.server_group("near").hosts == {"h1", "h4"}
    status, _, err = steelyard(*argv)
    assert (status, err) == (2, "steelyard: server 'new' already exists; choose another name\n")
    assert steelyard("server", "delete", "little", uuid, "new", rows=False)[:2] == (
        0,
        "2 servers deleted\n",
    )
    found = Cloud.load(with_servers)
    assert [server.name for server in found.servers.values()] == ["big", "bigger"]
    assert found.server_group("near").hosts == found.server_group("near").members == frozenset()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("add", "x", "--flavor", "smal", "--host", "h1"), "no flavor 'smal'; did you mean"),
        (("add", "x", "--flavor", "small", "--host", "h9"), "no host 'h9'; available"),
        (("add", "x", "--flavor", "small", "--host", "h1", "--group", "g"), "no server group 'g'"),
        (("add", "\x07", "--flavor", "small", "--host", "h1"), "invalid name"),
        (("delete", "big", "bog"), "no server 'bog'; did you mean 'big'?"),
    ],
)
def test_invalid_change_of_servers_changes_nothing(
    steelyard: Any, with_servers: pathlib.Path, argv: tuple[str, ...], said: str
) -> None:
    before = with_servers.read_text()
    status, _, err = steelyard("server", *argv, rows=False)
    assert status == 2
    assert said in err
    assert with_servers.read_text() == before
