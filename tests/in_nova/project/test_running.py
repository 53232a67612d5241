"""The time limit of test cases of testtools, such as Nova's."""

import pathlib
import subprocess
import sys

import pytest

from support.repository import ROOT

HANGING = """
import time
import testtools

class TestHanging(testtools.TestCase):
    def test_body(self):
        time.sleep(60)

class TestHangingSetUp(testtools.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        time.sleep(60)

    def test_body(self):
        pass

class TestHangingCleanup(testtools.TestCase):
    def test_body(self):
        self.addCleanup(time.sleep, 60)
"""


@pytest.mark.parametrize("name", ["TestHanging", "TestHangingSetUp", "TestHangingCleanup"])
def test_hanging_test_case_of_testtools_ends_with_a_failure(
    tmp_path: pathlib.Path, name: str
) -> None:
    path = tmp_path / "test_hanging.py"
    path.write_text(HANGING)
    options = ["-o", "timeout=1", "-o", "filterwarnings=ignore", "-p", "no:cacheprovider"]
    configured = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *configured, f"{path}::{name}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Timeout" in done.stdout + done.stderr
