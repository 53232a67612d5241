"""The RabbitMQ server that tests use, with a virtual host for each test.

An environment variable sets its URL; the default is that of a server on this host. rabbitmqctl
creates the virtual hosts and needs the permission for it.
"""

import contextlib
import functools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import uuid
from collections.abc import Iterator

import kombu

from support.services import required

VARIABLE = "STEELYARD_TEST_RABBITMQ"
DEFAULT = "amqp://guest:guest@127.0.0.1:5672/%2F"
# On Debian, rabbitmqctl is in a folder that is only in the superuser's PATH.
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
# On Debian, this folder has the rabbitmq-server that runs as the calling user.
_SERVERS = f"/usr/lib/rabbitmq/bin:{_PATH}"
_PATIENCE = 60.0


def url() -> str:
    """Return the URL of the server; its virtual host serves only to connect."""
    return os.environ.get(VARIABLE, DEFAULT)


def why_unavailable() -> str | None:
    """Return the reason why RabbitMQ is unavailable, or None if tests can use it."""
    return _why_unavailable(url())


@functools.cache
def _why_unavailable(where: str) -> str | None:
    """Ask the broker once, so that a later failure fails the tests."""
    try:
        with kombu.Connection(where, connect_timeout=5) as connection:
            connection.ensure_connection(max_retries=0)
    except (OSError, kombu.exceptions.OperationalError, *connection.connection_errors) as error:
        return f"no RabbitMQ at {connection.as_uri()} (set {VARIABLE}): {error}"
    try:
        control("list_vhosts")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no rabbitmqctl that may control the RabbitMQ at {connection.as_uri()}: {error}"
    return None


def needed() -> str:
    """Return the URL of the server; without it, skip the test, or fail it if services are required."""
    why = why_unavailable()
    if why:
        required.missing(why)
    return url()


def control(*argv: str) -> str:
    """Run rabbitmqctl and return its output."""
    command = shutil.which("rabbitmqctl", path=_PATH) or "rabbitmqctl"
    done = subprocess.run([command, "-q", *argv], capture_output=True, text=True, check=True)
    return done.stdout


@contextlib.contextmanager
def own_host(server: str) -> Iterator[str]:
    """Yield the URL of a new virtual host, which is deleted at the end."""
    parts = urllib.parse.urlsplit(server)
    name = f"steelyard_test_{uuid.uuid4().hex}"
    control("add_vhost", name)
    try:
        user = urllib.parse.unquote(parts.username or "guest")
        control("set_permissions", "-p", name, user, ".*", ".*", ".*")
        yield parts._replace(path=f"/{name}").geturl()
    finally:
        control("delete_vhost", name)


def host_of(server: str) -> str:
    """Return the name of the virtual host in the URL."""
    return urllib.parse.unquote(urllib.parse.urlsplit(server).path[1:])


def consumers(server: str, queue: str) -> int:
    """Return the number of consumers of the queue, 0 if the queue is missing."""
    with kombu.Connection(server) as connection:
        try:
            declared = connection.default_channel.queue_declare(queue, passive=True)
        except connection.channel_errors:
            return 0
        return int(declared.consumer_count)


class Node:
    """A RabbitMQ server of one test, which may kill it; its files are in a directory."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        self._port, distribution = _free_ports(2)
        self.url = f"amqp://guest:guest@127.0.0.1:{self._port}/%2F"
        (directory / "rabbitmq.conf").write_text(f"listeners.tcp.local = 127.0.0.1:{self._port}\n")
        (directory / "plugins").write_text("[].\n")
        self._environment = {
            **os.environ,
            "HOME": str(directory),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"steelyard_test_{uuid.uuid4().hex}@localhost",
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ("-kernel inet_dist_use_interface {127,0,0,1}"),
        }

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the server in the block, which must restart it if it kills it."""
        self.start()
        try:
            yield
        finally:
            self.kill()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = shutil.which("rabbitmq-server", path=_SERVERS) or "rabbitmq-server"
        with (self._directory / "output").open("a") as output:
            self._process = subprocess.Popen(
                [command],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                start_new_session=True,
            )
        deadline = time.monotonic() + _PATIENCE
        while not _answers(self.url):
            alive = self._process.poll() is None and time.monotonic() < deadline
            assert alive, (self._directory / "output").read_text()
            time.sleep(0.2)

    def kill(self) -> None:
        """Kill the server, as a power failure would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _answers(url: str) -> bool:
    with kombu.Connection(url, connect_timeout=1) as connection:
        try:
            connection.ensure_connection(max_retries=0)
        except (OSError, kombu.exceptions.OperationalError, *connection.connection_errors):
            return False
    return True


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        listeners = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [listener.getsockname()[1] for listener in listeners]
