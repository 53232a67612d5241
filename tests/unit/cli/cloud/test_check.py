"""The command that reports misconfigured aggregates and flavors."""

import json
import logging
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import yaml

from support.cli.in_process import Run

pytestmark = pytest.mark.usefixtures("faulty_cloud")

UNRECOGNISED = {"kind": "aggregate", "name": "fast", "key": "force_metadata_check"}


def test_check_json_has_summary_and_findings(run: Run) -> None:
    status, out, err = run("check", "-f", "json")
    assert (status, err) == (
        1,
        "steelyard: 2 findings in 1 aggregate, 3 flavors, 3 hosts, 0 servers and 0 groups\n",
    )
    document = json.loads(out)
    assert document["summary"] == {
        "findings": 2,
        "errors": 1,
        "warnings": 1,
        "notes": 0,
        "aggregates": 1,
        "flavors": 3,
        "hosts": 3,
        "servers": 0,
        "groups": 0,
    }
    assert document["findings"][1] == {
        "severity": "warning",
        "check": "unrecognised-flag",
        "subject": UNRECOGNISED,
        "message": "'perhaps' is neither true nor false, so the aggregate is not forced",
        "remedy": "write 'true' or 'false'",
        "file": None,
        "line": None,
        "details": {"value": "perhaps"},
    }
    subject = {"kind": "flavor", "name": "huge", "key": None}
    assert document["findings"][0]["subject"] == subject
    assert yaml.safe_load(run("check", "-f", "yaml")[1]) == document


def test_check_json_has_the_named_columns_only(run: Run) -> None:
    _, out, _ = run("check", "-f", "json", "-c", "Check", "-c", "Details", "--noindent")
    assert json.loads(out)["findings"][1] == {
        "check": "unrecognised-flag",
        "details": {"value": "perhaps"},
    }
    assert out.count("\n") == 1


def test_check_csv_has_rows_only(run: Run) -> None:
    _, out, _ = run("check", "-f", "csv", "--quote", "none")
    lines = out.splitlines()
    assert lines[0] == "Severity,Check,Subject,Message,Remedy,File,Line"
    assert lines[1].startswith("error,fits-no-host,flavor 'huge',")
    assert len(lines) == 3


BLOCKS = """\
error: fits-no-host: flavor 'huge'
    it fits no host, not even an empty one; nearest is 'h1':
    RAM: flavor wants 8 GiB, the host has 4 of 4 GiB left
    remedy: change the flavor, or give the nearest host what
    it lacks

warning: unrecognised-flag: aggregate 'fast', key
        'force_metadata_check'
    'perhaps' is neither true nor false, so the aggregate is
    not forced
    remedy: write 'true' or 'false'

"""


def test_check_wraps_blocks_to_the_width_of_the_terminal(run: Run, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run("check")[1] == BLOCKS
    monkeypatch.setenv("COLUMNS", "200")
    assert len(run("check")[1].splitlines()) == 8
    assert run("check", "--max-width", "60")[1] == BLOCKS


def test_check_ignores_a_negative_width(run: Run, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    status, out, _ = run("check", "--max-width", "-1")
    assert (status, out) == (1, BLOCKS)


def test_check_blocks_have_the_named_columns_only(run: Run) -> None:
    _, out, _ = run("check", "-c", "Check", "-c", "Severity")
    assert out == "error: fits-no-host\nwarning: unrecognised-flag\n"
    _, out, _ = run("check", "-c", "Remedy", "--sort-column", "Remedy")
    assert out.splitlines()[1] == "    remedy: write 'true' or 'false'"


def test_check_blocks_escape_names(run: Run, faulty_cloud: pathlib.Path) -> None:
    faulty_cloud.write_text(faulty_cloud.read_text().replace("huge:", '"h\\e[31muge":'))
    assert "\x1b" not in run("check")[1]


def test_check_finds_nothing_in_the_example(run: Run) -> None:
    status, out, err = run("check", "--example", "-f", "json", "-c", "Check")
    assert (status, json.loads(out)["findings"]) == (0, [])
    assert (
        err
        == "steelyard: nothing found in 3 aggregates, 5 flavors, 6 hosts, 1 server and 2 groups\n"
    )
    assert run("check", "--example")[:2] == (0, "")


def test_check_restores_the_log_level_of_filters(run: Run) -> None:
    run("check")
    assert logging.getLogger("steelyard.filters").level == logging.NOTSET


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_accepted_findings_are_not_listed(run: Run, tmp_path: Any, kind: str) -> None:
    _, out, _ = run("check", "-f", kind)
    accepted = tmp_path / f"accepted.{kind}"
    accepted.write_text(out)
    status, out, _ = run("check", "--accepted", str(accepted), "-f", "json")
    assert (status, json.loads(out)["findings"]) == (0, [])


def test_stale_acceptance_is_noted(run: Run, tmp_path: Any) -> None:
    accepted = [
        {
            "check": "fits-no-host",
            "subject": {"kind": "flavor", "name": "huge"},
            "because": "hosts are on their way",
        },
        {"check": "fits-no-host", "subject": {"kind": "flavor", "name": "gone"}},
        {"check": "unrecognised-flag", "subject": UNRECOGNISED},
    ]
    (tmp_path / "accepted.yaml").write_text(yaml.safe_dump({"findings": accepted}))
    status, out, _ = run("check", "--accepted", "accepted.yaml", "-f", "json")
    assert status == 0  # notes do not count
    assert json.loads(out)["findings"] == [
        {
            "severity": "note",
            "check": "stale-acceptance",
            "subject": {"kind": "flavor", "name": "gone", "key": None},
            "message": "accepted.yaml accepts 'fits-no-host' here, but the check no longer finds it",
            "remedy": "remove it from accepted.yaml",
            "file": "accepted.yaml",
            "line": None,
            "details": {"check": "fits-no-host"},
        }
    ]


def test_accepted_key_named_null_is_a_key(run: Run, tmp_path: Any) -> None:
    subject = "{kind: flavor, name: huge, key: 'null'}"
    (tmp_path / "accepted.yaml").write_text(
        f"findings: [{{check: fits-no-host, subject: {subject}}}]"
    )
    _, out, _ = run("check", "--accepted", "accepted.yaml", "-c", "Subject")
    assert out.splitlines()[0] == "flavor 'huge'"


def test_accepted_finding_of_a_key_does_not_accept_the_whole_flavor(
    run: Run, tmp_path: Any
) -> None:
    subject = {"kind": "flavor", "name": "huge", "key": "ssd"}
    accepted = {"findings": [{"check": "fits-no-host", "subject": subject}]}
    (tmp_path / "accepted.json").write_text(json.dumps(accepted))
    status, out, _ = run("check", "--accepted", "accepted.json", "-c", "Check")
    assert (status, out.splitlines()) == (
        1,
        ["fits-no-host", "unrecognised-flag", "stale-acceptance"],
    )


SUBJECT = "subject: {kind: flavor, name: b}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a list 'findings', as 'steelyard check -f json' writes it"),
        ("[]", "expected a list 'findings'"),
        ("findings: {}", "expected a list 'findings'"),
        ("{findings: [], sumary: {}}", "unknown key 'sumary'; did you mean 'summary'?"),
        ("findings: [fits]", "invalid finding 'fits': expected a mapping"),
        (
            "findings: [{check: no-room}]",
            "invalid 'subject' None in {'check': 'no-room'}: expected",
        ),
        (
            "findings: [{check: [], subject: {}}]",
            "invalid 'check' [] in {'check': [], 'subject': {}}: expected",
        ),
        (f"findings: [{{check: no-room, {SUBJECT}, wy: c}}]", "unknown key 'wy'"),
        (
            f"findings: [{{check: fit-no-host, {SUBJECT}}}]",
            "no check 'fit-no-host'; did you mean 'fits-no-host'",
        ),
        (
            "findings: [{check: no-room, subject: {kind: flavour, name: b}}]",
            "no kind 'flavour'; did you mean 'flavor'?",
        ),
        (
            "findings: [{check: no-room, subject: {kind: flavor, nam: b}}]",
            "unknown key 'nam'; did you mean 'name'?",
        ),
        (
            "findings: [{check: no-room, subject: {kind: flavor, name: null}}]",
            "invalid 'name' None in {'kind': 'flavor', 'name': None}: expected text",
        ),
        (
            "findings: [{check: no-room, subject: {kind: flavor, name: b, key: [1]}}]",
            "invalid 'key' ['1'] in {'kind': 'flavor', 'name': 'b', 'key': ['1']}: expected",
        ),
        ("[", "accepted.yaml:2: invalid YAML"),
        (None, "accepted.yaml: No such file or directory"),
    ],
)
def test_check_rejects_an_invalid_file_of_accepted_findings(
    run: Run, tmp_path: Any, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "accepted.yaml").write_text(text)
    status, out, err = run("check", "--accepted", "accepted.yaml")
    assert (status, out) == (2, "")
    assert err.startswith("steelyard: accepted.yaml")
    assert said in err


@pytest.mark.parametrize("command", [["check"], ["capacity", "--flavor", "fast"]])
def test_check_counts_rejections_of_a_filter_on_trial(
    run: Run, tmp_path: Any, command: list[str]
) -> None:
    (tmp_path / "trial.conf").write_text(
        "[steelyard]\ntrial_filters = AggregateInstanceTypeFilter\n"
    )
    assert run("--config-file", "trial.conf", *command)[:2] == run(*command)[:2]


def test_order_of_findings_does_not_depend_on_hashes(faulty_cloud: pathlib.Path) -> None:
    metadata = ", ".join(f"k{number}: '<or> {number}'" for number in range(20))
    text = faulty_cloud.read_text()
    faulty_cloud.write_text(text.replace("ssd: nvme, force", f"{metadata}, force"))
    code = "from steelyard import cli; cli.main(['check', '-f', 'json'])"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=faulty_cloud.parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(said) == 1
    assert "k19" in said.pop().decode()


PLACED = """\
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 50}
  h2: {vcpus: 4, ram_mb: 8192, disk_gb: 50}
aggregates:
  rack-a: {hosts: [h1], metadata: {rack: a}}
  rack-b: {hosts: [h2], metadata: {rack: b}}
  pool: {hosts: [h1], metadata: {ssd: sata}}
flavors:
  small: {vcpus: 1, ram_mb: 512, disk_gb: 1}
  fast: {vcpus: 1, ram_mb: 512, disk_gb: 1, extra_specs: {ssd: <or> nvme <or> ~}}
  large: {vcpus: 1, ram_mb: 4096, disk_gb: 1}
server_groups:
  apart: {policy: anti-affinity}
  spread: {policy: soft-anti-affinity}
servers:
  a1: {host: h1, flavor: small, group: apart}
  a2: {host: h1, flavor: small, group: apart}
  s1: {host: h1, flavor: small, group: spread}
  s2: {host: h1, flavor: small, group: spread}
  f1: {host: h1, flavor: fast}
  l1: {host: h1, flavor: large}
"""


@pytest.fixture
def placed_cloud(faulty_cloud: pathlib.Path) -> None:
    """Write a cloud.yaml with violated groups, a misplaced server and an overcommitted host."""
    faulty_cloud.write_text(PLACED)


@pytest.mark.usefixtures("placed_cloud")
def test_check_reports_placed_servers(run: Run) -> None:
    status, out, err = run("check", "-f", "json", "-c", "Severity", "-c", "Check", "-c", "Subject")
    found = json.loads(out)["findings"]
    assert status == 1
    assert [(each["severity"], each["check"], each["subject"]) for each in found] == [
        ("error", "group-violation", {"kind": "group", "name": "apart", "key": None}),
        ("warning", "group-violation", {"kind": "group", "name": "spread", "key": None}),
        ("warning", "misplaced-server", {"kind": "server", "name": "f1", "key": None}),
        ("warning", "overcommitted-host", {"kind": "host", "name": "h1", "key": None}),
    ]
    assert err.endswith("in 3 aggregates, 3 flavors, 2 hosts, 6 servers and 2 groups\n")


@pytest.mark.usefixtures("placed_cloud")
def test_check_compares_failure_domains(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "racks.conf").write_text("[steelyard]\nfailure_domains = rack\n")
    for options, level in (([], "host"), (["--config-file", "racks.conf"], "rack")):
        _, out, _ = run(*options, "check", "-f", "json")
        found = {each["subject"]["name"]: each for each in json.loads(out)["findings"]}
        assert found["spread"]["details"]["level"] == level


@pytest.mark.usefixtures("placed_cloud")
def test_accepted_findings_about_placed_servers_are_not_listed(
    run: Run, tmp_path: pathlib.Path
) -> None:
    accepted = tmp_path / "accepted.json"
    accepted.write_text(run("check", "-f", "json")[1])
    cloud_file = tmp_path / "cloud.yaml"
    cloud_file.write_text(PLACED + "  a3: {host: h1, flavor: small, group: apart}\n")
    assert run("check", "--accepted", "accepted.json")[:2] == (0, "")
    cloud_file.write_text(PLACED.replace("a2: {host: h1", "a2: {host: h2"))
    status, out, _ = run("check", "--accepted", "accepted.json", "-f", "json")
    assert status == 0
    (stale,) = json.loads(out)["findings"]
    assert stale["subject"] == {"kind": "group", "name": "apart", "key": None}
