"""The command ``consumer backfill``."""

import argparse
import collections
import sys
from collections.abc import Callable, Sequence

from steelyard import errors
from steelyard.cli.commands import INTERRUPTED, SOME_FAILED, USERS_MISTAKE, Listed, Listing
from steelyard.cli.inputs import consumer_models, parsing
from steelyard.cli.inputs.consumer_models import OnConsumers
from steelyard.cli.outputs import columns
from steelyard.cli.outputs.progress import watched
from steelyard.consumers import ConsumerType
from steelyard.consumers.backfill import (
    STOPPING,
    Backfill,
    BackfillOutcome,
    BackfillResult,
    Goal,
    candidates_of_providers,
    grouped,
    listed,
)
from steelyard.consumers.names import UNKNOWN


class ConsumerBackfill(OnConsumers, Listing):
    """Set the type of a project's consumers without a type.

    The command changes consumers in a consumer store or in a live Placement, and only their type.
    It can be repeated: consumers that have a type are skipped.

    The exit status is 0 if no consumer failed, 1 if some did, 2 if the command could not start or
    continue, and 130 if it was interrupted.
    """

    examples = (
        "steelyard consumer backfill --type INSTANCE --project $OS_PROJECT_ID --os-cloud mycloud "
        "--dry-run",
        "steelyard consumer backfill --type INSTANCE --project $OS_PROJECT_ID "
        "--url sqlite:////var/lib/consumers.db --dry-run",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--type", required=True, metavar="T", help="consumer type to set, such as INSTANCE"
        )
        parser.add_argument("--project", required=True, metavar="P", help="ID of the project")
        parser.add_argument(
            "--user", metavar="U", help="ID of a user of the project; default: all users"
        )
        consumer_models.add_source(parser)
        parser.add_argument(
            "--consumers",
            metavar="FILE",
            type=parsing.file_name,
            help="file of consumer UUIDs, one per line; - reads standard input; default: all "
            "consumers in the store or in Placement",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="list the changes without making them"
        )
        parser.add_argument(
            "--long", action="store_true", help="list each consumer instead of a summary"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.long:
            return "Consumer", "Outcome", "Reason"
        return "Outcome", "Consumers", "Reason"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        goal = Goal(ConsumerType(parsed_args.type), parsed_args.project, parsed_args.user)
        todo = None if parsed_args.consumers is None else self._listed(parsed_args.consumers)
        model = self.model(parsed_args, "update", "consumers_of")
        if parsed_args.os_cloud is not None:
            model.require_types()
        if todo is None and parsed_args.os_cloud is not None:
            providers = watched(model.providers(), "resource providers")
            todo = candidates_of_providers(model, providers)
        elif todo is None:
            todo = list(model.consumers_of(project=goal.project, type=UNKNOWN.name))
        work = Backfill(model, goal)
        results, stop = _worked_through(todo, work.examine if parsed_args.dry_run else work.change)
        outcomes = collections.Counter(result.outcome for result in results)
        if stop is not None:
            status = INTERRUPTED if isinstance(stop, KeyboardInterrupt) else USERS_MISTAKE
        else:
            status = SOME_FAILED if outcomes[BackfillOutcome.FAILED] else 0
        return Listed(
            kind="consumers" if parsed_args.long else "outcomes",
            rows=_each(results) if parsed_args.long else _groups(results),
            summary={
                "dry_run": parsed_args.dry_run,
                "consumers": len(todo),
                **{columns.key(outcome): outcomes[outcome] for outcome in BackfillOutcome},
            },
            status=status,
            error=None if stop is None else _unfinished(stop, len(results), len(todo)),
        )

    def _listed(self, path: str) -> list[str]:
        if path == "-":
            with self.reading(["standard input"]):
                return listed(sys.stdin, "standard input")
        with self.reading([path]), open(path, encoding="utf-8") as file:
            return listed(file, path)


def _worked_through(
    todo: Sequence[str], act: Callable[[str], BackfillResult]
) -> tuple[list[BackfillResult], BaseException | None]:
    """Return the results, and the exception that stopped the work early, or None."""
    results: list[BackfillResult] = []
    try:
        with watched(todo, "consumers") as bar:
            results.extend(map(act, bar))
    except (KeyboardInterrupt, *STOPPING) as stop:
        return results, stop
    return results, None


def _each(results: Sequence[BackfillResult]) -> list[tuple[str, str, str | None]]:
    return [(done.consumer, str(done.outcome), done.reason or None) for done in results]


def _groups(results: Sequence[BackfillResult]) -> list[tuple[str, int, str | None]]:
    return [
        (str(group.outcome), group.consumers, group.reason or None) for group in grouped(results)
    ]


def _unfinished(stop: BaseException, done: int, total: int) -> errors.SteelyardError:
    error = errors.SteelyardError(
        "interrupted" if isinstance(stop, KeyboardInterrupt) else str(stop)
    )
    error.add_note(
        f"stopped after {done} of {total} consumers; the listed ones are done, and the next one "
        f"may be; run the command again for the rest"
    )
    return error
