"""Commands that serve an API for trial use."""

import abc
import argparse
import signal
from typing import Any, ClassVar
from wsgiref.types import WSGIApplication

from oslo_config import cfg

from steelyard import conf as options
from steelyard import extras
from steelyard.cli.commands import Command
from steelyard.cli.consumers import require_database
from steelyard.cli.inputs import addresses
from steelyard.cli.inputs.consumer_models import URL_EXAMPLES
from steelyard.web.listening import ended_by, is_loopback, written

_LOOPBACK = ["127.0.0.1", "::1"]
# A body up to this multiple of the limit is read completely, so that the client gets the error. For
# a larger one, the server closes the connection.
_READ_TO_THE_END = 16


class ServingCommand(Command):
    """A command that serves an API over the database of a group of options."""

    group: ClassVar[str]
    database: ClassVar[str]
    """The name of the database in messages."""

    port: ClassVar[int]
    """The default port."""

    api: ClassVar[str]
    """The name of the API in messages."""

    trusted: ClassVar[str]
    """The headers that trusted proxies set, as text."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        addresses.add_address(parser, "address to listen on", self.port)
        parser.add_argument(
            "--url",
            help=f"SQLAlchemy URL of the database, {URL_EXAMPLES}; default: connection in "
            f"[{self.group}] of a --config-file",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        conf = self.configuration()
        group = self.register(conf)
        require_database(conf, self.group, self.database, parsed_args.url)
        told = self._trust_this_machine(conf, parsed_args.host)
        application = self.application(conf, parsed_args.url)
        self._serve(parsed_args, application, told, group.max_body)

    @abc.abstractmethod
    def register(self, conf: cfg.ConfigOpts) -> Any:
        """Register the options of the group and return their values."""

    @abc.abstractmethod
    def application(self, conf: cfg.ConfigOpts, url: str | None) -> WSGIApplication:
        """Return the application over the database at the URL, by default the configured one.

        Implementations enter their resources into ``opened``, which closes them at the end.
        """

    def _trust_this_machine(self, conf: cfg.ConfigOpts, host: str) -> str:
        """Trust local requests if only this machine can connect, and return a line that says so.

        Then a trial needs no proxy. Configured proxies stay in force, and the line is empty.
        """
        if options.Values(conf, self.group).trusted_proxies or not is_loopback(host):
            return ""
        conf.set_override("trusted_proxies", _LOOPBACK, group=self.group)
        return (
            f"requests from this machine are trusted to set {self.trusted}: trusted_proxies in "
            f"[{self.group}] is empty\n"
        )

    def _serve(
        self, parsed_args: argparse.Namespace, application: WSGIApplication, told: str, most: int
    ) -> None:
        """Print ``told`` and the URL, and serve the application until a signal ends the command.

        ``most`` is the size limit of a request's body in bytes.
        """
        with extras.required("api", f"the {self.api} API"):
            from steelyard.web.server import serve  # noqa: PLC0415  (an extra)
        with addresses.listener(parsed_args) as listener, ended_by(signal.SIGTERM):
            self.app.stdout.write(
                f"{told}serving the {self.api} API at {written(listener)}; press Ctrl-C to stop\n"
            )
            self.app.stdout.flush()
            serve(application, listener, _READ_TO_THE_END * most)
