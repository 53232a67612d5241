"""Where commands read the cloud from, and which of them need a file to change."""

import io
import json
import pathlib

import pytest

from steelyard.cloud import Cloud
from steelyard.cloud.files import saving
from support.cli.in_process import Run


@pytest.mark.parametrize(
    "argv",
    [
        ["check"],
        ["explain", "--flavor", "small"],
        ["group", "list"],
        ["group", "show", "web"],
        ["server", "list"],
    ],
)
def test_command_without_a_cloud_file_names_the_choices(run: Run, argv: list[str]) -> None:
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert err == (
        "steelyard: no cloud.yaml or cloud.json in the current directory: name a file with --cloud, create one with 'steelyard cloud import', or use the cloud that comes with steelyard with --example\n"
    )


def test_command_finds_the_usual_json_file(run: Run, cloud: pathlib.Path) -> None:
    saving.create("cloud.json", Cloud.load(cloud))
    status, out, err = run("server", "list")
    assert (status, out) == (2, "")
    assert err == (
        "steelyard: both cloud.yaml and cloud.json are in the current directory: name one of them "
        "with --cloud, or delete the other\n"
    )
    cloud.unlink()
    assert run("schedule", "--flavor", "small", "-f", "value", "-c", "Host").out == "h2\n"


def test_schedule_reads_the_usual_file(run: Run, cloud: pathlib.Path) -> None:
    status, out, _ = run("schedule", "--flavor", "small", "-f", "json")
    assert (status, json.loads(out)["servers"][0]["host"]) == (0, "h2")


@pytest.mark.parametrize("argv", [["group", "list"], ["server", "list"], ["group", "show", "web"]])
def test_lists_read_the_usual_file(run: Run, cloud: pathlib.Path, argv: list[str]) -> None:
    cloud.write_text(cloud.read_text().replace("near:", "web:"))
    usual = run(*argv, "-f", "json")
    assert usual.status == 0
    assert usual == run(*argv, "--cloud", "cloud.yaml", "-f", "json")
    assert run(*argv, "--example").status == 0


def test_schedule_reads_the_cloud_from_standard_input(
    run: Run, cloud: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(cloud.read_text()))
    argv = ("schedule", "--cloud", "-", "--flavor", "small", "-f", "value", "-c", "Host")
    assert run(*argv)[:2] == (0, "h2\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("hosts: []"))
    status, _, err = run(*argv)
    assert status == 2
    assert err.startswith("steelyard: standard input:1: hosts: expected a mapping")


def test_commands_that_only_read_accept_standard_input(
    run: Run, cloud: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(cloud.read_text()))
    assert "near" in run("group", "list", "--cloud", "-", "-f", "csv").out
    status, _, err = run("group", "delete", "near", "--cloud", "-")
    assert status == 2
    assert "no file to change" in err


@pytest.mark.parametrize("source", [("--example",), ("--cloud", "-")])
def test_commit_without_a_file_is_rejected(run: Run, source: tuple[str, ...]) -> None:
    status, _, err = run("schedule", *source, "--flavor", "web.small", "--commit")
    assert status == 2
    assert "no file to change: name one with --cloud" in err


def test_mistake_in_the_cloud_file_is_named_with_its_line(run: Run, cloud: pathlib.Path) -> None:
    cloud.write_text(cloud.read_text().replace("vcpus: 4", "vcpus: four", 1))
    status, _, err = run("schedule", "--cloud", cloud, "--flavor", "small")
    assert status == 2
    assert err == (
        f"steelyard: {cloud}:2: hosts.h1.vcpus: expected a whole number from 0 to 999999999999999, "
        'got "four"\n'
    )
