"""The served Placement, in a process patched by eventlet as before Nova 34."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# In a run of all tests, too, modules that block are imported before Nova.
SCRIPT = (
    "import socketserver, subprocess, sys, eventlet, pytest; "
    "eventlet.monkey_patch(); "
    "sys.exit(pytest.main(sys.argv[1:]))"
)


def test_commands_in_a_patched_process_reach_placement() -> None:
    tests = [
        f"{HERE.parent}/consumers/test_backfill.py::{name}"
        for name in (
            "test_command_sets_types_and_reports_counts",
            "test_backfill_when_interrupted_reports_finished_changes",
        )
    ]
    options = ["-q", "-o", "filterwarnings=ignore", "-p", "no:cacheprovider"]
    # With this variable, Nova 34 and later refuse to start in a patched process.
    patching = {
        name: value
        for name, value in os.environ.items()
        if name != "OS_NOVA_DISABLE_EVENTLET_PATCHING"
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, *options, *tests],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env=patching,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
