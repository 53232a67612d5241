"""steelyard check and steelyard capacity, and where they read the cloud from."""

import json
import logging
import os
import subprocess
import sys
from typing import Any

import pytest
import yaml

from steelyard import cli

CLOUD = """\
hosts:
  h1: {vcpus: 1, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 1, ram_mb: 2048, disk_gb: 100}
  h3: {vcpus: 1, ram_mb: 2048, disk_gb: 100}
aggregates:
  fast: {hosts: [h1, h2], metadata: {ssd: nvme, force_metadata_check: perhaps}}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}
  fast: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: nvme}}
  huge: {vcpus: 1, ram_mb: 8192, disk_gb: 10}
"""


@pytest.fixture
def desk(tmp_path: Any, monkeypatch: Any, capsys: Any) -> Any:
    """Runs a command where a cloud.yaml is."""
    (tmp_path / "cloud.yaml").write_text(CLOUD)
    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> tuple[int, Any, str]:
        status = cli.main(argv)
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_what_is_found_is_listed_and_tells_the_status(desk: Any) -> None:
    status, out, err = desk("check", "-f", "json")
    assert (status, err) == (1, "steelyard: 2 findings in 1 aggregate, 3 flavors and 3 hosts\n")
    assert [(row["Severity"], row["Check"], row["Where"]) for row in json.loads(out)] == [
        ("error", "fits-no-host", "flavor 'huge'"),
        ("warning", "unrecognised-flag", "aggregate 'fast', key 'force_metadata_check'"),
    ]
    assert all(row["Why"] and row["Remedy"] for row in json.loads(out))


def test_nothing_is_found_in_the_example(desk: Any) -> None:
    status, out, err = desk("check", "--example", "-f", "json")
    assert (status, out) == (0, "[]\n")
    assert err == "steelyard: nothing found in 3 aggregates, 5 flavors and 6 hosts\n"


def test_filters_log_as_before_once_a_check_is_done(desk: Any) -> None:
    desk("check")
    assert logging.getLogger("steelyard.filters").level == logging.NOTSET


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_what_is_accepted_is_not_listed(desk: Any, tmp_path: Any, kind: str) -> None:
    _, out, _ = desk("check", "-f", kind)
    accepted = tmp_path / f"accepted.{kind}"
    accepted.write_text(out)
    status, out, _ = desk("check", "--accepted", str(accepted), "-f", "json")
    assert (status, out) == (0, "[]\n")


def test_what_is_accepted_in_vain_is_noted(desk: Any, tmp_path: Any) -> None:
    accepted = [
        {"Check": "fits-no-host", "Where": "flavor 'huge'", "Because": "hosts are on their way"},
        {"Check": "fits-no-host", "Where": "flavor 'gone'"},
        {"Check": "unrecognised-flag", "Where": "aggregate 'fast', key 'force_metadata_check'"},
    ]
    (tmp_path / "accepted.yaml").write_text(yaml.safe_dump(accepted))
    status, out, _ = desk("check", "--accepted", "accepted.yaml", "-f", "json")
    assert status == 0  # a note alone is nothing
    assert json.loads(out) == [
        {
            "Severity": "note",
            "Check": "accepted-in-vain",
            "Where": "flavor 'gone'",
            "Why": "accepted.yaml accepts 'fits-no-host' here, which is not found any more",
            "Remedy": "remove it from accepted.yaml",
        }
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a list of findings, as 'steelyard check -f json' writes it"),
        ("{}", "expected a list of findings"),
        ("[fits]", "'fits' is no finding"),
        ("[{Check: a}]", "has None for 'Where'; required are the texts 'Check' and 'Where'"),
        ("[{Check: [], Where: b}]", "has [] for 'Check'"),
        ("[{Check: a, Where: b, Wy: c}]", "unknown key 'Wy'; did you mean 'Why'?"),
        ("[{Check: fit-no-host, Where: b}]", "no check 'fit-no-host'; did you mean 'fits-no-host'"),
        ("[", "accepted.yaml:2: is not YAML"),
        (None, "accepted.yaml: No such file or directory"),
    ],
)
def test_a_file_that_accepts_nothing(desk: Any, tmp_path: Any, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "accepted.yaml").write_text(text)
    status, out, err = desk("check", "--accepted", "accepted.yaml")
    assert (status, out) == (2, "")
    assert err.startswith("steelyard: accepted.yaml")
    assert said in err


@pytest.mark.parametrize("command", [["check"], ["capacity", "--flavor", "fast"]])
def test_what_is_not_enforced_is_told_all_the_same(
    desk: Any, tmp_path: Any, command: list[str]
) -> None:
    (tmp_path / "trial.conf").write_text("[steelyard]\nenforce = false\n")
    assert desk("--config-file", "trial.conf", *command)[:2] == desk(*command)[:2]


def test_the_order_of_findings_is_the_same_each_time(desk: Any, tmp_path: Any) -> None:
    metadata = ", ".join(f"k{number}: '<or> {number}'" for number in range(20))
    text = CLOUD.replace("ssd: nvme, force", f"{metadata}, force")
    (tmp_path / "cloud.yaml").write_text(text)
    code = "from steelyard import cli; cli.main(['check', '-f', 'json'])"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(said) == 1


def test_capacity_host_by_host(desk: Any) -> None:
    status, out, err = desk("capacity", "--flavor", "small", "-f", "json")
    assert (status, err.splitlines()[-1:]) == (
        0,
        ["steelyard: 8 more servers of 'small' fit, on 3 of 3 hosts"],
    )
    assert [tuple(row.values()) for row in json.loads(out)] == [
        ("h1", 4, "vCPUs: flavor wants 1, the host has 0 of 4 left"),
        ("h2", 2, "MiB of RAM: flavor wants 1024, the host has 0 of 2048 left"),
        ("h3", 2, "MiB of RAM: flavor wants 1024, the host has 0 of 2048 left"),
    ]


def test_capacity_by_reason(desk: Any) -> None:
    status, out, _ = desk("capacity", "--flavor", "fast", "--by-reason", "-f", "json")
    assert status == 0
    assert [tuple(row.values()) for row in json.loads(out)] == [
        (1, 0, "key 'ssd': flavor wants 'nvme', no aggregate of the host has the key"),
        (1, 2, "not enough MiB of RAM: flavor wants 1024"),
        (1, 4, "not enough vCPUs: flavor wants 1"),
    ]


def test_no_capacity(desk: Any) -> None:
    status, _, err = desk("capacity", "--flavor", "huge")
    assert status == 1
    assert "steelyard: 0 more servers of 'huge' fit, on 0 of 3 hosts\n" in err


def test_a_flavor_that_there_is_not(desk: Any) -> None:
    status, out, err = desk("capacity", "--flavor", "smal")
    assert (status, out) == (2, "")
    assert err == "steelyard: there is no flavor 'smal'; did you mean 'small'?\n"


@pytest.mark.parametrize("argv", [["check"], ["explain", "--flavor", "small"]])
def test_where_there_is_no_cloud(desk: Any, tmp_path: Any, argv: list[str]) -> None:
    (tmp_path / "cloud.yaml").unlink()
    status, out, err = desk(*argv)
    assert (status, out) == (2, "")
    assert err == (
        "steelyard: there is no cloud.yaml here: name a file with --cloud, make one with "
        "'steelyard cloud import', or try the cloud that comes with steelyard with --example\n"
    )


def test_other_commands_read_the_usual_file_too(desk: Any) -> None:
    status, out, _ = desk("schedule", "--flavor", "fast", "-f", "json")
    assert (status, json.loads(out)[0]["Host"]) == (0, "h1")
