"""Where a command listens that serves something, and how it is ended."""

import contextlib
import ipaddress
import signal
import socket
from collections.abc import Iterator
from typing import Any

from steelyard import errors

_LAST_PORT = 65535


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    if not 0 <= port <= _LAST_PORT:
        raise errors.BadRequest(f"--port {port} is none: a port is 0 to {_LAST_PORT}")
    if not host:  # which a socket takes for every address of the machine
        raise errors.BadRequest("--host '' is none: give an address or a name, 0.0.0.0 for all")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")  # what cannot be a name would leave a socket open
        listener = socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        raise errors.BadRequest(
            f"cannot listen at {host!r}, port {port}: {error}; --host and --port name others"
        ) from error
    with listener:
        yield listener


def written(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.contextmanager
def ended_by(number: signal.Signals) -> Iterator[None]:
    """Makes of a signal what Ctrl-C is, which ends the server in good order."""

    def interrupt(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    except KeyboardInterrupt:  # before the server runs, or after
        pass
    finally:
        signal.signal(number, before)
