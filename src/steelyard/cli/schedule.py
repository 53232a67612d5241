"""steelyard schedule"""

import argparse
from typing import Any

from steelyard.cli import clouds
from steelyard.cli.columns import Causes, Number, Weights
from steelyard.cli.requests import RequestListing
from steelyard.scheduler import Cloud
from steelyard.scheduler.saved_cloud import SavedCloud

_EXAMPLE_COUNT = 2  # without --flavor, the example asks for its own request


class Schedule(RequestListing):
    """Choose hosts for servers.

    Nothing is changed, unless --commit says that the servers are to be added to the cloud file.

    The exit status is 0 when every server has a host, 1 when one has none, and 2 when something is
    wrong with what was given.
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
        parser.add_argument(
            "--commit",
            action="store_true",
            help="add the servers to the cloud file; comments in it are not kept, which is said",
        )
        return parser

    def cloud(self, parsed_args: argparse.Namespace) -> Cloud:
        self._saved: SavedCloud | None = None
        if not parsed_args.commit:
            return super().cloud(parsed_args)
        self._saved = clouds.saved(parsed_args.cloud)
        return self._saved.cloud

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        columns = ("Server", "Host", "Weight", "Hosts that fit")
        return (*columns, "Weights", "Rejected") if parsed_args.explain else columns

    def content(self, parsed_args: argparse.Namespace) -> Any:
        scheduler = self.scheduler(parsed_args)
        request = self.request(parsed_args, scheduler)
        count = parsed_args.count
        if count is None:
            count = 1 if parsed_args.flavor else _EXAMPLE_COUNT
        rows = []
        selection = scheduler.select(request, count)
        if self._saved is not None:
            scheduler.commit(selection)
            clouds.save(self._saved, scheduler.cloud, self.app)
        for decision in selection.decisions:
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
        return rows
