"""The command ``capacity``."""

import argparse
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from steelyard import errors
from steelyard.analysis import capacity
from steelyard.cli.commands import NO_VALID_HOST, Listed, Listing
from steelyard.cli.inputs import cloud_names, clouds
from steelyard.cli.outputs import progress
from steelyard.cli.outputs.columns import AtLeast
from steelyard.cloud import garbage
from steelyard.scheduler import FilterScheduler
from steelyard.text.wording import counted


class Capacity(Listing):
    """Count how many more servers of each flavor fit.

    Without --flavor, show one line for each flavor of the cloud. With --flavor, show each host.

    Each flavor is counted on its own, as if no servers of the other flavors were added. Hosts that
    a filter on trial would reject count as rejected.

    The exit status is 0 if at least one more server of each flavor fits, 1 if not, and 2 if the
    input is invalid.
    """

    examples = (
        "steelyard capacity --example",
        "steelyard capacity --cloud cloud.yaml --flavor m1.small --by-reason",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        parser.add_argument(
            "--flavor",
            metavar="NAME",
            type=cloud_names.FLAVOR,
            action="append",
            default=[],
            help="flavor to count host by host; may be repeated; default: totals of all flavors",
        )
        parser.add_argument(
            "--by-reason",
            action="store_true",
            help="list the reasons why no more servers fit, instead of totals or hosts",
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.by_reason:
            return "Flavor", "Hosts", "More", "Why not more"
        if parsed_args.flavor:
            return "Flavor", "Host", "More", "Why not more"
        return "Flavor", "Fitting hosts", "More", "Main cause"

    @garbage.paused()
    def result(self, parsed_args: argparse.Namespace) -> Listed:
        cloud = clouds.described(parsed_args)
        if not cloud.flavors:
            raise errors.BadRequest("nothing to count: the cloud has no flavors")
        hosts = capacity.HostRooms(FilterScheduler(cloud, self.configuration()))
        flavors = list(dict.fromkeys(parsed_args.flavor)) or list(cloud.flavors)
        shown = _shown(parsed_args)
        rows: list[tuple[Any, ...]] = []
        totals = []
        for flavor in progress.watched(flavors, "flavors"):
            rooms = hosts.rooms(flavor)
            totals.append(_Total.of(flavor, rooms))
            rows += shown.rows(totals[-1], rooms)
        return Listed(
            kind=shown.kind,
            rows=rows,
            summary={"flavors": list(map(dataclasses.asdict, totals))},
            told=list(map(str, totals)) if parsed_args.flavor else [_fitting(totals)],
            status=0 if all(total.more for total in totals) else NO_VALID_HOST,
        )


@dataclasses.dataclass(frozen=True)
class _Total:
    """The number of servers of a flavor that fit on all hosts together."""

    flavor: str
    more: int
    at_least: bool
    """Whether a host reached the largest number that is tried, so that more may fit."""
    fitting_hosts: int
    hosts: int

    @classmethod
    def of(cls, flavor: str, rooms: Sequence[capacity.Room]) -> Self:
        return cls(
            flavor,
            more=sum(room.more for room in rooms),
            at_least=any(room.more == capacity.MOST for room in rooms),
            fitting_hosts=sum(room.more > 0 for room in rooms),
            hosts=len(rooms),
        )

    def __str__(self) -> str:
        least = "at least " if self.at_least else ""
        return (
            f"{least}{counted(self.more, 'more server')} of {self.flavor!r} fit, on "
            f"{self.fitting_hosts} of {counted(self.hosts, 'host')}"
        )


class _Shown(NamedTuple):
    """The rows that the command shows for each flavor."""

    kind: str
    rows: Callable[[_Total, Sequence[capacity.Room]], Iterable[tuple[Any, ...]]]


def _shown(parsed_args: argparse.Namespace) -> _Shown:
    if parsed_args.by_reason:
        return _Shown("reasons", _limits)
    return _Shown("hosts", _rooms) if parsed_args.flavor else _Shown("flavors", _sum)


def _sum(total: _Total, rooms: Sequence[capacity.Room]) -> Iterator[tuple[Any, ...]]:
    main = next(iter(capacity.limits(rooms)), None)
    more = AtLeast(total.more) if total.at_least else total.more
    yield total.flavor, total.fitting_hosts, more, main and main.cause


def _rooms(total: _Total, rooms: Sequence[capacity.Room]) -> Iterator[tuple[Any, ...]]:
    for room in rooms:
        yield total.flavor, room.host, room.more, room.verdict.reason


def _limits(total: _Total, rooms: Sequence[capacity.Room]) -> Iterator[tuple[Any, ...]]:
    for limit in capacity.limits(rooms):
        yield total.flavor, limit.hosts, limit.more, limit.cause


def _fitting(totals: Sequence[_Total]) -> str:
    fitting = sum(total.more > 0 for total in totals)
    return f"more servers of {fitting} of {counted(len(totals), 'flavor')} fit"
