"""The number of additional servers of a flavor that fit on each host, and the limiting cause."""

import bisect
import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from steelyard import plugins
from steelyard.analysis.kinds import HostKinds
from steelyard.cloud import Server
from steelyard.cloud.host_state import HostState, Request, host_states
from steelyard.filters.base import FILTERS, Filter, ServerLimit
from steelyard.filters.capacity import keep_amounts
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


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """The hosts that are limited by the same cause, and how many more servers fit on them."""

    hosts: int
    more: int
    cause: str


class HostRooms:
    """The room of a cloud's hosts for servers of its flavors.

    Each filter limits the servers on a host by itself; the lowest limit is the host's room. Of
    filters with the same limit, the first enabled one gives the verdict.
    """

    def __init__(self, scheduler: FilterScheduler) -> None:
        self._scheduler = scheduler
        self._kinds = HostKinds(host_states(scheduler.cloud))
        keep_amounts(scheduler.filters.values(), self._kinds.hosts)

    def rooms(self, flavor: str) -> list[Room]:
        """Return the room on each host, in the order of the cloud.

        Servers that fit are counted as running on the host when the next one is tried.
        """
        request = self._scheduler.request(flavor)
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
        return filter_.examine(host.with_servers(*servers[:servers_there]), request)

    def is_full(servers_there: int) -> bool:
        return not verdict(servers_there).passed

    reach, most = 1, len(servers)  # doubled, because on most hosts only a few servers fit
    while reach < most and not is_full(reach):
        reach = min(2 * reach, most)
    more = bisect.bisect_left(range(reach), True, lo=reach // 2, key=is_full)
    return ServerLimit(more, verdict(more))


def limits(found: Iterable[Room]) -> list[Limit]:
    """Return the limiting causes, the one that limits most hosts first."""
    hosts: collections.Counter[str] = collections.Counter()
    more: collections.Counter[str] = collections.Counter()
    for room in found:
        hosts[room.verdict.cause] += 1
        more[room.verdict.cause] += room.more
    ranked = sorted(hosts, key=lambda cause: (-hosts[cause], cause))
    return [Limit(hosts[cause], more[cause], cause) for cause in ranked]
