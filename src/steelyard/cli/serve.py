"""steelyard serve"""

import argparse
import signal
from collections.abc import Callable

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import extras
from steelyard.cli import clouds
from steelyard.cli.app import Action
from steelyard.cli.listening import ended_by, is_loopback, listening, written
from steelyard.desk.watched import WatchedCloud
from steelyard.scheduler import FilterScheduler

# Nobody has anything to send here.
_MOST_SENT = 65536


class Serve(Action):
    """Serve a page that shows where servers would go, for any flavor and server group.

    The page is live: whoever picks another flavor or another group sees the answer change, and the
    cloud file is read again when it has changed. Nothing can be changed through the page, and
    everybody who can ask for it sees the cloud; it runs until it is interrupted.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        parser.add_argument(
            "--host",
            default="127.0.0.1",
            help="the address, or the name, to listen at and to be asked for by; %(default)s "
            "unless given",
        )
        parser.add_argument(
            "--port",
            type=int,
            default=8080,
            help="the port to listen at, 0 for any that is free; %(default)s unless given",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        with extras.required("cli", "the decision page"):
            from waitress.server import create_server  # noqa: PLC0415  (an extra)

            from steelyard.desk.serving import Names, make_application  # noqa: PLC0415  (an extra)
        # It warns of every request that waits for another one.
        logging.getLogger("waitress.queue").logger.setLevel("ERROR")
        conf = self.configuration()
        scheduler = _scheduler(parsed_args, conf)
        with (
            listening(parsed_args.host, parsed_args.port) as listener,
            ended_by(signal.SIGTERM),
        ):
            address = listener.getsockname()[0]
            names = Names(parsed_args.host, address)
            application = make_application(scheduler, names, clouds.called(parsed_args))
            if not is_loopback(address):
                self.app.stderr.write(
                    f"steelyard: everybody who reaches {address} sees the whole cloud\n"
                )
            self.app.stdout.write(f"decisions at {written(listener)}; Ctrl-C ends it\n")
            self.app.stdout.flush()
            server = create_server(
                application, sockets=[listener], ident=None, max_request_body_size=_MOST_SENT
            )
            server.run()
            server.close()


def _scheduler(
    parsed_args: argparse.Namespace, conf: cfg.ConfigOpts
) -> Callable[[], FilterScheduler]:
    """What gives the scheduler to ask at any time."""
    if parsed_args.example or parsed_args.cloud == "-":
        fixed = FilterScheduler(clouds.described(parsed_args), conf)
        return lambda: fixed
    return WatchedCloud(clouds.file_name(parsed_args), conf).scheduler
