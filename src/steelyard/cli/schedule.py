"""steelyard schedule"""

import argparse
from typing import Any

from steelyard.cli.columns import Causes, Number, Weights
from steelyard.cli.requests import RequestListing

_EXAMPLE_COUNT = 2  # without --flavor, the example asks for its own request


class Schedule(RequestListing):
    """Choose hosts for servers.

    Nothing is changed. The exit status is 0 when every server has a host, 1 when one has none,
    and 2 when something is wrong with what was given.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--count", type=int, metavar="N", help="how many servers; 1 unless given"
        )
        parser.add_argument(
            "--explain",
            action="store_true",
            help="also show what the chosen host weighs, and why others were rejected",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Any]:
        scheduler = self.scheduler(parsed_args)
        request = self.request(parsed_args, scheduler)
        count = parsed_args.count
        if count is None:
            count = 1 if parsed_args.flavor else _EXAMPLE_COUNT
        columns = ("Server", "Host", "Weight", "Hosts that fit")
        rows = []
        for decision in scheduler.select(request, count).decisions:
            chosen = decision.hosts[0]
            row: tuple[Any, ...] = (
                decision.server and decision.server.name,
                chosen.host,
                Number(chosen.weight),
                len(decision.weighed),
            )
            if parsed_args.explain:
                row += (Weights(chosen.weights), Causes(decision.causes))
            rows.append(row)
        return columns + (("Weights", "Rejected") if parsed_args.explain else ()), rows
