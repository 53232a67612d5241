"""steelyard tags serve"""

import argparse
import signal
from typing import TYPE_CHECKING

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.app import Action
from steelyard.cli.consumers import URL, existing
from steelyard.cli.listening import ended_by, is_loopback, listening, written

if TYPE_CHECKING:
    from steelyard.tags import TagService, TagStore

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
        with extras.required("sql", "the tag service"):
            from steelyard.tags.watch import Watch  # noqa: PLC0415  (an extra)
        with extras.required("api", "the HTTP API of instance tags"):
            from waitress.server import create_server  # noqa: PLC0415  (an extra)

            from steelyard.tags.api import make_application  # noqa: PLC0415  (as above)
        # It warns of every request that waits for another one.
        logging.getLogger("waitress.queue").logger.setLevel("ERROR")
        conf = self.configuration()
        group = options.register_tags(conf)
        url = None if parsed_args.url is None else existing(parsed_args.url)
        told = _trust_this_machine(conf, parsed_args.host)
        service = ready_service(self, conf, url)
        application = make_application(service, conf)
        watch = Watch(service, group.marks_kept)
        with (
            listening(parsed_args.host, parsed_args.port) as listener,
            watch.every(group.poll_interval).in_background(),
            ended_by(signal.SIGTERM),
        ):
            self.app.stdout.write(f"{told}tags at {written(listener)}; Ctrl-C ends it\n")
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
    if group.trusted_proxies or not is_loopback(host):
        return ""
    conf.set_override("trusted_proxies", _LOOPBACK, group=options.TAGS_GROUP)
    return (
        f"whoever asks from this machine is believed X-Project-Id and X-User-Id: trusted_proxies "
        f"in [{options.TAGS_GROUP}] names nobody\n"
    )


def ready_service(command: Action, conf: cfg.ConfigOpts, url: str | None = None) -> "TagService":
    """Return the service for a command that runs until it is interrupted.

    Raises an error if the tables are missing or old, or the database belongs to another backend.
    """
    with extras.required("sql", "the tag service"):
        from steelyard.tags import configured  # noqa: PLC0415  (an extra)
    with configured.store(conf, url) as store:
        _require_tables(store)
    service = configured.service(conf, url)
    command.opened.enter_context(service.store)
    service.refuse_wrong_backend()
    return service


def _require_tables(store: "TagStore") -> None:
    """Raises Conflict if the tables are missing, or old."""
    current, newest = store.current(), store.history()[-1][0]
    if current != newest:
        raise errors.Conflict(
            f"the database has {f'revision {current}' if current else 'none'} of the tables of "
            f"tags, and {newest} is needed: steelyard db upgrade --schema tags --url URL"
        )
