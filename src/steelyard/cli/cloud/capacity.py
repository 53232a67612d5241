"""The command ``capacity``."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steelyard import errors
from steelyard.analysis.capacity import FlavorRooms, HostRooms, RoomCount
from steelyard.analysis.capacity_by import Breakdown, metadata_keys
from steelyard.cli.commands import NO_VALID_HOST, Listed, Listing
from steelyard.cli.inputs import cloud_names, clouds
from steelyard.cli.outputs import progress
from steelyard.cli.outputs.columns import AtLeast, NoName
from steelyard.cloud import Cloud, garbage
from steelyard.scheduler import FilterScheduler
from steelyard.text import spelling
from steelyard.text.wording import counted

_TOTAL = "(total)"


class Capacity(Listing):
    """Count how many more servers of each flavor fit.

    Each flavor is counted on its own, as if no servers of the other flavors were added. Hosts that
    a filter on trial would reject count as rejected. Tables end with the total of each flavor; it
    counts every host once.

    The exit status is 0 if at least one more server of each flavor fits, 1 if not, and 2 if the
    input is invalid.
    """

    examples = (
        "steelyard capacity --example --by aggregate",
        "steelyard capacity --cloud cloud.yaml --flavor m1.small --by availability_zone",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        clouds.add_flavors(parser, "flavor to count")
        parser.add_argument(
            "--by",
            metavar="host|aggregate|reason|KEY",
            type=cloud_names.BREAKDOWN,
            help="rows for each flavor: its hosts, the aggregates, the reasons why no more servers "
            "fit, or the values of a metadata key of the aggregates, such as availability_zone; "
            "default: one row with the total",
        )
        parser.add_argument(
            "--group",
            metavar="NAME",
            type=cloud_names.GROUP,
            help="server group that the servers would join",
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return _rows_by(parsed_args.by).columns

    @garbage.paused()
    def result(self, parsed_args: argparse.Namespace) -> Listed:
        cloud = clouds.described(parsed_args)
        if not cloud.flavors:
            raise errors.BadRequest("nothing to count: the cloud has no flavors")
        by = _rows_by(parsed_args.by)(cloud, parsed_args.by)
        hosts = HostRooms(FilterScheduler(cloud, self.configuration()))
        flavors = list(dict.fromkeys(parsed_args.flavor)) or list(cloud.flavors)
        rows: list[tuple[Any, ...]] = []
        totals: dict[str, RoomCount] = {}
        on_one_host = False
        for flavor in progress.watched(flavors, "flavors"):
            found = hosts.of(flavor, parsed_args.group)
            totals[flavor], on_one_host = found.total, found.on_one_host
            rows += by.rows(found)
        return Listed(
            kind=by.kind,
            rows=rows,
            summary={
                "by": parsed_args.by,
                "group": parsed_args.group,
                "on_one_host": on_one_host,
                **by.summary,
                "flavors": [{"flavor": name, **each._asdict()} for name, each in totals.items()],
            },
            totals=[row for name, each in totals.items() for row in by.totals(name, each)],
            told=[
                *by.told,
                *(_told(totals) if parsed_args.flavor else [_fitting(totals)]),
                *([f"all servers of group {parsed_args.group!r} go to one host"] * on_one_host),
            ],
            status=0 if all(total.more for total in totals.values()) else NO_VALID_HOST,
        )


class _Flavors:
    """One row for each flavor, which has the total."""

    kind = "flavors"
    columns: tuple[str, ...] = ("Flavor", "Fitting hosts", "More", "Main cause")
    summary: Mapping[str, Any] = {}
    """Facts about these rows, besides the totals."""
    told: Sequence[str] = ()

    def __init__(self, cloud: Cloud, by: Any) -> None:
        """Prepare rows about the cloud for the argument ``--by``."""

    def rows(self, found: FlavorRooms) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a flavor."""
        main = next(iter(found.limits()), None)
        yield found.flavor, found.total.fitting_hosts, _more(found.total), main and main.cause

    def totals(self, flavor: str, total: RoomCount) -> Iterator[tuple[Any, ...]]:
        """Yield a row with the total of a flavor, unless the other rows are totals."""
        yield from ()


class _Hosts(_Flavors):
    kind = "hosts"
    columns = ("Flavor", "Host", "More", "Why not more")

    def rows(self, found: FlavorRooms) -> Iterator[tuple[Any, ...]]:
        for room in found.rooms:
            yield found.flavor, room.host, room.more, room.verdict.reason

    def totals(self, flavor: str, total: RoomCount) -> Iterator[tuple[Any, ...]]:
        yield flavor, _TOTAL, _more(total), ""


class _Reasons(_Flavors):
    kind = "reasons"
    columns = ("Flavor", "Hosts", "More", "Why not more")

    def rows(self, found: FlavorRooms) -> Iterator[tuple[Any, ...]]:
        for limit in found.limits():
            yield found.flavor, limit.hosts, limit.more, limit.cause

    def totals(self, flavor: str, total: RoomCount) -> Iterator[tuple[Any, ...]]:
        yield flavor, total.hosts, _more(total), _TOTAL


class _Aggregates(_Flavors):
    kind = "aggregates"
    columns = ("Flavor", "Aggregate", "Hosts", "Fitting hosts", "More")

    def __init__(self, cloud: Cloud, by: Any) -> None:
        self._breakdown = Breakdown.by_aggregate(cloud)

    def rows(self, found: FlavorRooms) -> Iterator[tuple[Any, ...]]:
        for name, each in self._breakdown.count(found):
            yield self._row(found.flavor, NoName(None) if name is None else name, each)

    def totals(self, flavor: str, total: RoomCount) -> Iterator[tuple[Any, ...]]:
        yield self._row(flavor, _TOTAL, total)

    def _row(self, flavor: str, name: Any, count: RoomCount) -> tuple[Any, ...]:
        return flavor, name, count.hosts, count.fitting_hosts, _more(count)


class _Values(_Aggregates):
    kind = "values"
    columns = ("Flavor", "Value", "Hosts", "Fitting hosts", "More")

    def __init__(self, cloud: Cloud, by: Any) -> None:
        keys = metadata_keys(cloud)
        if by not in keys:
            near = spelling.near(by, [*cloud_names.BREAKDOWNS, *keys])
            raise errors.NotFound(f"--by: no aggregate has the metadata key {by!r}{near}", by)
        self._breakdown = Breakdown.by_key(cloud, by)
        several = self._breakdown.several_values
        self.summary = {"hosts_with_several_values": several}
        if several:
            why = f"several values of {by!r}: the first in text order counts"
            self.told = [f"{counted(several, 'host')} with {why}"]


def _rows_by(by: str | None) -> type[_Flavors]:
    """Return the rows for the argument ``--by``."""
    match by:
        case None:
            return _Flavors
        case "host":
            return _Hosts
        case "reason":
            return _Reasons
        case "aggregate":
            return _Aggregates
    return _Values


def _more(count: RoomCount) -> Any:
    return AtLeast(count.more) if count.at_least else count.more


def _told(totals: Mapping[str, RoomCount]) -> list[str]:
    """Return the total of each flavor as text."""
    return [
        f"{'at least ' * each.at_least}{counted(each.more, 'more server')} of {flavor!r} fit, on "
        f"{each.fitting_hosts} of {counted(each.hosts, 'host')}"
        for flavor, each in totals.items()
    ]


def _fitting(totals: Mapping[str, RoomCount]) -> str:
    fitting = sum(total.more > 0 for total in totals.values())
    return f"more servers of {fitting} of {counted(len(totals), 'flavor')} fit"
