"""The room for each flavor, before and after changes."""

import collections
import dataclasses
import functools
from collections.abc import Iterator, Mapping

from steelyard.analysis.capacity import HostRooms, Room
from steelyard.analysis.progress import Watching
from steelyard.analysis.whatif.baseline import Baseline
from steelyard.cloud import Cloud
from steelyard.cloud.host_state import HostState, host_states
from steelyard.scheduler import FilterScheduler


@dataclasses.dataclass(frozen=True, slots=True)
class LimitingCause:
    """A cause that limits hosts more than before, and the number of these hosts."""

    cause: str
    hosts: int


@dataclasses.dataclass(frozen=True, slots=True)
class FlavorChange:
    """The hosts that fit a flavor, and how many more servers fit, before and after a change.

    The numbers are None in a cloud without the flavor.
    """

    flavor: str
    hosts_before: int | None
    hosts_after: int | None
    capacity_before: int | None
    capacity_after: int | None
    causes: tuple[LimitingCause, ...] = ()
    """The causes on the hosts with less room than before, the most frequent first."""
    fits_before: bytes = b""
    """1 for each host that fits and otherwise 0, in the order of the hosts after the change."""
    fits_after: bytes = b""

    @property
    def falls_to_0(self) -> bool:
        """Whether a number falls to 0."""
        return any(before and after == 0 for before, after in self._pairs())

    @property
    def decreases(self) -> bool:
        """Whether a number decreases, or the flavor is removed."""
        return any(
            before is not None and (after is None or after < before)
            for before, after in self._pairs()
        )

    @property
    def differs(self) -> bool:
        """Whether a number changes."""
        return any(before != after for before, after in self._pairs())

    def _pairs(self) -> tuple[tuple[int | None, int | None], ...]:
        return (
            (self.hosts_before, self.hosts_after),
            (self.capacity_before, self.capacity_after),
        )


def flavor_changes(baseline: Baseline, after: Cloud, watch: Watching) -> Iterator[FlavorChange]:
    """Yield the numbers of all flavors of both clouds."""
    before, rooms = baseline.cloud, _RoomsAfter(baseline, after)
    for flavor in watch([*{**before.flavors, **after.flavors}], "flavors"):
        there = _by_host(baseline.rooms, flavor) if flavor in before.flavors else None
        then = rooms.of(flavor, there) if flavor in after.flavors else None
        yield FlavorChange(
            flavor,
            _fitting(there),
            _fitting(then),
            _capacity(there),
            _capacity(then),
            _causes(there, then),
            _hosts_that_fit(after, there),
            _hosts_that_fit(after, then),
        )


class _RoomsAfter:
    """The room on the hosts after a change; only hosts that change are counted."""

    def __init__(self, baseline: Baseline, after: Cloud) -> None:
        self._flavors_before = baseline.cloud.flavors
        self._flavors = after.flavors
        self._scheduler = scheduler = FilterScheduler(after, baseline.conf)
        self._are_kept = all(each.host_local for each in scheduler.filters.values())
        self._hosts = host_states(after)
        before = baseline.hosts
        changed = [
            state
            for state in self._hosts
            if state.host not in before or not _is_same(before[state.host], state)
        ]
        self._rooms_of_changed = HostRooms(scheduler, changed)

    def of(self, flavor: str, before: Mapping[str, Room] | None) -> Mapping[str, Room]:
        """Return the room on each host; ``before`` is the room before the change."""
        is_same = self._flavors_before.get(flavor) == self._flavors[flavor]
        if before is not None and is_same and self._are_kept:
            return {**before, **_by_host(self._rooms_of_changed, flavor)}
        return _by_host(self._rooms, flavor)

    @functools.cached_property
    def _rooms(self) -> HostRooms:
        return HostRooms(self._scheduler, self._hosts)


def _is_same(before: HostState, after: HostState) -> bool:
    """Return whether filters that are host-local answer the same for a host in both states."""
    return (
        before.kind == after.kind
        and before.uuid == after.uuid
        and before.instances == after.instances
    )


def _by_host(rooms: HostRooms, flavor: str) -> dict[str, Room]:
    return {room.host: room for room in rooms.of(flavor).rooms}


def _fitting(rooms: Mapping[str, Room] | None) -> int | None:
    return None if rooms is None else sum(room.more > 0 for room in rooms.values())


def _hosts_that_fit(cloud: Cloud, rooms: Mapping[str, Room] | None) -> bytes:
    """Return 1 for each host that has room, in the order of the cloud's hosts, and otherwise 0."""
    found = {} if rooms is None else rooms
    return bytes(host in found and found[host].more > 0 for host in cloud.hosts)


def _capacity(rooms: Mapping[str, Room] | None) -> int | None:
    return None if rooms is None else sum(room.more for room in rooms.values())


def _causes(
    before: Mapping[str, Room] | None, after: Mapping[str, Room] | None
) -> tuple[LimitingCause, ...]:
    if before is None or after is None:
        return ()
    counts = collections.Counter(
        after[host].verdict.cause for host, room in before.items() if after[host].more < room.more
    )
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(LimitingCause(cause, hosts) for cause, hosts in ranked)
