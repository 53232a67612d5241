"""Commands whose output cannot be written."""

import os
import pathlib
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-c", "import sys; from steelyard.cli import main; sys.exit(main())"]


def run(arguments: str, redirection: str, encoding: str = "utf-8") -> tuple[int, str]:
    """Return the status of a command with redirected streams, and its standard error."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    environment.pop("PYTHONUNBUFFERED", None)  # nothing would be left to write at the exit
    done = subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, *arguments.split()],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("redirection", "why"),
    [(">/dev/full", "No space left on device"), (">&-", "it is closed")],
)
@pytest.mark.parametrize(
    "arguments", ["--help", "help explain", "explain --example", "explain --example --html -"]
)
def test_output_that_cannot_be_written_is_one_clear_line(
    arguments: str, redirection: str, why: str
) -> None:
    status, err = run(arguments, redirection)
    assert (status, err) == (74, f"steelyard: cannot write to standard output: {why}\n")


def test_closed_pipe_is_not_an_error() -> None:
    status, err = run("explain --example --html -", "| true")
    assert (status, err) == (0, "")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize(("arguments", "status"), [("exlpain", 2), ("check --example", 0)])
def test_errors_that_cannot_be_written_keep_the_status(
    arguments: str, status: int, redirection: str
) -> None:
    assert run(arguments, f">/dev/null {redirection}")[0] == status


@pytest.mark.parametrize("form", ["table", "csv", "value"])
def test_characters_that_output_cannot_encode_are_escaped(
    tmp_path: pathlib.Path, form: str
) -> None:
    cloud, out = tmp_path / "cloud.yaml", tmp_path / "out"
    cloud.write_text(
        "hosts: {h: {vcpus: 1, ram_mb: 1, disk_gb: 1}}\n"
        "server_groups: {gruppé: {policy: affinity}}\n",
        encoding="utf-8",
    )
    arguments = f"group list --cloud {cloud} -f {form}"
    assert run(arguments, f">{out}", encoding="ascii") == (0, "")
    assert r"grupp\xe9" in out.read_text()
