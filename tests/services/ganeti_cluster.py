"""The real Ganeti that tests use: a cluster of one node, in namespaces of its own.

Scripts in a directory bring it up, run a command inside, and stop it; an environment variable says
where they are. The cluster's own network is none of ours: a forwarder is the way in.
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
from collections.abc import Iterator

import pytest
from oslo_config import cfg
from services import databases

from steelyard import conf as options
from steelyard.tags.backends.ganeti import GanetiBackend

VARIABLE = "STEELYARD_TEST_GANETI"
_ROOT = pathlib.Path(__file__).parents[2]
_PORT = 5080
_PATIENCE = 60
_CERTIFICATE = pathlib.Path("/var/lib/ganeti/rapi.pem")
_LOCK = pathlib.Path(tempfile.gettempdir()) / "steelyard-ganeti-tests.lock"
# Debian has Ganeti's commands where only the superuser's shell looks.
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
_ENVIRONMENT = {**os.environ, "PATH": _PATH}
_FORWARD = pathlib.Path(__file__).with_name("forward.py")


def scripts() -> pathlib.Path:
    """Beside the directory of the repository, unless the variable says otherwise."""
    return pathlib.Path(os.environ.get(VARIABLE, _ROOT.parent / "shared" / "ganeti"))


def why_unavailable() -> str | None:
    """Return why no cluster can run here, or None if one can."""
    if not pathlib.Path("/etc/debian_version").is_file():
        return "a Ganeti is installed from the packages of Debian"
    if os.geteuid() != 0:
        return "a Ganeti in namespaces of its own needs root"
    if not (scripts() / "up").is_file():
        return f"no scripts for a Ganeti in {scripts()} (set {VARIABLE})"
    return None


class Cluster:
    """A Ganeti that runs; ``url`` is where its remote API is from here."""

    def __init__(self, port: int) -> None:
        self.url = f"https://127.0.0.1:{port}"
        certificate = ssl.PEM_cert_to_DER_cert(_certificate(_CERTIFICATE.read_text()))
        self.fingerprint = hashlib.sha256(certificate).hexdigest()

    def inside(self, *command: str) -> str:
        """What the command prints that runs where Ganeti is."""
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
        """A configuration for the cluster."""
        conf = cfg.ConfigOpts()
        conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
        options.register_tags(conf)
        for name, value in {**self._options(), **changed}.items():
            conf.set_override(name, value, group=options.TAGS_GROUP)
        return conf

    def lines(self) -> list[str]:
        """The same for a file."""
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

    What runs already is used, and left running. There is one on a machine: who else runs these
    tests there has to wait.
    """
    why = why_unavailable()
    if why and os.environ.get(databases.REQUIRE) == "1":
        pytest.fail(f"{why}; {databases.REQUIRE} is set", pytrace=False)
    if why:
        pytest.skip(why)
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
    """Starts what does not run."""
    up = subprocess.run([scripts() / "up"], capture_output=True, text=True, check=False)
    if up.returncode != 0:
        pytest.fail(f"Ganeti does not come up: {up.stdout}{up.stderr}", pytrace=False)


def _inside_works() -> bool:
    done = subprocess.run([scripts() / "inside", "true"], capture_output=True, check=False)
    return done.returncode == 0


@contextlib.contextmanager
def _forwarded() -> Iterator[int]:
    """The number of a port of ours that leads to the remote API."""
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
    """The certificate in a file that has the key, too."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    return begin + text.partition(begin)[2].partition(end)[0] + end
