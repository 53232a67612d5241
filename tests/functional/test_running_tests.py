"""How tests run: their limits, and the signals of the processes that they start."""

import configparser
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PATIENCE = 60


def ended_by_sigint() -> int:
    """Return the status of a process that is sent SIGINT and would sleep on."""
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


def test_started_process_ends_by_sigint_if_the_parent_ignores_it() -> None:
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


@pytest.mark.parametrize("name", ["test_body", "test_fixture", "test_example"])
def test_hanging_test_ends_with_a_failure(tmp_path: pathlib.Path, name: str) -> None:
    path = tmp_path / "test_hanging.py"
    path.write_text(HANGING)
    limits = ["-o", "timeout=1", "-o", "faulthandler_timeout=2"]
    configured = [*limits, "-c", str(ROOT / "pyproject.toml"), "-p", "conftest"]
    done = run_pytest(sys.executable, "-m", "pytest", *configured, f"{path}::{name}")
    assert done.returncode == 1
    assert "Timeout" in done.stdout + done.stderr


def test_every_test_has_a_limit(pytestconfig: pytest.Config) -> None:
    assert (
        0
        < float(pytestconfig.getini("timeout"))
        < float(pytestconfig.getini("faulthandler_timeout"))
    )
    assert pytestconfig.getini("faulthandler_exit_on_timeout") is True


def test_every_environment_that_runs_testtools_has_a_limit() -> None:
    """Check Nova's test cases; the benchmarks at full size take as long as they take."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    for name in tox.sections():
        section = tox[name]
        commands = section.get("commands", "").replace(
            "{[testenv:nova]commands}", tox["testenv:nova"]["commands"]
        )
        if "testtools.run" in commands and name != "testenv:bench":
            assert "OS_TEST_TIMEOUT = " in section["set_env"], name
