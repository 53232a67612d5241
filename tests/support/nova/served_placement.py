"""Commands that use a real Placement over HTTP; both run in their own processes.

A Nova with eventlet makes the threads of the tests' process green. A server in such a thread and a
test that waits for a command would deadlock.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator

from support.repository import ROOT

MAIN = "import sys; from steelyard import cli; sys.exit(cli.main())"
PATIENCE = 100.0
"""Seconds that a process may take."""

_SERVER = pathlib.Path(__file__).with_name("placement_process.py")


class Steelyard:
    """The command; the cloud ``here`` of its ``clouds.yaml`` has the Placement."""

    def __init__(self, port: int, log: pathlib.Path, clouds: pathlib.Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = log
        self._clouds = clouds

    def __call__(self, *argv: str, token: str = "admin", stdin: str = "") -> tuple[int, str, str]:
        """Run the command; return its exit status, output and error output."""
        with self.started(*argv, token=token) as process:
            out, err = process.communicate(stdin, timeout=PATIENCE)
        return process.returncode, out, err

    @contextlib.contextmanager
    def started(self, *argv: str, token: str = "admin") -> Iterator[subprocess.Popen[str]]:
        """Start the command; kill it if it is still running at the end."""
        auth = {"auth_type": "admin_token", "auth": {"endpoint": self.url, "token": token}}
        here = {**auth, "placement_endpoint_override": self.url}
        self._clouds.write_text(json.dumps({"clouds": {"here": here}}))
        with _killed(
            subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", MAIN, *argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "OS_CLIENT_CONFIG_FILE": str(self._clouds)},
            )
        ) as process:
            yield process

    def requests(self) -> list[str]:
        """Return the requests that Placement received, each as its method and path."""
        return self._log.read_text().splitlines()[1:]

    def wait_for_writes(self, count: int) -> None:
        """Return when Placement has received that many writes."""
        deadline = time.monotonic() + PATIENCE
        while sum(not request.startswith("GET ") for request in self.requests()) < count:
            assert time.monotonic() < deadline, self.requests()
            time.sleep(0.02)


@contextlib.contextmanager
def commands_on(
    database_url: str, directory: pathlib.Path, held_write: int = 0
) -> Iterator[Steelyard]:
    """Serve the Placement in that database, and return commands that ask it.

    The write of the number ``held_write`` is carried out when its client has exited.
    """
    log, errors = directory / "placement.log", directory / "placement.errors"
    with log.open("w") as out, errors.open("w") as err:
        server = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(_SERVER), database_url, str(held_write)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            text=True,
        )
    with _killed(server):
        deadline = time.monotonic() + PATIENCE
        while not log.read_text().endswith("\n"):
            running = server.poll() is None and time.monotonic() < deadline
            assert running, errors.read_text()
            time.sleep(0.02)
        yield Steelyard(int(log.read_text()), log, directory / "clouds.yaml")
        server.communicate(timeout=PATIENCE)  # closes its standard input
        assert server.returncode == 0, errors.read_text()


@contextlib.contextmanager
def _killed(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Kill the process if it is still running at the end."""
    with process:
        try:
            yield process
        finally:
            process.kill()
