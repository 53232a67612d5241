"""The number of additional servers of a flavor that fit on each host, and the limiting cause.

Each host is counted on its own, as if all additional servers went there. They may join a server
group. With the policy ``anti-affinity``, a host has room for servers up to the rule
``max_server_per_host``, less those of the group that it has. With ``affinity``, only hosts of the
group have room; in a group without servers, every host has, but all servers go to one of them, so
the room of several hosts is that of the largest. Soft policies limit nothing.
"""

import bisect
import collections
import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from steelyard import plugins
from steelyard.analysis.kinds import HostKinds
from steelyard.cloud import Server
from steelyard.cloud.host_state import HostState, Request, host_states
from steelyard.filters.base import FILTERS, Filter, ServerLimit
from steelyard.filters.capacity import keep_amounts
from steelyard.groups import Policy
from steelyard.scheduler import FilterScheduler
from steelyard.verdict import PASSED, Verdict

MOST = 1_000
"""The largest number of additional servers tried on one host."""

_UNLIMITED = ServerLimit(MOST, PASSED)
_MORE = Verdict.rejected(f"at most {MOST} servers are tried per host")


class Room(NamedTuple):
    """The number of additional servers that fit on one host.

    ``verdict`` is the rejection of the first server that does not fit.
    """

    host: str
    more: int
    verdict: Verdict


class RoomCount(NamedTuple):
    """The number of additional servers that fit on some hosts together."""

    more: int
    at_least: bool
    """Whether a host reached the largest number that is tried, so that more may fit."""
    fitting_hosts: int
    hosts: int


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """The hosts that are limited by the same cause, and how many more servers fit on them."""

    hosts: int
    more: int
    cause: str


@dataclasses.dataclass(frozen=True)
class FlavorRooms:
    """The room of each host for servers of a flavor, in the order of the cloud."""

    flavor: str
    rooms: Sequence[Room]
    on_one_host: bool = False
    """Whether all additional servers go to one host, as those of a new group with affinity."""

    @functools.cached_property
    def total(self) -> RoomCount:
        """The room of all hosts together."""
        return self.count(range(len(self.rooms)))

    def count(self, indices: Sequence[int]) -> RoomCount:
        """Return the room of the hosts with these indices together."""
        more = list(map(self._more.__getitem__, indices))
        full = more.count(0)
        return RoomCount(self._together(more), MOST in more, len(more) - full, len(more))

    def limits(self) -> list[Limit]:
        """Return the limiting causes, the one that limits most hosts first."""
        more: dict[str, list[int]] = collections.defaultdict(list)
        for room in self.rooms:
            more[room.verdict.cause].append(room.more)
        ranked = sorted(more, key=lambda cause: (-len(more[cause]), cause))
        return [Limit(len(more[cause]), self._together(more[cause]), cause) for cause in ranked]

    @functools.cached_property
    def _more(self) -> list[int]:
        return [room.more for room in self.rooms]

    def _together(self, more: Sequence[int]) -> int:
        return max(more, default=0) if self.on_one_host else sum(more)


class HostRooms:
    """The room of a cloud's hosts for servers of its flavors.

    Each filter limits the servers on a host by itself; the lowest limit is the host's room. Of
    filters with the same limit, the first enabled one gives the verdict.
    """

    def __init__(
        self, scheduler: FilterScheduler, hosts: Iterable[HostState] | None = None
    ) -> None:
        """Count the room of these hosts of the scheduler's cloud, by default of all."""
        self._scheduler = scheduler
        self._kinds = HostKinds(host_states(scheduler.cloud) if hosts is None else hosts)
        keep_amounts(scheduler.filters.values(), self._kinds.hosts)

    def of(self, flavor: str, group: str | None = None) -> FlavorRooms:
        """Return the room of each host for servers of the flavor, which join the group if given.

        Servers that fit are counted as running on the host when the next one is tried. Raises
        NotFound if the flavor or the group is missing, and PolicyNotSupported as
        ``FilterScheduler.select`` does.
        """
        request = self._scheduler.request(flavor, group)
        joined = request.instance_group
        if joined is None:
            return FlavorRooms(flavor, self._rooms(request))
        self._scheduler.check_supported(joined)
        is_new = joined.policy == Policy.AFFINITY and not joined.hosts
        return FlavorRooms(flavor, self._rooms(request), on_one_host=is_new)

    def _rooms(self, request: Request) -> list[Room]:
        lowest = _Lowest(self._kinds.hosts)
        tried: list[tuple[int, str, Filter]] = []
        for position, (name, filter_) in enumerate(self._scheduler.filters.items()):
            limits = None
            if not filter_.run_filter_once_per_request:
                limits = self._computed(name, filter_, lowest.hosts, request)
                if limits is None:
                    tried.append((position, name, filter_))
            if limits is None:
                limits = self._for_first_server(name, filter_, lowest.hosts, request)
            lowest.lower(limits, position)
        for position, name, filter_ in tried:
            limits = self._tried(name, filter_, lowest.hosts, request, lowest.most)
            lowest.lower(limits, position)
        return lowest.rooms

    def _for_first_server(
        self, name: str, filter_: Filter, hosts: Sequence[HostState], request: Request
    ) -> list[ServerLimit]:
        """Return a limit of 0 servers for the hosts that the filter rejects."""
        passing = self._kinds.passing(name, filter_, hosts, request)
        if all(passing):
            return [_UNLIMITED] * len(hosts)
        rejects = [host for host, passes in zip(hosts, passing, strict=True) if not passes]
        verdicts = iter(self._kinds.first_rejections(name, filter_, rejects, request))
        return [_UNLIMITED if each else ServerLimit(0, next(verdicts)) for each in passing]

    def _computed(
        self, name: str, filter_: Filter, hosts: Sequence[HostState], request: Request
    ) -> list[ServerLimit] | None:
        """Return the limits as the filter computes them; None if it does not."""
        with plugins.blamed(FILTERS, name):
            if filter_.server_limits(hosts[:1], request, MOST) is None:
                return None

        def question(asked: Sequence[HostState]) -> Iterable[ServerLimit]:
            return filter_.server_limits(asked, request, MOST) or ()

        return self._kinds.ask(name, filter_, hosts, request, question)

    def _tried(
        self, name: str, filter_: Filter, hosts: Sequence[HostState], request: Request, most: int
    ) -> list[ServerLimit]:
        """Return the limits, found by trying one server more or less on each host."""
        servers = [Server(f"additional {number}", "", request.flavor, "") for number in range(most)]

        def question(asked: Sequence[HostState]) -> Iterator[ServerLimit]:
            return (_limit(host, request, filter_, servers) for host in asked)

        return self._kinds.ask(name, filter_, hosts, request, question)


class _Lowest:
    """The lowest limit of each host so far."""

    def __init__(self, hosts: Sequence[HostState]) -> None:
        self.hosts = hosts
        """The hosts with room left."""
        self._names = [host.host for host in hosts]
        self._left: Sequence[int] = range(len(hosts))
        self._servers = [MOST + 1] * len(hosts)
        self._positions = [0] * len(hosts)
        self._verdicts = [_MORE] * len(hosts)

    @property
    def most(self) -> int:
        """The most servers for which a host has room."""
        return min(max((self._servers[index] for index in self._left), default=0), MOST)

    @property
    def rooms(self) -> list[Room]:
        more = [min(servers, MOST) for servers in self._servers]
        return list(map(Room, self._names, more, self._verdicts))

    def lower(self, limits: Iterable[ServerLimit], position: int) -> None:
        """Apply the limits of the filter at this position to the hosts with room left."""
        lowest, is_any_full = self._servers, False
        for index, limit in zip(self._left, limits, strict=True):
            if limit is _UNLIMITED:
                continue
            servers, verdict = limit
            if servers > lowest[index] or verdict.passed:
                continue
            if servers < lowest[index] or position < self._positions[index]:
                lowest[index] = servers
                self._positions[index] = position
                self._verdicts[index] = verdict
                is_any_full |= not servers
        if is_any_full:
            left = [bool(lowest[index]) for index in self._left]
            self._left = list(itertools.compress(self._left, left))
            self.hosts = list(itertools.compress(self.hosts, left))


def _limit(
    host: HostState, request: Request, filter_: Filter, servers: Sequence[Server]
) -> ServerLimit:
    """Return the limit of a host on which at least one server fits."""

    def verdict(servers_there: int) -> Verdict:
        there = servers[:servers_there]
        return filter_.examine(host.with_servers(*there), _with_members(request, there, host.host))

    def is_full(servers_there: int) -> bool:
        return not verdict(servers_there).passed

    reach, most = 1, len(servers)  # doubled, because on most hosts only a few servers fit
    while reach < most and not is_full(reach):
        reach = min(2 * reach, most)
    more = bisect.bisect_left(range(reach), True, lo=reach // 2, key=is_full)
    return ServerLimit(more, verdict(more))


def _with_members(request: Request, servers: Sequence[Server], host: str) -> Request:
    """Return the request for the next server, with these ones on the host in its group."""
    group = request.instance_group
    if group is None:
        return request
    joined = group.with_members(dict.fromkeys((server.uuid for server in servers), host))
    return dataclasses.replace(request, instance_group=joined)
