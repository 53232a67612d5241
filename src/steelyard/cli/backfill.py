"""steelyard consumer backfill"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

# The client needs extras, which other commands do without: named where it is used.
from steelyard import consumers, errors
from steelyard.cli import os_clouds
from steelyard.cli.app import INTERRUPTED, SOME_FAILED, USERS_MISTAKE, Listing
from steelyard.cli.progress import watched
from steelyard.consumers import ConsumerType
from steelyard.consumers.backfill import (
    STOPPING,
    Backfill,
    Goal,
    Outcome,
    Result,
    candidates,
    grouped,
    listed,
)


class ConsumerBackfill(Listing):
    """Give a type to a project's consumers that have none, in a real Placement.

    Only the type is changed, never a resource. It can be run again at any time: who has a type
    keeps it. The exit status is 0 when nothing failed, 1 when some consumers did, 2 when the
    command could not begin or could not go on, and 130 when it was interrupted.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--type", required=True, metavar="T", help="such as INSTANCE")
        parser.add_argument("--project", required=True, metavar="P", help="the id of the project")
        parser.add_argument("--user", metavar="U", help="the id of one user of the project")
        parser.add_argument(
            "--os-cloud",
            required=True,
            metavar="NAME",
            help="the cloud of clouds.yaml whose Placement it is",
        )
        parser.add_argument(
            "--consumers",
            metavar="FILE",
            help="the UUIDs of those to look at, one a line; - reads standard input; without it, "
            "all that have allocations from any resource provider",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="change nothing, and say what would change"
        )
        parser.add_argument(
            "--long", action="store_true", help="list each consumer, not how many there are"
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._results: list[Result] = []
        self._cut_short: tuple[Exception, int] | None = None
        status = super().run(parsed_args)
        if status == 0 and self._cut_short is not None:
            return self.end(*self._cut_short)
        failed = any(result.outcome is Outcome.FAILED for result in self._results)
        return status or (SOME_FAILED if failed else 0)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.long:
            return "Consumer", "Outcome", "Reason"
        return "Outcome", "Consumers", "Reason"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        goal = Goal(ConsumerType(parsed_args.type), parsed_args.project, parsed_args.user)
        todo = None if parsed_args.consumers is None else self._listed(parsed_args.consumers)
        client = consumers.PlacementConsumers(os_clouds.placement(parsed_args.os_cloud))
        client.require_types()
        if todo is None:
            todo = candidates(client, watched(client.providers(), "resource providers"))
        work = Backfill(client, goal)
        self._work_through(todo, work.examine if parsed_args.dry_run else work.change)
        if parsed_args.long:
            return [(done.consumer, str(done.outcome), done.reason) for done in self._results]
        return [
            (str(group.outcome), group.consumers, group.reason) for group in grouped(self._results)
        ]

    def _listed(self, path: str) -> list[str]:
        if path == "-":
            with self.reading(["standard input"]):
                return listed(sys.stdin, "standard input")
        with self.reading([path]), open(path, encoding="utf-8") as file:
            return listed(file, path)

    def _work_through(self, todo: Sequence[str], act: Callable[[str], Result]) -> None:
        """Keeps what is done when it cannot go on: it is to be shown all the same."""
        try:
            with watched(todo, "consumers") as bar:
                for consumer in bar:
                    self._results.append(act(consumer))
        except KeyboardInterrupt:
            self._cut_short = self._unfinished("interrupted", todo), INTERRUPTED
        except STOPPING as error:
            self._cut_short = self._unfinished(str(error), todo), USERS_MISTAKE

    def _unfinished(self, why: str, todo: Sequence[str]) -> errors.SteelyardError:
        return errors.SteelyardError(
            f"{why}\nsteelyard: stopped after {len(self._results)} of {len(todo)} consumers; what "
            f"is listed is done, and the next one perhaps; run the same again for the rest"
        )
