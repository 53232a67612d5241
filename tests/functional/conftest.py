import fcntl
import functools
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

from steelyard import cli, consumers
from support.repository import ROOT
from support.third_parties import THIRD_PARTY, install

Installed = Callable[..., pathlib.Path]
Make = Callable[[pathlib.Path], pathlib.Path]


@pytest.fixture
def steelyard(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command and returns its exit status, output and errors."""

    def run(*argv: str) -> tuple[int, str, str]:
        status = cli.main(list(argv))
        return status, *capsys.readouterr()

    return run


def _shared(tmp_path_factory: pytest.TempPathFactory, name: str, make: Make) -> pathlib.Path:
    """Make a folder once for all test processes, and return it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    target = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            make(shared / f"{name}.new").rename(target)
    return target


@pytest.fixture(scope="session")
def third_party(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an importable folder with the distribution of ``tests/support/third_party``."""
    make = functools.partial(install, THIRD_PARTY)
    return str(_shared(tmp_path_factory, "third_party", make))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Build both distributions, and return their folder."""

    def build(target: pathlib.Path) -> pathlib.Path:
        command = [sys.executable, "-m", "build", "--outdir", str(target), str(ROOT)]
        subprocess.run(command, check=True)
        return target

    return _shared(tmp_path_factory, "dist", build)


@pytest.fixture(scope="session")
def wheel(built: pathlib.Path) -> pathlib.Path:
    """Return the path of the wheel."""
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def installed(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return a function that installs the wheel with extras into a new environment.

    The function then removes the named packages, and returns the folder of the environment's
    commands. The environment has no pip; the pip of the tests installs into it.
    """

    def install(extras: str = "", *removed: str) -> pathlib.Path:
        home = tmp_path_factory.mktemp("environment")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
        commands = home / "bin"
        pip = [sys.executable, "-m", "pip", "--python", str(commands / "python")]
        pip.append("--disable-pip-version-check")
        added = ["install", "--quiet", "--no-compile", f"{wheel}{extras}"]
        subprocess.run([*pip, *added], check=True)
        if removed:
            subprocess.run([*pip, "uninstall", "--quiet", "--yes", *removed], check=True)
        return commands

    return install


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    """Return the URL of a file for consumers, which does not exist yet."""
    return f"sqlite:///{tmp_path}/consumers.db"


@pytest.fixture
def store(url: str) -> "consumers.ConsumerStore":  # an extra, not evaluated here
    """Return a store of consumers in a file."""
    made = consumers.ConsumerStore(url)
    made.upgrade()
    return made
