"""The served Placement, in a process that eventlet patched, as releases of Nova before 34 do."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# As in a run of all tests, modules that wait were imported before a test imports Nova.
SCRIPT = (
    "import socketserver, subprocess, sys, eventlet, pytest; "
    "eventlet.monkey_patch(); "
    "sys.exit(pytest.main(sys.argv[1:]))"
)


def test_commands_in_a_patched_process_reach_placement() -> None:
    tests = [
        f"{HERE}/test_backfill.py::{name}"
        for name in ("test_the_command", "test_backfill_when_interrupted_reports_finished_changes")
    ]
    options = ["-q", "-o", "filterwarnings=ignore", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, *options, *tests],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
