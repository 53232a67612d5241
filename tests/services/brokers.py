"""The RabbitMQ that tests use, and a virtual host there that is theirs alone.

Where it is is said by an environment variable; the default fits one that was installed on this host
as it comes. The virtual host is made by rabbitmqctl, which must be allowed to.
"""

import contextlib
import os
import shutil
import subprocess
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
