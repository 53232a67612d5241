"""The sockets that serving commands listen on, and the signals that end these commands."""

import contextlib
import ipaddress
import signal
import socket
from collections.abc import Iterator
from typing import Any

from steelyard import errors

_LAST_PORT = 65535


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server at the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextlib.contextmanager
def listening(
    host: str, port: int, *, names: tuple[str, str] = ("host", "port")
) -> Iterator[socket.socket]:
    """Listen during the block; raise BadRequest if that is impossible.

    ``names`` are the names of host and port in errors, for example those of their options.
    """
    if not 0 <= port <= _LAST_PORT:
        raise errors.BadRequest(f"invalid {names[1]} {port}: expected 0 to {_LAST_PORT}")
    if not host:  # a socket would listen on all addresses
        raise errors.BadRequest(
            f"invalid {names[0]} '': expected an address or a name; 0.0.0.0 means all addresses"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")  # for an invalid name, create_server would leave a socket open
        listener = socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        # create_server appends the address to the reason.
        why = getattr(error, "strerror", None) or str(error)
        why = why.partition(" (while attempting")[0]
        raise errors.BadRequest(
            f"cannot listen on {host!r}, port {port}: {why}; change {' or '.join(names)}"
        ) from error
    with listener:
        yield listener


def written(listener: socket.socket) -> str:
    """Return the URL of the listener."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.contextmanager
def ended_by(number: signal.Signals) -> Iterator[None]:
    """End the block without an error on this signal or on Ctrl-C.

    The signal raises KeyboardInterrupt, so a server in the block shuts down cleanly.
    """

    def interrupt(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    except KeyboardInterrupt:  # while the server runs, it handles this itself
        pass
    finally:
        signal.signal(number, before)
