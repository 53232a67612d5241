"""steelyard doctor"""

import argparse
from typing import Any

from steelyard import doctor, errors
from steelyard.cli.app import Listing
from steelyard.severity import Severity

_FOUND = 1


class Doctor(Listing):
    """Say what is wrong or risky in a Nova configuration that names steelyard.

    The files are named with --config-file, in the order in which Nova reads them.

    The exit status is 0 when nothing is found, 1 when something is, and 2 when the configuration
    cannot be read. A note alone counts as nothing.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--scheduler-only",
            action="store_true",
            help="nova-conductor reads other files than these",
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._findings: list[doctor.Finding] = []
        status = super().run(parsed_args)
        grave = any(found.severity is not Severity.NOTE for found in self._findings)
        return status or (_FOUND if grave else 0)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Severity", "File", "Option", "Finding", "Remedy"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        files = self.app.options.config_file
        if not files:
            raise errors.BadRequest("--config-file is missing: name nova.conf, as often as needed")
        with self.reading(files):
            conf = doctor.NovaConf(files, scheduler_only=parsed_args.scheduler_only)
        self._findings = doctor.examine(conf)
        return [
            (str(found.severity), found.file, found.option, found.finding, found.remedy)
            for found in self._findings
        ]
