"""The real Ganeti that tests use: a cluster of one node in its own namespaces.

Scripts start it, run a command inside it and stop it; an environment variable sets their directory.
A forwarder connects the tests to the separate network of the cluster.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oslo_config import cfg

from steelyard import conf as options
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import JobStatus, TagBackend
from steelyard.tags.backends.ganeti import GanetiBackend
from steelyard.tags.states.values import Instance
from support.repository import ROOT as _ROOT
from support.services import required
from support.tags.databases import upgrade

VARIABLE = "STEELYARD_TEST_GANETI"
INST1, INST2, NEW = "inst1.gnt.test", "inst2.gnt.test", "new1.gnt.test"
"""The instances of the cluster, and the name of one that tests create."""

CREATION = {
    "disk_template": "diskless",
    "disks": [],
    "nics": [],
    "os_type": "noop",
    "pnode": "node1.gnt.test",
    "start": False,
    "ignore_ipolicy": True,  # the policy wants a network card
}
"""The option ``ganeti_instance`` with which the cluster can create an instance."""

_PORT = 5080
_PATIENCE = 60
_CERTIFICATE = pathlib.Path("/var/lib/ganeti/rapi.pem")
_LOCK = pathlib.Path(tempfile.gettempdir()) / "steelyard-ganeti-tests.lock"
# On Debian, Ganeti's commands are in folders that are only in the superuser's PATH.
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
_ENVIRONMENT = {**os.environ, "PATH": _PATH}
_FORWARD = pathlib.Path(__file__).with_name("forward.py")


def scripts() -> pathlib.Path:
    """Return the directory of the scripts, by default beside the repository."""
    return pathlib.Path(os.environ.get(VARIABLE, _ROOT.parent / "shared" / "ganeti"))


def why_unavailable() -> str | None:
    """Return the reason why no cluster can run here, or None if one can."""
    if not pathlib.Path("/etc/debian_version").is_file():
        return "Ganeti needs the packages of Debian"
    if os.geteuid() != 0:
        return "Ganeti in its own namespaces needs root"
    if not (scripts() / "up").is_file():
        return f"no scripts for a Ganeti in {scripts()} (set {VARIABLE})"
    return None


class Cluster:
    """A running Ganeti cluster; ``url`` is the URL of its remote API."""

    def __init__(self, port: int) -> None:
        self.url = f"https://127.0.0.1:{port}"
        certificate = ssl.PEM_cert_to_DER_cert(_certificate(_CERTIFICATE.read_text()))
        self.fingerprint = hashlib.sha256(certificate).hexdigest()

    def inside(self, *command: str) -> str:
        """Run the command inside the cluster and return its output."""
        done = subprocess.run(
            [scripts() / "inside", *command],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
            env=_ENVIRONMENT,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def conf(self, **changed: object) -> cfg.ConfigOpts:
        """Return a configuration for the cluster, with changed options."""
        conf = cfg.ConfigOpts()
        conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
        options.register_tags(conf)
        for name, value in {**self._options(), **changed}.items():
            conf.set_override(name, value, group=options.TAGS_GROUP)
        return conf

    def lines(self) -> list[str]:
        """Return the lines of a configuration file for the cluster."""
        return [
            "backend = ganeti",
            *(f"{name} = {value}" for name, value in self._options().items()),
        ]

    def _options(self) -> dict[str, object]:
        return {
            "ganeti_url": self.url,
            "ganeti_user": "tester",
            "ganeti_password": "tester-secret",
            "ganeti_fingerprint": self.fingerprint,
        }

    def backend(self, **changed: object) -> GanetiBackend:
        return GanetiBackend(self.conf(**changed))


@contextlib.contextmanager
def needed() -> Iterator[Cluster]:
    """Yield a running cluster; without one, skip the test, or fail it if services are required.

    A cluster that already runs is used and left running. There is one per machine, so concurrent
    runs of these tests wait for each other.
    """
    why = why_unavailable()
    if why:
        required.missing(why)
    with open(_LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran_before = _inside_works()
        try:
            bring_up()
            with _forwarded() as port:
                yield Cluster(port)
        finally:
            if not ran_before:
                subprocess.run([scripts() / "down"], capture_output=True, check=True)


def bring_up() -> None:
    """Start the cluster unless it is running."""
    up = subprocess.run([scripts() / "up"], capture_output=True, text=True, check=False)
    if up.returncode != 0:
        pytest.fail(f"cannot start Ganeti: {up.stdout}{up.stderr}", pytrace=False)


def _inside_works() -> bool:
    done = subprocess.run([scripts() / "inside", "true"], capture_output=True, check=False)
    return done.returncode == 0


@contextlib.contextmanager
def _forwarded() -> Iterator[int]:
    """Yield the number of a local port that is forwarded to the remote API."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        descriptor = listener.fileno()
        forwarder = subprocess.Popen(
            [scripts() / "inside", sys.executable, _FORWARD, str(descriptor), str(_PORT)],
            pass_fds=[descriptor],
        )
        try:
            yield listener.getsockname()[1]
        finally:
            forwarder.terminate()
            forwarder.wait()


def _certificate(text: str) -> str:
    """Return the certificate from a file that also contains the key."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    return begin + text.partition(begin)[2].partition(end)[0] + end


def wait(until: Callable[[], Any]) -> None:
    """Return once the condition holds, and fail if it does not within a minute."""
    end = time.monotonic() + _PATIENCE
    while not until():
        assert time.monotonic() < end, "the condition does not hold"
        time.sleep(0.05)


def done(backend: TagBackend, *jobs: int, expected: JobStatus = JobStatus.SUCCEEDED) -> None:
    """Wait until the jobs have finished, and check their status."""
    wait(lambda: JobStatus.RUNNING not in backend.jobs(jobs).values())
    assert backend.jobs(jobs) == dict.fromkeys(jobs, expected)


def last_job(cluster: Cluster) -> int:
    """Return the highest number in the list of jobs, or 0 if the list is empty."""
    listed = cluster.inside("gnt-job", "list", "--no-headers", "-o", "id")
    return max(map(int, listed.split()), default=0)


def remove_filters(cluster: Cluster) -> None:
    """Remove every filter of jobs."""
    for uuid in cluster.inside("gnt-filter", "list", "--no-headers", "-o", "uuid").split():
        cluster.inside("gnt-filter", "delete", uuid)


@contextlib.contextmanager
def filtered(
    cluster: Cluster, action: str, jobs: str = '[["jobid", [">", "id", 0]]]'
) -> Iterator[None]:
    """Apply the action, such as PAUSE, to jobs that the block submits to Ganeti."""
    cluster.inside("gnt-filter", "add", "--action", action, "--predicates", jobs)
    try:
        yield
    finally:
        remove_filters(cluster)


def remove_from_archive(cluster: Cluster, job: int) -> None:
    """Archive the job and remove it from the archive, as Ganeti does with old jobs."""
    cluster.inside("gnt-job", "archive", str(job))
    (file,) = pathlib.Path("/var/lib/ganeti/queue/archive").glob(f"*/job-{job}")
    file.unlink()


def tags_of(backend: TagBackend, name: str = INST1) -> set[str]:
    """Return the tags that the instance has in Ganeti."""
    return set(backend.tags([name])[name])


def service_of(backend: TagBackend, directory: pathlib.Path) -> TagService:
    """Return a service that knows both instances, with a new database in the directory."""
    store = TagStore(f"sqlite:///{directory}/tags.db")
    upgrade(store, backend.identity())
    service = TagService(store, backend)
    service.register(Instance("s1", INST1, "p", "u"))
    service.register(Instance("s2", INST2, "p", "u"))
    return service


def settle(service: TagService) -> None:
    """Poll until no operation is pending."""
    wait(lambda: (service.jobs.poll(), not service.store.pending())[1])
