"""The script of continuous integration, which runs the test command of the README."""

import os
import pathlib
import shutil
import subprocess

import pytest

from support.project import readme
from support.repository import ROOT

LINE = "   touch typed && .venv/bin/tox\n"


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder with the script and a fake tox that writes its name to a file."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    shutil.copy(ROOT / "tox.ini", tmp_path)
    tox = tmp_path / ".venv" / "bin" / "tox"
    tox.parent.mkdir(parents=True)
    tox.write_text('#!/bin/sh\necho "$0" > tested\nexit 3\n')
    tox.chmod(0o755)
    return tmp_path


def run(checkout: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run the script with the command 'true' as the browser, so that it installs none."""
    return subprocess.run(
        [checkout / ".ci" / "run"],
        env={**os.environ, "STEELYARD_TEST_CHROMIUM": "true"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_gate_runs_the_test_command_of_the_readme(checkout: pathlib.Path) -> None:
    (checkout / "README.rst").write_text(f"Test it:\n\n{LINE}")
    assert run(checkout).returncode == 3
    assert (checkout / "typed").exists()
    assert (checkout / "tested").read_text() == ".venv/bin/tox\n"


@pytest.mark.parametrize("text", ["Test it.\n", LINE + LINE])
def test_gate_without_one_test_command_fails(checkout: pathlib.Path, text: str) -> None:
    (checkout / "README.rst").write_text(text)
    done = run(checkout)
    assert done.returncode == 1
    assert done.stderr.startswith("no test command: expected one line of README.rst that ends")
    assert not (checkout / "tested").exists()


def test_gate_finds_the_test_command_of_this_readme(checkout: pathlib.Path) -> None:
    typed = [each for each in (ROOT / "README.rst").read_text().splitlines() if "tox" in each]
    assert typed == [f"   {readme.TEST}"]
    (checkout / "README.rst").write_text(f"   {readme.TEST}\n".replace("python3 -m venv", "echo"))
    pip = checkout / ".venv" / "bin" / "pip"
    pip.write_text('#!/bin/sh\necho "$@" > installed\n')
    pip.chmod(0o755)
    assert run(checkout).returncode == 3
    assert (checkout / "installed").read_text() == "install tox\n"
