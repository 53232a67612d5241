"""Commands that run until they are interrupted, and can be monitored over HTTP."""

import argparse
from typing import TYPE_CHECKING

from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.commands import Command
from steelyard.web.listening import listening, written

if TYPE_CHECKING:
    from steelyard.tags.database.store import TagStore
    from steelyard.tags.jobs.broker import Broker
    from steelyard.tags.monitoring.parts import MonitoredPart

_OPTION = "--metrics-listen"
_LISTEN = "metrics_listen"


class MonitoredCommand(Command):
    """A command that can answer requests for its health and its metrics while it runs."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            _OPTION,
            metavar="HOST:PORT",
            help="address at which GET /metrics and GET /health are answered; default: "
            f"{_LISTEN} in [{options.TAGS_GROUP}], or nowhere",
        )
        return parser

    def monitored_configuration(self, parsed_args: argparse.Namespace) -> cfg.ConfigOpts:
        """Return the configuration, with the address on the command line if there is one."""
        conf, given = self.configuration(), parsed_args.metrics_listen
        options.register_tags(conf)
        if given is not None:
            try:
                conf.set_override(_LISTEN, given, group=options.TAGS_GROUP)
            except ValueError as error:
                raise errors.BadRequest(f"invalid {_OPTION} {given!r}: {error}", given) from error
        return conf

    def monitored(
        self, conf: cfg.ConfigOpts, store: "TagStore", broker: "Broker | None"
    ) -> "MonitoredPart | None":
        """Answer requests for health and metrics until the command exits, if so configured.

        Returns None otherwise.
        """
        address = options.register_tags(conf).metrics_listen
        if address is None:
            return None
        with extras.required("api", "monitoring"):
            from steelyard.tags.monitoring.parts import MonitoredPart  # noqa: PLC0415  (an extra)
            from steelyard.web.server import serving  # noqa: PLC0415  (as above)
        part = MonitoredPart(store, broker)
        listener = self.opened.enter_context(listening(*address, names=(_LISTEN, _LISTEN)))
        self.opened.enter_context(serving(part.application, listener))
        self.app.stdout.write(f"answering GET /metrics and GET /health at {written(listener)}\n")
        return part
