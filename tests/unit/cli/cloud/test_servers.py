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
    _, evacuated, _ = steelyard("server", "evacuate", listed["servers"][0]["uuid"])
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
