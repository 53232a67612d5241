"""The command that places servers, and what it tells of rejected hosts."""

import csv
import io
import json
import pathlib
import re
from typing import Any

import pytest
import yaml

from steelyard.cloud import Cloud
from support.cli.in_process import Run


def test_schedule_places_servers_of_the_example_apart(run: Run) -> None:
    status, out, err = run("schedule", "--example", "-f", "json")
    assert (status, err) == (0, "")
    assert [(row["server"], row["host"]) for row in json.loads(out)["servers"]] == [
        ("web.small-1", "rack2-node2"),
        ("web.small-2", "rack3-node1"),
    ]


def test_schedule_explain_shows_weights_and_rejections(run: Run) -> None:
    status, out, _ = run("schedule", "--example", "--explain", "-f", "yaml")
    assert status == 0
    first = yaml.safe_load(out)["servers"][0]
    assert first["weights"][0]["weigher"] == "RAMWeigher"
    assert first["rejected"][0]["count"] == 2
    status, out, _ = run("schedule", "--example", "--explain")
    assert "2 by AggregateInstanceTypeFilter: key 'ssd': flavor wants" in out
    assert "RAMWeigher: 262144, normalised 1, times 1" in out


@pytest.mark.parametrize("command", ["schedule", "explain"])
def test_schedule_without_valid_host_explains_the_rejections(
    run: Run, cloud: pathlib.Path, command: Any
) -> None:
    status, out, err = run(command, "--cloud", cloud, "--flavor", "fast", "-f", "csv")
    assert status == 1
    summary = ["steelyard: 0 of 2 hosts fit flavor 'fast'; 2 hosts shown"]
    assert err.splitlines() == [
        *(summary if command == "explain" else []),
        "steelyard: no valid host: 0 of 2 hosts fit flavor 'fast'",
        "      1 AggregateInstanceTypeFilter: key 'ssd': flavor wants 'nvme', aggregate 'slow' "
        "offers 'sata'",
        "      1 AggregateInstanceTypeFilter: key 'ssd': flavor wants 'nvme', no aggregate of the "
        "host has the key",
    ]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["Verdict"] for row in rows] == (["rejected"] * 2 if command == "explain" else [])


@pytest.mark.parametrize(("form", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_schedule_without_valid_host_has_the_causes_in_its_summary(
    run: Run, cloud: pathlib.Path, form: str, load: Any
) -> None:
    argv = ("schedule", "--cloud", cloud, "--flavor", "fast", "--count", "3")
    status, out, err = run(*argv, "-f", form)
    assert status == 1
    assert err.startswith("steelyard: no valid host for server 1 of 3: ")
    document = load(out)
    causes = document["summary"].pop("causes")
    assert document == {
        "summary": {
            "flavor": "fast",
            "group": None,
            "servers": 3,
            "placed": 0,
            "committed": False,
            "trial_causes": [],
        },
        "servers": [],
    }
    assert [(cause["count"], cause["filter"]) for cause in causes] == [
        (1, "AggregateInstanceTypeFilter"),
        (1, "AggregateInstanceTypeFilter"),
    ]


@pytest.mark.parametrize(("flavor", "hosts"), [("fast", 2), ("open", 1)])
@pytest.mark.parametrize(
    ("count", "status", "of"),
    [("1", 0, ""), ("2", 0, " for server 2 of 2"), ("9999", 1, r" for server \d+ of 9999")],
)
def test_schedule_reports_what_filters_on_trial_would_have_rejected(
    run: Run,
    cloud: pathlib.Path,
    tmp_path: Any,
    flavor: str,
    hosts: int,
    count: str,
    status: int,
    of: str,
) -> None:
    path = tmp_path / "trial.conf"
    path.write_text("[steelyard]\ntrial_filters = AggregateInstanceTypeFilter\n")
    argv = ("--config-file", str(path), "schedule", "--cloud", cloud, "--flavor", flavor)
    found, out, err = run(*argv, "--count", count, "-f", "json")
    assert found == status
    summary = json.loads(out)["summary"]
    assert bool(summary["causes"]) is bool(status)
    assert {cause["filter"] for cause in summary["trial_causes"]} == {"AggregateInstanceTypeFilter"}
    assert sum(cause["count"] for cause in summary["trial_causes"]) == hosts
    told = rf"steelyard: AggregateInstanceTypeFilter, on trial, would reject {hosts} of 2 hosts{of}"
    assert re.fullmatch(told, err.splitlines()[0])


def test_schedule_without_valid_host_prints_no_empty_table(run: Run, cloud: pathlib.Path) -> None:
    status, out, _ = run("schedule", "--cloud", cloud, "--flavor", "fast")
    assert (status, out) == (1, "")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--flavor", "smal"], "no flavor 'smal'; did you mean 'small'?"),
        ([], "missing --flavor; available: 'small', 'fast', 'open'"),
        (["--flavor", "small", "--group", "g"], "no server group 'g'"),
    ],
)
def test_schedule_reports_a_mistake_in_one_line(
    run: Run, cloud: pathlib.Path, argv: Any, said: Any
) -> None:
    for command in ("schedule", "explain"):
        status, out, err = run(command, "--cloud", cloud, *argv)
        assert (status, out) == (2, "")
        assert err.startswith("steelyard: ")
        assert said in err
        assert err.count("\n") == 1


def test_schedule_rejects_an_invalid_count_and_a_missing_file(run: Run, tmp_path: Any) -> None:
    status, _, err = run("schedule", "--example", "--count", "0")
    assert (status, err) == (2, "steelyard: invalid number of servers 0: expected at least 1\n")
    missing = str(tmp_path / "nowhere.yaml")
    status, _, err = run("schedule", "--cloud", missing, "--flavor", "x")
    assert (status, err) == (2, f"steelyard: {missing}: No such file or directory\n")


def test_seed_of_the_command_line_overrides_the_option(run: Run, tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nhost_subset_size = 2\nseed = 1\n")
    argv = ("--config-file", str(path), "schedule", "--example", "-f", "json")
    seen = {run(*argv, "--seed", str(seed))[1] for seed in range(8)}
    assert len(seen) > 1
    assert run(*argv)[1] == run(*argv, "--seed", "1")[1]


REQUESTS = "- {flavor: small, count: 2, group: near, name: shop}\n- {flavor: open}\n"


def test_schedule_commits_the_servers_of_all_requests(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "requests.yaml").write_text(REQUESTS)
    argv = ("schedule", "--cloud", cloud, "--requests", "requests.yaml")
    status, out, _ = run(*argv, "--commit", "-f", "json")
    found = json.loads(out)
    assert status == 0
    assert found["summary"] == {
        "requests": 2,
        "servers": 3,
        "failed_request": None,
        "placed": 3,
        "committed": True,
        "causes": [],
        "trial_causes": [],
    }
    assert [row["server"] for row in found["servers"]] == ["shop-1", "shop-2", "open-1"]
    servers = Cloud.load(cloud).servers.values()
    assert [(server.name, server.host, server.group) for server in servers] == [
        (row["server"], row["host"], "near" if row["server"] != "open-1" else None)
        for row in found["servers"]
    ]


def test_schedule_saves_no_request_if_one_has_no_host(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "requests.yaml").write_text(REQUESTS + "- {flavor: fast, name: db}\n")
    before = cloud.read_text()
    argv = ("schedule", "--cloud", cloud, "--requests", "requests.yaml", "--commit")
    status, out, err = run(*argv)
    assert (status, out) == (1, "")
    assert err.splitlines()[-1] == (
        "steelyard: request 3 of 3, 'db', 1 server of flavor 'fast', has no valid host: no server "
        "of any request was placed"
    )
    assert cloud.read_text() == before
    status, out, _ = run(*argv, "-f", "json")
    summary = json.loads(out)["summary"]
    assert summary["placed"] == 0
    assert summary["failed_request"] == {
        "number": 3,
        "flavor": "fast",
        "count": 1,
        "group": None,
        "name": "db",
    }


@pytest.mark.parametrize("option", ["flavor", "group", "count"])
def test_schedule_rejects_requests_beside_a_single_request(
    run: Run, cloud: pathlib.Path, option: str
) -> None:
    status, _, err = run("schedule", "--cloud", cloud, "--requests", "r.yaml", f"--{option}", "1")
    assert (status, err) == (
        2,
        f"steelyard: --{option} and --requests cannot be used together: write the {option} into "
        f"the file\n",
    )


def test_schedule_says_what_was_possibly_meant(run: Run, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "typos.yaml"
    file.write_text(
        "hosts: {h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}, "
        "h2: {vcpus: 4, ram_mb: 4096, disk_gb: 100}}\n"
        "aggregates: {a: {hosts: [h1], metadata: {ssd: nvme}}, "
        "b: {hosts: [h2], metadata: {ssd: NVMe}}}\n"
        "flavors: {f: {vcpus: 1, ram_mb: 1024, disk_gb: 1, extra_specs: {ssd: nvme}}, "
        "typo: {vcpus: 1, ram_mb: 1024, disk_gb: 1, extra_specs: {ssd: nwme}}}\n"
    )
    argv = ("schedule", "--cloud", str(file), "--flavor")
    status, out, err = run(*argv, "typo", "-f", "json")
    assert status == 1
    assert err.splitlines()[-1] == (
        "steelyard: no aggregate has the value 'nwme'; did you mean 'nvme'?"
    )
    causes = json.loads(out)["summary"]["causes"]
    assert [each["suggestions"][0]["did_you_mean"] for each in causes] == [["nvme"]] * 2
    assert [each["count"] for each in causes] == [1, 1]
    _, out, err = run(*argv, "f", "--explain", "-f", "value", "-c", "Rejected")
    (cause,) = json.loads(out)
    assert [each["subject"]["name"] for each in cause["suggestions"]] == ["b"]
    _, out, _ = run(*argv, "f", "--explain", "-c", "Rejected")
    assert "aggregate 'b', key 'ssd': no flavor has the value 'NVMe'; did you mean 'nvme'?" in out
