"""The command ``doctor``."""

import argparse

from steelyard import errors
from steelyard.analysis.doctor import examine
from steelyard.analysis.nova_conf import NovaConf
from steelyard.cli.outputs.findings import FindingsListing, Report


class Doctor(FindingsListing):
    """Report errors and risks in a Nova configuration.

    The checks are for a Nova configuration that uses steelyard. Name its files with --config-file,
    in the order in which Nova reads them. Nova need not be installed.

    The exit status is 0 if nothing is found, 1 if something is found, and 2 if the configuration
    cannot be read. Notes do not affect the exit status.
    """

    examples = ("steelyard --config-file /etc/nova/nova.conf doctor",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--scheduler-only",
            action="store_true",
            help="skip the checks for nova-conductor, if it reads other files",
        )
        return parser

    def examine(self, parsed_args: argparse.Namespace) -> Report:
        files = self.app.options.config_file
        if not files:
            raise errors.BadRequest(
                "missing --config-file: name each file of the Nova configuration"
            )
        with self.reading(files):
            conf = NovaConf(files, scheduler_only=parsed_args.scheduler_only)
        return Report(examine(conf), {"file": len(files)})
