"""The command ``serve``."""

import argparse
import signal
from collections.abc import Callable

from oslo_config import cfg

from steelyard import extras
from steelyard.cli.commands import Command
from steelyard.cli.inputs import addresses, clouds
from steelyard.cli.outputs import pages
from steelyard.page.reloading import WatchedCloud
from steelyard.page.served_cloud import ServedCloud
from steelyard.scheduler import FilterScheduler
from steelyard.web.listening import ended_by, is_loopback, written

# The largest request body that is read. Valid requests have none.
_MOST_SENT = 65536


class Serve(Command):
    """Serve a live page that shows where servers would go.

    The page has a choice of flavors and server groups. The cloud file is read again when it
    changes. The page is read-only and has no access control: everyone who can reach it can
    see the whole cloud. The command runs until it is interrupted.
    """

    examples = (
        "steelyard serve --example",
        "steelyard serve --cloud cloud.yaml --port 8000",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        addresses.add_address(
            parser, "address or name to listen on, as in the URL in browsers", 8080
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        with extras.required("cli", "the decision page"):
            from steelyard.page.serving import (  # noqa: PLC0415  (an extra)
                AllowedHosts,
                make_application,
            )
            from steelyard.web.server import serve  # noqa: PLC0415  (an extra)
        conf = self.configuration()
        current = _current(parsed_args, conf)
        with (
            addresses.listener(parsed_args) as listener,
            ended_by(signal.SIGTERM),
        ):
            address = listener.getsockname()[0]
            allowed_hosts = AllowedHosts(parsed_args.host, address)
            application = make_application(
                current,
                allowed_hosts,
                clouds.called(parsed_args),
                pages.invocation(self, parsed_args),
            )
            if not is_loopback(address):
                self.app.stderr.write(
                    f"steelyard: everyone who can reach {address} can see the whole cloud\n"
                )
            self.app.stdout.write(
                f"serving the page at {written(listener)}; press Ctrl-C to stop\n"
            )
            self.app.stdout.flush()
            serve(application, listener, _MOST_SENT)


def _current(parsed_args: argparse.Namespace, conf: cfg.ConfigOpts) -> Callable[[], ServedCloud]:
    """Return a function that returns the current cloud."""
    if parsed_args.example or parsed_args.cloud == "-":
        fixed = ServedCloud(FilterScheduler(clouds.described(parsed_args), conf))
        return lambda: fixed
    return WatchedCloud(clouds.file_name(parsed_args), conf).current
