"""The command ``capacity``."""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self

from steelyard import errors
from steelyard.analysis import capacity
from steelyard.cli.commands import NO_VALID_HOST, Listed, Listing
from steelyard.cli.inputs import cloud_names, clouds
from steelyard.cli.outputs import progress
from steelyard.cloud import garbage
from steelyard.scheduler import FilterScheduler
from steelyard.text.wording import counted


class Capacity(Listing):
    """Count how many more servers of each flavor fit.

    Each flavor is counted on its own, as if no servers of the other flavors were added. Hosts that
    a filter on trial would reject count as rejected.

    The exit status is 0 if at least one more server of each flavor fits, 1 if not, and 2 if the
    input is invalid.
    """

    examples = (
        "steelyard capacity --example --flavor web.small --flavor gpu.large",
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
            help="flavor to count servers of; may be repeated; default: all flavors",
        )
        parser.add_argument(
            "--by-reason",
            action="store_true",
            help="list the reasons why no more servers fit, instead of each host",
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.by_reason:
            return "Flavor", "Hosts", "More", "Why not more"
        return "Flavor", "Host", "More", "Why not more"

    @garbage.paused()
    def result(self, parsed_args: argparse.Namespace) -> Listed:
        cloud = clouds.described(parsed_args)
        if not cloud.flavors:
            raise errors.BadRequest("nothing to count: the cloud has no flavors")
        counted = capacity.HostRooms(FilterScheduler(cloud, self.configuration()))
        flavors = list(dict.fromkeys(parsed_args.flavor)) or list(cloud.flavors)
        found = {flavor: counted.rooms(flavor) for flavor in progress.watched(flavors, "flavors")}
        totals = [_Total.of(flavor, rooms) for flavor, rooms in found.items()]
        return Listed(
            kind="reasons" if parsed_args.by_reason else "hosts",
            rows=_limits(found) if parsed_args.by_reason else _rooms(found),
            summary={"flavors": list(map(dataclasses.asdict, totals))},
            told=list(map(str, totals)),
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


def _rooms(found: Mapping[str, Sequence[capacity.Room]]) -> list[tuple[Any, ...]]:
    return [
        (flavor, room.host, room.more, room.verdict.reason)
        for flavor, rooms in found.items()
        for room in rooms
    ]


def _limits(found: Mapping[str, Sequence[capacity.Room]]) -> list[tuple[Any, ...]]:
    return [
        (flavor, limit.hosts, limit.more, limit.cause)
        for flavor, rooms in found.items()
        for limit in capacity.limits(rooms)
    ]
