import csv
import io
import json
import logging
from typing import Any

import pytest
import yaml

from steelyard import cli

CLOUD = """\
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 4, ram_mb: 8192, disk_gb: 100}
aggregates:
  slow: {hosts: [h2], metadata: {ssd: sata}}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}
  fast: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: nvme}}
  open: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: "!"}}
"""


@pytest.fixture
def cloud(tmp_path: Any) -> Any:
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return str(path)


@pytest.fixture
def steelyard(capsys: Any) -> Any:
    def run(*argv: str) -> tuple[int, str, str]:
        handlers, level = logging.root.handlers[:], logging.root.level
        try:
            status = cli.main(argv)
        except SystemExit as error:  # argparse's
            status = int(error.code or 0)
        finally:
            run.level = logging.root.level  # type: ignore[attr-defined]  # for one test to see
            # A command has its own, once in a process.
            logging.root.handlers[:] = handlers
            logging.root.setLevel(level)
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_the_example_places_two_servers_apart(steelyard: Any) -> None:
    status, out, err = steelyard("schedule", "--example", "-f", "json")
    assert (status, err) == (0, "")
    assert [(row["Server"], row["Host"]) for row in json.loads(out)] == [
        ("web.small-1", "rack2-node2"),
        ("web.small-2", "rack3-node1"),
    ]


def test_schedule_explains(steelyard: Any) -> None:
    status, out, _ = steelyard("schedule", "--example", "--explain", "-f", "yaml")
    assert status == 0
    first = yaml.safe_load(out)[0]
    assert first["Weights"][0]["weigher"] == "RAMWeigher"
    assert first["Rejected"][0]["count"] == 2
    status, out, _ = steelyard("schedule", "--example", "--explain")
    assert "2 by AggregateInstanceTypeFilter: key 'ssd': flavor wants" in out
    assert "RAMWeigher: 262144, normalised 1, times 1" in out


@pytest.mark.parametrize("form", ["json", "yaml", "csv", "value", "table"])
def test_every_format(steelyard: Any, cloud: Any, form: Any) -> None:
    for command in (["schedule", "--explain"], ["explain"]):
        status, out, _ = steelyard(*command, "--cloud", cloud, "--flavor", "open", "-f", form)
        assert status == 0
        assert "h1" in out
    status, out, _ = steelyard("plugins", "-f", form)
    assert status == 0
    assert "AggregateInstanceTypeFilter" in out


def test_explain_shows_every_host(steelyard: Any, cloud: Any) -> None:
    status, out, err = steelyard("explain", "--cloud", cloud, "--flavor", "open", "-f", "json")
    assert (status, err) == (0, "")
    chosen, rejected = json.loads(out)
    assert (chosen["Host"], chosen["Verdict"]) == ("h1", "chosen")
    assert (rejected["Host"], rejected["Verdict"], rejected["Weight"]) == ("h2", "rejected", None)
    assert rejected["Why"]["passed"] == ["InServiceFilter", "CapacityFilter", "TraitsFilter"]
    assert rejected["Why"]["rejected_by"] == "AggregateInstanceTypeFilter"


@pytest.mark.parametrize("command", ["schedule", "explain"])
def test_no_valid_host(steelyard: Any, cloud: Any, command: Any) -> None:
    status, out, err = steelyard(command, "--cloud", cloud, "--flavor", "fast", "-f", "csv")
    assert status == 1
    assert err.splitlines() == [
        "steelyard: no valid host: of 2 hosts none fits flavor 'fast'",
        "      1 AggregateInstanceTypeFilter: key 'ssd': flavor wants 'nvme', aggregate 'slow' "
        "offers 'sata'",
        "      1 AggregateInstanceTypeFilter: key 'ssd': flavor wants 'nvme', no aggregate of the "
        "host has the key",
    ]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["Verdict"] for row in rows] == (["rejected"] * 2 if command == "explain" else [])


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--flavor", "smal"], "there is no flavor 'smal'; did you mean 'small'?"),
        ([], "--flavor is missing; the cloud has 'small', 'fast', 'open'"),
        (["--flavor", "small", "--group", "g"], "there is no server group 'g'"),
    ],
)
def test_a_mistake_of_the_user_is_one_line(
    steelyard: Any, cloud: Any, argv: Any, said: Any
) -> None:
    for command in ("schedule", "explain"):
        status, out, err = steelyard(command, "--cloud", cloud, *argv)
        assert (status, out) == (2, "")
        assert err.startswith("steelyard: ")
        assert said in err
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    "argv",
    [
        ["schedule", "--flavor", "x"],
        ["schedule", "--example", "--cloud", "x"],
        ["schedule", "--example", "--count", "many"],
        ["nonsense"],
    ],
)
def test_a_mistake_in_the_arguments(steelyard: Any, argv: Any) -> None:
    status, _, _ = steelyard(*argv)
    assert status == 2


def test_a_bad_count_and_a_missing_file(steelyard: Any, tmp_path: Any) -> None:
    status, _, err = steelyard("schedule", "--example", "--count", "0")
    assert (status, err) == (2, "steelyard: the number of servers is at least 1, not 0\n")
    missing = str(tmp_path / "nowhere.yaml")
    status, _, err = steelyard("schedule", "--cloud", missing, "--flavor", "x")
    assert (status, err) == (2, f"steelyard: {missing}: No such file or directory\n")


def test_a_mistake_in_the_cloud(steelyard: Any, tmp_path: Any) -> None:
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD.replace("vcpus: 4", "vcpus: four", 1))
    status, _, err = steelyard("schedule", "--cloud", str(path), "--flavor", "small")
    assert status == 2
    assert err == (
        f'steelyard: {path}:2: hosts.h1.vcpus: expected a whole number from 0 to 999999999999999, got "four"\n'
    )


def test_options_come_from_configuration_files(steelyard: Any, cloud: Any, tmp_path: Any) -> None:
    first, second = tmp_path / "first.conf", tmp_path / "second.conf"
    first.write_text("[steelyard]\nram_weight_multiplier = -1\n")
    second.write_text("[steelyard]\nram_weight_multiplier = 2\n")

    def host(*files: str) -> str:
        options = [part for file in files for part in ("--config-file", file)]
        _, out, _ = steelyard(
            *options, "schedule", "--cloud", cloud, "--flavor", "small", "-f", "value", "-c", "Host"
        )
        return str(out).strip()

    assert host() == "h2"
    assert host(str(first)) == "h1"
    assert host(str(first), str(second)) == "h2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[steelyard]\nhost_subset_size = 0\n", "host_subset_size"),
        ("[steelyard]\nenabled_filters = Nothing\n", "there is no filter 'Nothing'; installed are"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_mistake_in_a_configuration_file(
    steelyard: Any, tmp_path: Any, text: Any, said: Any
) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text(text)
    status, _, err = steelyard("--config-file", str(path), "schedule", "--example")
    assert status == 2
    assert said in err


def test_a_configuration_file_that_is_not_there(steelyard: Any) -> None:
    status, _, err = steelyard("--config-file", "/nowhere.conf", "schedule", "--example")
    assert status == 2
    assert "/nowhere.conf" in err


def test_plugins_are_listed_with_their_place(steelyard: Any) -> None:
    _, out, _ = steelyard("plugins", "-f", "json")
    rows = {row["Name"]: row for row in json.loads(out)}
    assert rows["CapacityFilter"]["Enabled"] == 2
    assert rows["RAMWeigher"]["Kind"] == "weigher"
    assert rows["RAMWeigher"]["Distribution"].startswith("steelyard ")


def test_plugins_that_are_not_enabled(steelyard: Any, tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nenabled_filters = CapacityFilter\n")
    _, out, _ = steelyard("--config-file", str(path), "plugins", "-f", "json")
    rows = {row["Name"]: row for row in json.loads(out)}
    assert rows["AggregateInstanceTypeFilter"]["Enabled"] is None


def test_plugins_that_are_enabled_but_not_there(steelyard: Any, tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nenabled_filters = CapacityFilter, Nope\n")
    _, out, _ = steelyard("--config-file", str(path), "plugins", "-f", "json")
    rows = {row["Name"]: row for row in json.loads(out)}
    assert (rows["Nope"]["Enabled"], rows["Nope"]["Distribution"]) == (2, "not installed")


def test_a_column_that_is_not_there(steelyard: Any) -> None:
    status, _, err = steelyard("schedule", "--example", "-c", "Nope")
    assert status == 2
    assert "Nope" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("argv", [["-v"], ["--debug"], ["--config-file", "x"]])
def test_options_without_a_command(steelyard: Any, argv: Any) -> None:
    status, _, err = steelyard(*argv)
    assert status == 2
    assert "a command is missing" in err


def test_a_log_file_that_cannot_be_written(steelyard: Any, tmp_path: Any) -> None:
    status, _, err = steelyard("--log-file", str(tmp_path / "no" / "log"), "plugins")
    assert status == 2
    assert "No such file or directory" in err


def test_a_configuration_file_that_is_no_text(steelyard: Any, tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_bytes(b"[steelyard]\nseed = \xff\n")
    status, _, err = steelyard("--config-file", str(path), "plugins")
    assert status == 2
    assert "is not UTF-8 text" in err


def test_the_cloud_can_come_from_standard_input(steelyard: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(CLOUD))
    argv = ("schedule", "--cloud", "-", "--flavor", "small", "-f", "value", "-c", "Host")
    assert steelyard(*argv)[:2] == (0, "h2\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("hosts: []"))
    status, _, err = steelyard(*argv)
    assert status == 2
    assert err.startswith("steelyard: standard input:1: hosts: expected a mapping")


def test_a_folder_is_no_configuration_file(steelyard: Any, tmp_path: Any) -> None:
    status, _, err = steelyard("--config-file", str(tmp_path), "plugins")
    assert (status, err) == (2, f"steelyard: {tmp_path}: Is a directory\n")


def test_the_seed_of_the_command_line_counts(steelyard: Any, tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nhost_subset_size = 2\nseed = 1\n")
    argv = ("--config-file", str(path), "schedule", "--example", "-f", "json")
    seen = {steelyard(*argv, "--seed", str(seed))[1] for seed in range(8)}
    assert len(seen) > 1
    assert steelyard(*argv)[1] == steelyard(*argv, "--seed", "1")[1]


def test_nothing_is_worked_out_for_a_log_that_nobody_reads(steelyard: Any) -> None:
    steelyard("plugins")
    assert steelyard.level == logging.WARNING
    steelyard("-vv", "plugins")
    assert steelyard.level == logging.DEBUG


def test_without_a_command_it_shows_help(steelyard: Any) -> None:
    status, out, _ = steelyard()
    assert status == 0
    assert "schedule" in out
    assert "--config-file" in out


def test_warnings_about_metadata_reach_the_screen(steelyard: Any, cloud: Any) -> None:
    text = CLOUD.replace('"!"', '">= many"')
    with open(cloud, "w") as file:
        file.write(text)
    status, _, err = steelyard("schedule", "--cloud", cloud, "--flavor", "open")
    assert status == 1
    assert "WARNING: flavor extra spec 'ssd' cannot be satisfied: '>= many'" in err


def test_a_bug_is_not_taken_for_no_valid_host(steelyard: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("steelyard.cli.plugins.plugins.installed", lambda group: 1 / 0)
    status, _, err = steelyard("plugins")
    assert status == 70
    assert "division by zero" in err
    assert "--debug shows where" in err
