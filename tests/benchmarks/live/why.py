"""The time of ``steelyard why`` for a live cloud, beside the time that its services take.

A real Nova and a real Placement are served over HTTP. The difference of both times is that of
steelyard: its start, its requests and its conclusions. Run it with ``python -m testtools.run``;
STEELYARD_BENCH_HOSTS sets the number of hosts.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

# isort: split
from support.nova.looks import Looks
from support.nova.many_hosts import ManyHosts

HOSTS = int(os.environ.get("STEELYARD_BENCH_HOSTS", "2000"))
MAIN = "import sys; from steelyard import cli; sys.exit(cli.main())"


class Busy:
    """A service that measures how long at least one request is being answered."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._running = 0
        self._since = 0.0
        self.seconds = 0.0
        self.requests = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self._lock:
            self.requests += 1
            self._running += 1
            if self._running == 1:
                self._since = time.perf_counter()
        try:
            return list(self._app(environ, start_response))
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0:
                    self.seconds += time.perf_counter() - self._since


class Why(Looks, ManyHosts):
    many = HOSTS

    def test_answer_is_timed_for_each_stage(self) -> None:
        self.aggregate("host0", zone="x")
        self.copy_host0()
        self.fill_aggregates()
        self._create_trait("CUSTOM_GPU")
        busy = Busy(self.served)
        self.served.httpd.set_app(busy)
        for stage, specs in (
            ("placement", {"trait:CUSTOM_GPU": "required"}),
            ("filters", {"capabilities:hypervisor_type": "xen"}),
            ("placement", {"trait:CUSTOM_GPU": "required", "resources:CUSTOM_FPGA": "1"}),
        ):
            server = self.settled(self.asked_for(None, None, 512, specs)["id"])
            assert server["status"] == "ERROR"
            busy.seconds, busy.requests = 0.0, 0
            start = time.perf_counter()
            command = [sys.executable, "-W", "ignore", "-c", MAIN, "why", server["id"]]
            done = subprocess.run(
                [*command, "--os-cloud", "admin", "-f", "json"],
                capture_output=True,
                text=True,
                check=False,
            )
            seconds = time.perf_counter() - start
            assert f'"stage": "{stage}"' in done.stdout, done.stdout + done.stderr
            sent = re.search(r'"requests_to_placement": (\d+)', done.stdout)
            sys.stdout.write(
                f"why, {HOSTS} hosts, stage {stage}: {seconds:.2f} s, of which the services "
                f"{busy.seconds:.2f} s for {busy.requests} requests"
                f"{f', {sent[1]} for candidates' if sent else ''}\n"
            )
