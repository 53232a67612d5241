"""Warnings of mistyped options in configuration files, whatever becomes of the command."""

import pathlib
from typing import Any

import pytest

from support.cli.in_process import Run


@pytest.fixture
def run_with(tmp_path: pathlib.Path, run: Run) -> Run:
    """Return a function that runs a command with the lines of a configuration file."""
    file = tmp_path / "steelyard.conf"

    def run_with(lines: str, *argv: str) -> Any:
        file.write_text(lines)
        file.chmod(0o600)
        return run("--config-file", file, *argv)

    return run_with


@pytest.mark.parametrize(
    ("lines", "argv", "mistyped", "meant"),
    [
        ("conection = sqlite:///t.db", "tags list s", "conection", "connection"),
        ("conection = sqlite:///t.db", "tags serve", "conection", "connection"),
        ("conection = sqlite:///t.db", "tags watch", "conection", "connection"),
        ("conection = sqlite:///t.db", "tags backend show", "conection", "connection"),
        ("conection = sqlite:///t.db", "db upgrade --schema tags", "conection", "connection"),
        ("conection = sqlite:///t.db", "db current --schema tags", "conection", "connection"),
        ("transport_ulr = amqp://h", "tags dispatch", "transport_ulr", "transport_url"),
        (
            "connection = sqlite:///t.db\nbackend = ganeti\nganeti_ulr = https://h",
            "tags list s",
            "ganeti_ulr",
            "ganeti_url",
        ),
    ],
)
def test_mistyped_option_is_reported_when_the_correct_one_is_missing(
    run_with: Run, lines: str, argv: str, mistyped: str, meant: str
) -> None:
    status, out, err = run_with(f"[steelyard_tags]\n{lines}\n", *argv.split())
    assert (status, out) == (2, "")
    warning, error = err.splitlines()
    assert warning.startswith("WARNING: ")
    assert f"[steelyard_tags] {mistyped}; did you mean" in warning
    assert f"did you mean '{meant}'" in warning
    assert error.startswith("steelyard: ")


@pytest.mark.parametrize("argv", ["db upgrade", "db current", "db history", "tags backend show"])
def test_commands_on_the_store_of_tags_warn_of_unknown_options(run_with: Run, argv: str) -> None:
    lines = "[steelyard_tags]\nconnection = sqlite:///t.db\nzzzzzz = 1\n"
    more = ["--schema", "tags"] if argv.startswith("db") else []
    _, _, err = run_with(lines, *argv.split(), *more)
    assert err.count("WARNING: ") == 1
    assert "[steelyard_tags] zzzzzz" in err


def test_mistyped_option_is_reported_beside_a_missing_plugin(run_with: Run) -> None:
    lines = "[steelyard]\nfailure_domain = x\nzzzzzz = 1\nenabled_filters = CapacityFiltr\n"
    status, out, err = run_with(lines, "explain", "--example")
    assert (status, out) == (2, "")
    warning, error = err.splitlines()
    assert "[steelyard] failure_domain; did you mean" in warning
    assert "no filter 'CapacityFiltr'" in error


def test_successful_command_warns_once(run_with: Run) -> None:
    status, _, err = run_with("[steelyard]\nfailure_domain = x\n", "explain", "--example")
    assert status == 0
    assert err.count("WARNING: ") == 1


@pytest.mark.parametrize(
    ("argv", "count"),
    [
        (["schedule", "--example"], 1),
        (["explain", "--example"], 1),
        (["check", "--example"], 1),
        (["compare", "--rules", "own", "--example"], 1),
        (["plugins"], 1),
        (["group", "list", "--example"], 0),
    ],
)
def test_unknown_options_are_logged_as_warnings(
    run: Run, tmp_path: Any, argv: Any, count: Any
) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nfailure_domain = rack\n")
    _, _, err = run("-q", "--config-file", str(path), *argv)
    assert err == count * (
        f"WARNING: Unknown option ignored: {path}:2: [steelyard] failure_domain; did you mean "
        "'failure_domains'?\n"
    )
