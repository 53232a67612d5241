"""steelyard tags serve"""

import argparse
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.app import Action
from steelyard.cli.consumers import URL, existing

if TYPE_CHECKING:
    from steelyard.tags import TagStore

# The application, and what serves it, need extras, which the other commands do without.
_load = extras.lazily(
    "steelyard.tags",
    {
        "Watch": ("watch", "sql"),
        "make_application": ("api", "api"),
        "service": ("configured", "sql"),
        "store": ("configured", "sql"),
    },
)
_server = extras.lazily("waitress", {"create_server": ("server", "api")})

_LAST_PORT = 65535
_LOOPBACK = ["127.0.0.1", "::1"]
# So many times what a request may have is read to the end, so that the answer says what is wrong.
# Of what is larger the server itself ends the connection.
_READ_TO_THE_END = 16


class TagsServe(Action):
    """Serve the HTTP API of instance tags, for trying it out.

    It runs until it is interrupted, looks every [steelyard_tags] poll_interval seconds at what has
    become of the jobs at the backend, and speaks no TLS. For more, have a WSGI server run
    steelyard.tags.api:application, and beside it steelyard tags watch.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--host", default="127.0.0.1", help="the address to listen at; %(default)s unless given"
        )
        parser.add_argument(
            "--port",
            type=int,
            default=8780,
            help="the port to listen at, 0 for any that is free; %(default)s unless given",
        )
        parser.add_argument(
            "--url",
            help=f"the database, as a URL {URL}; unless given, connection in "
            f"[{options.TAGS_GROUP}] counts",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        create_server = _server("create_server")
        # It warns of every request that waits for another one.
        logging.getLogger("waitress.queue").logger.setLevel("ERROR")
        conf = self.configuration()
        group = options.register_tags(conf)
        url = None if parsed_args.url is None else existing(parsed_args.url)
        require_tables(_load("store")(conf, url))
        told = _trust_this_machine(conf, parsed_args.host)
        service = _load("service")(conf, url)
        application = _load("make_application")(service, conf)
        watch = _load("Watch")(service, group.marks_kept)
        with (
            _listening(parsed_args.host, parsed_args.port) as listener,
            watch.every(group.poll_interval).in_background(),
            _ended_by(signal.SIGTERM),
        ):
            self.app.stdout.write(f"{told}tags at {_written(listener)}; Ctrl-C ends it\n")
            self.app.stdout.flush()
            server = create_server(
                application,
                sockets=[listener],
                ident=None,
                max_request_body_size=_READ_TO_THE_END * group.max_body,
            )
            server.run()
            server.close()


def _trust_this_machine(conf: cfg.ConfigOpts, host: str) -> str:
    """Where nobody else can reach it, one need not set up a proxy before one can try it."""
    group = conf[options.TAGS_GROUP]
    if group.trusted_proxies or not _is_loopback(host):
        return ""
    conf.set_override("trusted_proxies", _LOOPBACK, group=options.TAGS_GROUP)
    return (
        f"whoever asks from this machine is believed X-Project-Id and X-User-Id: trusted_proxies "
        f"in [{options.TAGS_GROUP}] names nobody\n"
    )


def require_tables(store: "TagStore") -> None:
    """Raises Conflict if the tables are missing, or old."""
    current, newest = store.current(), store.history()[-1][0]
    if current != newest:
        raise errors.Conflict(
            f"the database has {f'revision {current}' if current else 'none'} of the tables of "
            f"tags, and {newest} is needed: steelyard db upgrade --schema tags --url URL"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    if not 0 <= port <= _LAST_PORT:
        raise errors.BadRequest(f"--port {port} is none: a port is 0 to {_LAST_PORT}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise errors.BadRequest(
            f"cannot listen at {host!r}, port {port}: {error}; --host and --port name others"
        ) from error
    with listener:
        yield listener


def _written(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.contextmanager
def _ended_by(number: signal.Signals) -> Iterator[None]:
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
