"""The room for additional servers: in groups of hosts, and for all flavors as a table."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.analysis.capacity import FlavorRooms, HostRooms, RoomCount
from steelyard.analysis.capacity_by import Breakdown, metadata_keys
from steelyard.cloud import Cloud
from steelyard.page.grouping import IN_NO_AGGREGATE, Grouping
from steelyard.page.view import HostGroup, ShownRoom
from steelyard.scheduler import Decision, FilterScheduler
from steelyard.text import escapes

ZONE = "availability_zone"
"""The metadata key that names availability zones."""

AGGREGATES = "aggregate"
"""The breakdown by aggregate; all others are metadata keys."""


def room_of(decision: Decision, scheduler: FilterScheduler) -> FlavorRooms:
    """Return the room of the hosts for more servers like the one of the decision.

    All hosts must have been candidates. Their states are those of the decision, which takes less
    time than to make them again.
    """
    states = {each.obj.host: each.obj for each in decision.weighed}
    states |= {state.host: state for each in decision.rejected for state in each.hosts}
    hosts = HostRooms(scheduler, map(states.__getitem__, scheduler.cloud.hosts))
    group = decision.request.instance_group
    return hosts.of(decision.request.flavor.name, None if group is None else group.name)


class Rooms:
    """The room for servers of one flavor; nothing if it was not counted."""

    def __init__(self, found: FlavorRooms | None, cloud: Cloud, hosts: Sequence[str]) -> None:
        """Prepare to count the room of the named hosts, whose indices are used below."""
        self._found = found
        self._cloud = cloud
        number_of = {name: number for number, name in enumerate(cloud.hosts)}
        self._numbers = [number_of[name] for name in hosts]

    @property
    def total(self) -> ShownRoom | None:
        """The room of all hosts of the cloud."""
        return None if self._found is None else _shown("all hosts", self._found.total)

    def of_groups(self, grouping: Grouping) -> Iterator[HostGroup]:
        """Yield the groups with their room."""
        for group in grouping.groups:
            if self._found is None:
                yield group
            else:
                members = [self._numbers[index] for index in grouping.members[group.key]]
                room = _shown(group.name, self._found.count(members))
                yield dataclasses.replace(group, room=room)

    def of_zones(self) -> Iterator[ShownRoom]:
        """Yield the room of each availability zone; nothing if no aggregate names one."""
        if self._found is not None and ZONE in metadata_keys(self._cloud):
            for name, count in Breakdown.by_key(self._cloud, ZONE).count(self._found):
                yield _shown("no availability zone" if name is None else name, count)


def breakdowns(cloud: Cloud) -> list[str]:
    """Return the names of the breakdowns of a cloud."""
    keys = metadata_keys(cloud)
    return [AGGREGATES, *(key for key in keys if key != AGGREGATES)]


def table(cloud: Cloud, rooms: Sequence[FlavorRooms], by: str) -> dict[str, Any]:
    """Return the room of each set of hosts for each flavor, as values for JSON.

    ``rooms`` has the room of the cloud's hosts for each flavor. The last row is the total.
    """
    if by == AGGREGATES:
        breakdown, nameless = Breakdown.by_aggregate(cloud), IN_NO_AGGREGATE
    else:
        breakdown, nameless = Breakdown.by_key(cloud, by), f"no {by}"
    columns = [breakdown.count(found) for found in rooms]
    first = columns[0] if columns else []
    names = [nameless if name is None else name for name, _ in first]
    counts = [
        [*(count for _, count in column), found.total]
        for column, found in zip(columns, rooms, strict=True)
    ]
    return {
        "flavors": [escapes.printable(found.flavor) for found in rooms],
        "names": [escapes.printable(name) for name in (*names, "all hosts")],
        "hosts": [count.hosts for count in counts[0]] if counts else [],
        "fit": [[count.fitting_hosts for count in column] for column in counts],
        "more": [[count.more for count in column] for column in counts],
        "at_least": [
            [row for row, count in enumerate(column) if count.at_least] for column in counts
        ],
    }


def _shown(name: str, count: RoomCount) -> ShownRoom:
    return ShownRoom(name, count.more, count.at_least, count.fitting_hosts, count.hosts)
