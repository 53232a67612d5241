"""The time limits of tests, and SIGINT in the processes that they start."""

import configparser
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from support.repository import ROOT

PATIENCE = 120


def ended_by_sigint() -> int:
    """Return the exit status of a sleeping process after SIGINT."""
    code = "import time; print(flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        try:
            return process.wait(10)
        finally:
            process.kill()


def run_pytest(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "--no-cov"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def test_started_process_ends_by_sigint() -> None:
    assert ended_by_sigint() == -signal.SIGINT


def test_started_process_ends_by_sigint_if_its_parent_ignores_sigint() -> None:
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    this = f"{__file__}::{test_started_process_ends_by_sigint.__name__}"
    done = run_pytest(*ignoring, sys.executable, "-m", "pytest", this)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


HANGING = """
import time
import hypothesis
import pytest

@pytest.fixture
def fixture():
    yield
    time.sleep(60)

def test_body():
    time.sleep(60)

def test_fixture(fixture):
    time.sleep(60)

@hypothesis.given(hypothesis.strategies.integers())
def test_example(number):
    time.sleep(60)
"""


def run_hanging(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run tests that hang, with short limits."""
    path = folder / "test_hanging.py"
    path.write_text(HANGING)
    limits = ["-o", "timeout=1", "-o", "faulthandler_timeout=2"]
    configured = [*limits, "-c", str(ROOT / "pyproject.toml"), "-p", "conftest"]
    return run_pytest(sys.executable, "-m", "pytest", *configured, str(path), *arguments)


@pytest.mark.parametrize("name", ["test_body", "test_fixture", "test_example"])
def test_hanging_test_ends_with_a_failure(tmp_path: pathlib.Path, name: str) -> None:
    done = run_hanging(tmp_path, "-k", name)
    assert done.returncode == 1
    assert "Timeout" in done.stdout + done.stderr


def test_hanging_tests_in_parallel_end_with_a_failure_each(tmp_path: pathlib.Path) -> None:
    done = run_hanging(tmp_path, "-n", "2")
    assert done.returncode == 1
    for name in ("test_body", "test_fixture", "test_example"):
        assert re.search(f"^FAILED .*::{name}", done.stdout, re.MULTILINE), name


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    assert (
        0
        < float(pytestconfig.getini("timeout"))
        < float(pytestconfig.getini("faulthandler_timeout"))
    )
    assert pytestconfig.getini("faulthandler_exit_on_timeout") is True


def test_every_environment_runs_tests_with_the_limit() -> None:
    """Check the commands of tox.ini; benchmarks at full size have no limit."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    for name in tox.sections():
        commands = tox[name].get("commands", "")
        for lifted in ("no:timeout", "no:faulthandler", "timeout=0", "timeout 0"):
            assert lifted not in commands, name
        # The limit is one of pytest, and other runners ignore it.
        runners = {"testtools.run", "stestr", "unittest"}
        assert name == "testenv:bench" or not any(runner in commands for runner in runners), name
