"""The options ``--host`` and ``--port`` of commands that serve."""

import argparse
import contextlib
import socket

from steelyard.web.listening import listening

_NAMES = ("--host", "--port")
_HOST = "127.0.0.1"


def add_address(parser: argparse.ArgumentParser, host: str, port: int) -> None:
    """Add the options. ``host`` is the help of ``--host``, ``port`` the default port."""
    parser.add_argument(_NAMES[0], default=_HOST, help=f"{host}; default: {_HOST}")
    parser.add_argument(
        _NAMES[1],
        type=int,
        default=port,
        help=f"port to listen on, 0 for any free port; default: {port}",
    )


def listener(
    parsed_args: argparse.Namespace,
) -> contextlib.AbstractContextManager[socket.socket]:
    """Return a context with a socket that listens on the address in the arguments.

    Entering it raises BadRequest if that is impossible.
    """
    return listening(parsed_args.host, parsed_args.port, names=_NAMES)
