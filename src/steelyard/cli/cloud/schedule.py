"""The command ``schedule``."""

import argparse
import collections
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from steelyard import errors
from steelyard.cli.commands import NO_VALID_HOST, Listed
from steelyard.cli.inputs import clouds, parsing, recording
from steelyard.cli.inputs.recording import Recording
from steelyard.cli.inputs.requests import RequestListing, asked
from steelyard.cli.outputs.columns import Number, Weights
from steelyard.cli.outputs.rejections import RejectionCells
from steelyard.cloud import garbage
from steelyard.cloud.files import request_file
from steelyard.cloud.files.saving import SavedCloud
from steelyard.scheduler import Decision, FilterScheduler, NoValidHost, Selection, several
from steelyard.text.wording import counted

_EXAMPLE_COUNT = 2  # servers in the default request to the example cloud


class Schedule(Recording, RequestListing):
    """Choose hosts for servers.

    Nothing is changed without --commit, which adds the servers to the cloud file. With --url or
    --os-cloud, it also records their allocations, for consumers of the type INSTANCE.
    With --requests, either all servers of the file are placed or none.

    The exit status is 0 if every server has a host, 1 if a server has none, and 2 if the input is
    invalid.
    """

    examples = (
        "steelyard schedule --example --flavor web.small --group web --count 2",
        "steelyard schedule --cloud cloud.yaml --requests requests.yaml --commit",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--count",
            type=int,
            metavar="N",
            help="number of servers; default: 1, or 2 for --example without --flavor",
        )
        parser.add_argument(
            "--requests",
            metavar="FILE",
            type=parsing.file_name,
            help="file with a list of requests, JSON if the name ends in .json, else YAML; each "
            "has a flavor and may have a count, a group and a name",
        )
        parser.add_argument(
            "--explain",
            action="store_true",
            help="show the weights of the chosen hosts, and why other hosts were rejected",
        )
        parser.add_argument(
            "--commit",
            action="store_true",
            help="add the servers to the cloud file, and report lost comments and anchors",
        )
        for field in ("project", "user"):
            parser.add_argument(
                f"--{field}",
                metavar="ID",
                help=f"{field} that owns the recorded allocations; default: {recording.DEFAULT_ID}",
            )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        columns = ("Server", "Host", "Weight", "Hosts that fit")
        return (*columns, "Weights", "Rejected") if parsed_args.explain else columns

    @garbage.paused()
    def result(self, parsed_args: argparse.Namespace) -> Listed:
        _check(parsed_args)
        saved = _saved(parsed_args)
        cloud = clouds.described(parsed_args) if saved is None else saved.cloud
        scheduler = self.scheduler(parsed_args, cloud)
        rejections = RejectionCells(scheduler)
        select, summary = self._wanted(parsed_args, scheduler)
        try:
            selection = select()
        except NoValidHost as error:
            rejections.note_typos(error)
            return Listed(
                kind="servers",
                rows=(),
                summary={
                    **summary,
                    "placed": 0,
                    "committed": False,
                    **_failed_request(error),
                    "causes": rejections.causes(error.decision).machine_readable(),
                    "trial_causes": _trial_fields(rejections, error.decision),
                },
                told=_trials(error.decisions, error.count),
                status=NO_VALID_HOST,
                error=error,
            )
        if parsed_args.commit:
            self._commit(parsed_args, scheduler, selection, saved)
        return Listed(
            kind="servers",
            rows=[
                (*_row(each), *(_explained(rejections, each) if parsed_args.explain else ()))
                for each in selection.decisions
            ],
            summary={
                **summary,
                "placed": len(selection.decisions),
                "committed": parsed_args.commit,
                "causes": [],
                "trial_causes": _trial_fields(rejections, selection.decisions[-1]),
            },
            told=_trials(selection.decisions, len(selection.decisions)),
        )

    def _wanted(
        self, parsed_args: argparse.Namespace, scheduler: FilterScheduler
    ) -> tuple[Callable[[], Selection], dict[str, Any]]:
        """Return the selection that the arguments ask for, to be called, and its summary."""
        if parsed_args.requests is not None:
            requests = request_file.load(parsed_args.requests, scheduler.cloud)
            servers = sum(each.count for each in requests)
            summary = {"requests": len(requests), "servers": servers, "failed_request": None}
            return functools.partial(several.select_all, scheduler, requests), summary
        request = self.request(parsed_args, scheduler)
        count = parsed_args.count
        if count is None:
            count = 1 if parsed_args.flavor else _EXAMPLE_COUNT
        select = functools.partial(scheduler.select, request, count)
        return select, {**asked(request), "servers": count}

    def _commit(
        self,
        parsed_args: argparse.Namespace,
        scheduler: FilterScheduler,
        selection: Selection,
        saved: SavedCloud | None,
    ) -> None:
        owner = (parsed_args.project, parsed_args.user)
        with self.recorded(parsed_args, scheduler, selection, *owner):
            scheduler.commit(selection)
            if saved is not None:
                saved.save(scheduler.cloud)
        # Only after the block: an error inside it would undo the records, but not the file.
        if saved is not None:
            clouds.tell_unkept(saved, self.app)


def _check(parsed_args: argparse.Namespace) -> None:
    """Raise BadRequest for options that would have no effect."""
    for option in ("flavor", "group", "count"):
        if parsed_args.requests is not None and getattr(parsed_args, option) is not None:
            raise errors.BadRequest(
                f"--{option} and --requests cannot be used together: write the {option} into the "
                f"file"
            )
    if recording.records(parsed_args):
        if not parsed_args.commit:
            raise errors.BadRequest("only committed servers are recorded: add --commit")
    elif (parsed_args.project, parsed_args.user) != (None, None):
        raise errors.BadRequest(
            "--project and --user set the owner of recorded allocations: add --url or --os-cloud, "
            "and --commit"
        )


def _saved(parsed_args: argparse.Namespace) -> SavedCloud | None:
    """Return the cloud file to add the servers to, or None."""
    if not parsed_args.commit or (parsed_args.example and recording.records(parsed_args)):
        return None
    return clouds.saved(parsed_args.cloud)


def _failed_request(error: NoValidHost) -> dict[str, Any]:
    """Return the field for the request of a file that has no valid host, if there is a file."""
    if not isinstance(error, several.NoValidHostForRequest):
        return {}
    return {"failed_request": {"number": error.number, **dataclasses.asdict(error.wanted)}}


def _trial_fields(rejections: RejectionCells, decision: Decision) -> Any:
    return rejections.trial_causes(decision).machine_readable()


def _trials(decisions: Sequence[Decision], count: int) -> list[str]:
    """Return one line per filter on trial that would have rejected hosts for the last server."""
    last = decisions[-1]
    rejected: collections.Counter[str] = collections.Counter()
    for cause in last.trial_causes:
        rejected[cause.filter] += cause.count
    of = f" for server {len(decisions)} of {count}" if count > 1 else ""
    return [
        f"{name}, on trial, would reject {number} of {counted(last.considered, 'host')}{of}"
        for name, number in rejected.items()
    ]


def _row(decision: Decision) -> tuple[Any, ...]:
    chosen = decision.chosen
    return (
        decision.server and decision.server.name,
        decision.server and decision.server.host,
        Number(chosen and chosen.weight),
        decision.fitting,
    )


def _explained(rejections: RejectionCells, decision: Decision) -> tuple[Any, ...]:
    """Return the cells that ``--explain`` adds to a row."""
    weights = decision.chosen.weights if decision.chosen else ()
    return Weights(weights), rejections.all_causes(decision)
