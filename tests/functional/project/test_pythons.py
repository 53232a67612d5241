"""The search for Pythons to test with."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from support.repository import ROOT

SEARCH = ROOT / ".ci" / "pythons"
OWN = sys.version_info.minor
FIRST, SECOND, THIRD = (minor for minor in (11, 12, 13, 14) if minor != OWN)


def program(path: pathlib.Path, status: int) -> pathlib.Path:
    """Write a program that exits with the status for any arguments."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a home directory whose ``bin`` has the tools of the search and this Python."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "grep", "tr"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    for name in ("python3", f"python3.{OWN}"):
        (tools / name).symlink_to(sys.executable)
    return tmp_path


def search(machine: pathlib.Path) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(machine), "PATH": f"{machine}/bin:{machine}/.pyenv/shims"}
    return subprocess.run(
        [SEARCH], env=environment, capture_output=True, text=True, check=True, timeout=60
    )


def test_search_finds_pythons_of_path_pyenv_and_uv_but_not_its_own(machine: pathlib.Path) -> None:
    shims = machine / ".pyenv" / "shims"
    for minor in (FIRST, SECOND, THIRD):
        program(shims / f"python3.{minor}", 127)
    first = program(machine / "bin" / f"python3.{FIRST}", 0)
    second = program(machine / f".pyenv/versions/3.{SECOND}.1/bin/python3.{SECOND}", 0)
    third = program(machine / f".local/share/uv/python/cpython-3.{THIRD}/bin/python3.{THIRD}", 0)
    found = search(machine)
    assert found.stdout.splitlines() == [
        f"py3{FIRST} {first}",
        f"py3{SECOND} {second}",
        f"py3{THIRD} {third}",
    ]
    assert found.stderr == ""


def test_search_reports_a_broken_python_and_finds_the_next(machine: pathlib.Path) -> None:
    broken = program(machine / "bin" / f"python3.{FIRST}", 1)
    sound = program(machine / f".pyenv/versions/3.{FIRST}.1/bin/python3.{FIRST}", 0)
    found = search(machine)
    assert f"py3{FIRST} {sound}" in found.stdout.splitlines()
    assert f"{broken} does not run as Python 3.{FIRST}: not used for tests" in found.stderr
