"""steelyard check"""

import argparse
import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from steelyard import filters
from steelyard.cli import clouds
from steelyard.cli.app import Listing
from steelyard.desk.checks import Finding, check
from steelyard.desk.checks.accepted import Accepted
from steelyard.desk.wording import counted
from steelyard.scheduler import cloud_file
from steelyard.severity import Severity

_FOUND = 1


@contextlib.contextmanager
def _saying_it_once() -> Iterator[None]:
    """Keeps filters from logging what is among the findings."""
    logger = logging.getLogger(filters.__name__)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


class Check(Listing):
    """Say what is wrong with a cloud's aggregates and flavors, before it bites.

    What is found can be accepted: keep the findings that are meant to be there in a file, as
    -f json or -f yaml writes them, and name it with --accepted.

    The option enforce does not matter here: what it would reject counts as rejected.

    The exit status is 0 when nothing is found, 1 when something is, and 2 when something is wrong
    with what was given. A note alone counts as nothing.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        parser.add_argument(
            "--accepted",
            metavar="FILE",
            help="findings that are not to be listed: JSON if the name ends in .json, else YAML",
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._findings: list[Finding] = []
        self._looked_at = ""
        status = super().run(parsed_args)
        if self._looked_at:
            self.app.stdout.flush()
            found = counted(len(self._findings), "finding") if self._findings else "nothing found"
            self.app.stderr.write(f"steelyard: {found} in {self._looked_at}\n")
        grave = any(found.severity is not Severity.NOTE for found in self._findings)
        return status or (_FOUND if grave else 0)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Severity", "Check", "Where", "Why", "Remedy"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        accepted = None
        if parsed_args.accepted is not None:
            content = cloud_file.load_content(parsed_args.accepted)
            accepted = Accepted.parse(parsed_args.accepted, content)
        cloud = clouds.described(parsed_args)
        with _saying_it_once():
            findings = check(cloud, self.configuration([("enforce", True)]))
        self._findings = findings if accepted is None else accepted.without(findings)
        self._looked_at = (
            f"{counted(len(cloud.aggregates), 'aggregate')}, "
            f"{counted(len(cloud.flavors), 'flavor')} and {counted(len(cloud.hosts), 'host')}"
        )
        return [
            (str(found.severity), str(found.check), found.where, found.why, found.remedy)
            for found in self._findings
        ]
