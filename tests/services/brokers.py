"""The RabbitMQ that tests use, and a virtual host there that is theirs alone.

Where it is is said by an environment variable; the default fits one that was installed on this host
as it comes. The virtual host is made by rabbitmqctl, which must be allowed to.
"""

import contextlib
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
import pytest
from services.databases import REQUIRE

VARIABLE = "STEELYARD_TEST_RABBITMQ"
DEFAULT = "amqp://guest:guest@127.0.0.1:5672/%2F"
# Debian has it where only the superuser's shell looks.
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
# And the one that starts as whoever calls it, here.
_SERVERS = f"/usr/lib/rabbitmq/bin:{_PATH}"
_PATIENCE = 60.0


def url() -> str:
    """Where it is; the virtual host that it names is only for connecting to."""
    return os.environ.get(VARIABLE, DEFAULT)


def why_unavailable() -> str | None:
    """None if it answers, and lets itself be controlled."""
    try:
        with kombu.Connection(url(), connect_timeout=5) as connection:
            connection.ensure_connection(max_retries=0)
    except (OSError, kombu.exceptions.OperationalError, *connection.connection_errors) as error:
        return f"no RabbitMQ at {connection.as_uri()} (set {VARIABLE}): {error}"
    try:
        control("list_vhosts")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no rabbitmqctl that may control the RabbitMQ at {connection.as_uri()}: {error}"
    return None


def needed() -> str:
    """Its URL if it answers; else the test is skipped, or fails where it must not be."""
    why = why_unavailable()
    if why and os.environ.get(REQUIRE) == "1":
        pytest.fail(f"{why}; {REQUIRE} is set", pytrace=False)
    if why:
        pytest.skip(why)
    return url()


def control(*argv: str) -> str:
    """What rabbitmqctl answers."""
    command = shutil.which("rabbitmqctl", path=_PATH) or "rabbitmqctl"
    done = subprocess.run([command, "-q", *argv], capture_output=True, text=True, check=True)
    return done.stdout


@contextlib.contextmanager
def own_host(server: str) -> Iterator[str]:
    """The URL of a new virtual host, which is deleted in the end."""
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
    """The name of the virtual host."""
    return urllib.parse.unquote(urllib.parse.urlsplit(server).path[1:])


class Node:
    """A RabbitMQ that is nobody else's, so that it can be killed; what it has is in a directory."""

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
        """It runs meanwhile; whoever kills it starts it again."""
        self.start()
        try:
            yield
        finally:
            self.kill()

    def start(self) -> None:
        """Until it answers."""
        command = shutil.which("rabbitmq-server", path=_SERVERS) or "rabbitmq-server"
        with (self._directory / "said").open("a") as said:
            self._process = subprocess.Popen(
                [command],
                stdout=said,
                stderr=said,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                start_new_session=True,
            )
        deadline = time.monotonic() + _PATIENCE
        while not _answers(self.url):
            alive = self._process.poll() is None and time.monotonic() < deadline
            assert alive, (self._directory / "said").read_text()
            time.sleep(0.2)

    def kill(self) -> None:
        """At once, as when the machine goes."""
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
