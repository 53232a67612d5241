import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest
import readme

Installed = Callable[[str], pathlib.Path]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Build both distributions, and return their folder."""
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", str(target), str(readme.ROOT)]
    subprocess.run(command, check=True)
    return target


@pytest.fixture(scope="session")
def wheel(built: pathlib.Path) -> pathlib.Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def installed(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return a function that installs the wheel with extras into a new environment.

    That function returns the folder of the environment's commands.
    """

    def install(extras: str = "") -> pathlib.Path:
        home = tmp_path_factory.mktemp("environment")
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        commands = home / "bin"
        subprocess.run([commands / "pip", "install", "--quiet", f"{wheel}{extras}"], check=True)
        return commands

    return install
