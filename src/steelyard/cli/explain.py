"""steelyard explain"""

import argparse
import os
from collections.abc import Iterable, Sequence
from typing import Any

from steelyard import errors
from steelyard.cli import clouds, pages
from steelyard.cli.app import NO_VALID_HOST
from steelyard.cli.columns import Number, Why
from steelyard.cli.requests import RequestListing
from steelyard.desk import page
from steelyard.scheduler import Decision, FilterScheduler, HostExplanation, NoValidHost, Request


class Explain(RequestListing):
    """Show for every host whether it fits, what it weighs, or why it was rejected.

    With --html, a page shows it, in one file that asks for nothing from anywhere. For the page each
    filter is asked about each host, not only until one of them turns it away.

    The exit status is 0 when some host fits, 1 when none does, and 2 when something is wrong with
    what was given.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--html",
            metavar="FILE",
            help="write a page that shows the decision, instead of a table; - writes it to "
            "standard output; -c and other formats than the usual do not go with it",
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._decision: Decision | None = None
        status = super().run(parsed_args)
        if status or self._decision is None or self._decision.server is not None:
            return status
        return self.end(NoValidHost([self._decision], 1), NO_VALID_HOST)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Host", "Verdict", "Weight", "Why"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        if parsed_args.html is not None:
            _require_no_table(parsed_args)
            _require_another_file(parsed_args)
        scheduler = self.scheduler(parsed_args)
        decision = _decision(scheduler, self.request(parsed_args, scheduler))
        self._decision = decision
        if parsed_args.html is not None:
            return page.render(page.view_of(decision, scheduler, clouds.called(parsed_args)))
        return [
            (each.host, _verdict(each), Number(each.weight), Why(each)) for each in decision.hosts
        ]

    def produce_output(
        self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Any]
    ) -> int:
        if parsed_args.html is None:
            return super().produce_output(parsed_args, column_names, data)
        pages.write(str(data), parsed_args.html, self.app)
        return 0


def _decision(scheduler: FilterScheduler, request: Request) -> Decision:
    try:
        (decision,) = scheduler.select(request).decisions
    except NoValidHost as error:
        return error.decision
    return decision


def _require_no_table(parsed_args: argparse.Namespace) -> None:
    if parsed_args.columns or parsed_args.sort_columns or parsed_args.formatter != "table":
        raise errors.BadRequest("--html makes a page, no table: leave out -f, -c and --sort-column")


def _require_another_file(parsed_args: argparse.Namespace) -> None:
    """The page is not to take the place of the cloud that it shows."""
    if parsed_args.example:
        return
    cloud, html = clouds.file_name(parsed_args), parsed_args.html
    if os.path.exists(cloud) and os.path.exists(html) and os.path.samefile(cloud, html):
        raise errors.BadRequest(f"--html {html}: that describes the cloud; name another file")


def _verdict(explanation: HostExplanation) -> str:
    if explanation.chosen:
        return "chosen"
    return "fits" if explanation.fits else "rejected"
