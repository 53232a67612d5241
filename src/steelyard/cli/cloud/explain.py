"""The command ``explain``."""

import argparse
import dataclasses
from typing import Any

from steelyard import errors, page
from steelyard.cli.commands import NO_VALID_HOST, Listed
from steelyard.cli.inputs import cloud_names, clouds, parsing
from steelyard.cli.inputs.requests import RequestListing, asked
from steelyard.cli.outputs import pages
from steelyard.cli.outputs.columns import Number, Why
from steelyard.cli.outputs.rejections import RejectionCells
from steelyard.cloud import garbage, model
from steelyard.page.rooms import room_of
from steelyard.scheduler import Decision, FilterScheduler, NoValidHost, Request
from steelyard.scheduler.decision import HostExplanation
from steelyard.text.wording import counted


class Explain(RequestListing):
    """Show for each host whether it fits or why it was rejected.

    The chosen host comes first, then the other hosts that fit, then the rejected ones. --host,
    --only and --limit choose the hosts to show; they do not change the decision.

    With --html, write the decision as a self-contained page with all hosts. For the page, every
    filter examines every host, even after another filter has rejected it.

    The exit status is 0 if a host fits, 1 if no host fits, and 2 if the input is invalid.
    """

    examples = (
        "steelyard explain --example --flavor gpu.large --only rejected --limit 3",
        "steelyard explain --cloud cloud.yaml --flavor m1.small --html decision.html",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--host",
            metavar="NAME",
            type=cloud_names.HOST,
            action="append",
            default=[],
            help="host to show; may be repeated; default: all hosts",
        )
        parser.add_argument(
            "--only",
            choices=("fits", "rejected"),
            help="hosts to show: those that fit, including the chosen one, or the rejected ones; "
            "default: both",
        )
        parser.add_argument(
            "--limit", type=int, metavar="N", help="number of hosts to show; default: all"
        )
        parser.add_argument(
            "--html",
            metavar="FILE",
            type=parsing.file_name,
            help="page to write instead of a table; - writes it to standard output; excludes -f, "
            "-c, --sort-column, --host, --only and --limit",
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Host", "Verdict", "Weight", "Why"

    @garbage.paused()
    def result(self, parsed_args: argparse.Namespace) -> Listed:
        _check(parsed_args)
        modified = pages.modified(parsed_args)
        scheduler = self.scheduler(parsed_args, clouds.described(parsed_args))
        for name in parsed_args.host:
            model.known("host", name, scheduler.cloud.hosts)
        decision, error = _decision(scheduler, self.request(parsed_args, scheduler))
        rejections = RejectionCells(scheduler)
        if error is not None:
            rejections.note_typos(error)
        whys = rejections.of_hosts(decision) if parsed_args.html is None else []
        rows = [_row(why) for why in whys if _is_wanted(why.explanation, parsed_args)]
        rows = rows[: parsed_args.limit]
        shown = decision.considered if parsed_args.html is not None else len(rows)
        flavor = decision.request.flavor.name
        listed = Listed(
            kind="hosts",
            rows=rows,
            summary={
                **asked(decision.request),
                "hosts": decision.considered,
                "fitting_hosts": decision.fitting,
                "shown": shown,
                "chosen": decision.server and decision.server.host,
            },
            told=[
                f"{decision.fitting} of {counted(decision.considered, 'host')} fit flavor "
                f"{flavor!r}; {counted(shown, 'host')} shown"
            ],
            status=0 if error is None else NO_VALID_HOST,
            error=error,
        )
        if parsed_args.html is None:
            return listed
        room = room_of(decision, scheduler)
        view = page.view_of(decision, scheduler, clouds.called(parsed_args), modified, room)
        html = page.render(view)
        return _Page(**vars(listed), html=html)

    def write_rows(
        self, listed: Listed, names: tuple[str, ...], parsed_args: argparse.Namespace
    ) -> None:
        if isinstance(listed, _Page):
            pages.write(listed.html, parsed_args.html, self)
        else:
            super().write_rows(listed, names, parsed_args)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Page(Listed):
    """A result that is written as a page."""

    html: str


def _check(parsed_args: argparse.Namespace) -> None:
    """Raise BadRequest for options that exclude each other or are invalid."""
    if parsed_args.limit is not None and parsed_args.limit < 1:
        raise errors.BadRequest(f"invalid --limit {parsed_args.limit}: expected at least 1")
    if parsed_args.html is not None:
        _require_no_table(parsed_args)
        pages.require_writable(parsed_args.html, parsed_args)


def _is_wanted(explanation: HostExplanation, parsed_args: argparse.Namespace) -> bool:
    """Return whether the arguments ask for the host."""
    if parsed_args.host and explanation.host not in parsed_args.host:
        return False
    return parsed_args.only is None or explanation.fits is (parsed_args.only == "fits")


def _row(why: Why) -> tuple[Any, ...]:
    found = why.explanation
    return found.host, _verdict(found), Number(found.weight), why


def _decision(scheduler: FilterScheduler, request: Request) -> tuple[Decision, NoValidHost | None]:
    """Return the decision, and the error if no host fits."""
    try:
        (decision,) = scheduler.select(request).decisions
    except NoValidHost as error:
        return error.decision, error
    return decision, None


def _require_no_table(parsed_args: argparse.Namespace) -> None:
    if parsed_args.columns or parsed_args.sort_columns or parsed_args.formatter != "table":
        raise errors.BadRequest(
            "--html writes a page instead of a table: leave out -f, -c and --sort-column"
        )
    if parsed_args.host or parsed_args.only or parsed_args.limit:
        raise errors.BadRequest(
            "--html writes a page with all hosts: leave out --host, --only and --limit"
        )


def _verdict(explanation: HostExplanation) -> str:
    if explanation.chosen:
        return "chosen"
    return "fits" if explanation.fits else "rejected"
