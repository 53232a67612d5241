"""steelyard schedule"""

import argparse
from typing import Any

from steelyard import errors
from steelyard.cli import clouds, recording
from steelyard.cli.columns import Causes, Number, Weights
from steelyard.cli.recording import Recording
from steelyard.cli.requests import RequestListing
from steelyard.scheduler import Cloud, Decision, FilterScheduler, Selection
from steelyard.scheduler.saved_cloud import SavedCloud

_EXAMPLE_COUNT = 2  # without --flavor, the example asks for its own request


class Schedule(Recording, RequestListing):
    """Choose hosts for servers.

    Nothing is changed, unless --commit says that the servers are to be added to the cloud file.
    With --url or --os-cloud, what is allocated to them is recorded too, as that of consumers of the
    type INSTANCE.

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
        for whose in ("project", "user"):
            parser.add_argument(
                f"--{whose}",
                metavar="ID",
                help=f"the {whose} whose the recorded allocations are; {recording.NOBODY} unless "
                f"given",
            )
        return parser

    def cloud(self, parsed_args: argparse.Namespace) -> Cloud:
        self._saved: SavedCloud | None = None
        _check(parsed_args)
        if not parsed_args.commit or (parsed_args.example and recording.records(parsed_args)):
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
        selection = scheduler.select(request, count)
        if parsed_args.commit:
            self._commit(parsed_args, scheduler, selection)
        return [_row(decision, explain=parsed_args.explain) for decision in selection.decisions]

    def _commit(
        self, parsed_args: argparse.Namespace, scheduler: FilterScheduler, selection: Selection
    ) -> None:
        whose = (parsed_args.project, parsed_args.user)
        with self.recorded(parsed_args, scheduler, selection, *whose):
            scheduler.commit(selection)
            if self._saved is not None:
                self._saved.save(scheduler.cloud)
        # Afterwards: what fails in there is taken back, and the file would not be.
        if self._saved is not None:
            clouds.tell_unkept(self._saved, self.app)


def _check(parsed_args: argparse.Namespace) -> None:
    """Refuses what would do nothing."""
    if recording.records(parsed_args):
        if not parsed_args.commit:
            raise errors.BadRequest("only what is committed is recorded: add --commit")
    elif (parsed_args.project, parsed_args.user) != (None, None):
        raise errors.BadRequest(
            "--project and --user say whose the recorded allocations are: add --url or --os-cloud, "
            "and --commit"
        )


def _row(decision: Decision, *, explain: bool) -> tuple[Any, ...]:
    chosen = decision.hosts[0]
    row = (
        decision.server and decision.server.name,
        chosen.host,
        Number(chosen.weight),
        len(decision.weighed),
    )
    return (*row, Weights(chosen.weights), Causes(decision.causes)) if explain else row
