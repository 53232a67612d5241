"""steelyard capacity"""

import argparse
from typing import Any

from steelyard.cli import clouds
from steelyard.cli.app import NO_VALID_HOST, Listing
from steelyard.desk import capacity
from steelyard.desk.wording import counted
from steelyard.scheduler import FilterScheduler


class Capacity(Listing):
    """Say how many more servers of a flavor fit, host by host, and why not more.

    The option enforce does not matter here: what it would reject counts as rejected.

    The exit status is 0 when at least one fits, 1 when none does, and 2 when something is wrong
    with what was given.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        parser.add_argument(
            "--flavor", metavar="NAME", required=True, help="what each of the servers gets"
        )
        parser.add_argument(
            "--by-reason",
            action="store_true",
            help="list what keeps hosts from taking more, not each host",
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._rooms: list[capacity.Room] | None = None
        status = super().run(parsed_args)
        if self._rooms is None:
            return status
        more = sum(room.more for room in self._rooms)
        taking = sum(room.more > 0 for room in self._rooms)
        self.app.stdout.flush()
        least = "at least " if any(room.more == capacity.MOST for room in self._rooms) else ""
        hosts = counted(len(self._rooms), "host")
        self.app.stderr.write(
            f"steelyard: {least}{counted(more, 'more server')} of {parsed_args.flavor!r} fit, on "
            f"{taking} of {hosts}\n"
        )
        return status or (0 if more else NO_VALID_HOST)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.by_reason:
            return "Hosts", "More", "Why not more"
        return "Host", "More", "Why not more"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        scheduler = FilterScheduler(
            clouds.described(parsed_args), self.configuration([("enforce", True)])
        )
        self._rooms = capacity.rooms(scheduler, parsed_args.flavor)
        if parsed_args.by_reason:
            return [(each.hosts, each.more, each.cause) for each in capacity.limits(self._rooms)]
        return [(room.host, room.more, room.verdict.reason) for room in self._rooms]
