"""The number of additional servers of a flavor that fit on each host, and the limiting cause."""

import bisect
import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from steelyard import plugins
from steelyard.cloud import Server
from steelyard.cloud.host_state import HostState, host_states
from steelyard.filters.base import FILTERS, Filter
from steelyard.scheduler import FilterScheduler, Request
from steelyard.verdict import Verdict

MOST = 1_000
"""The largest number of additional servers tried on one host."""


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
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


def rooms(scheduler: FilterScheduler, flavor: str) -> list[Room]:
    """Return the room on each host, in the order of the cloud.

    Servers that fit are counted as running on the host when the next one is tried.
    """
    request = scheduler.request(flavor)
    hosts = host_states(scheduler.cloud)
    rejected = _rejected(scheduler.filters, hosts, request)
    of_each_server = scheduler.filters_of_each_server
    servers = [Server(f"additional {number}", "", request.flavor, "") for number in range(MOST)]
    return [
        Room(host.host, 0, rejected[host.host])
        if host.host in rejected
        else _room(host, request, of_each_server, servers)
        for host in hosts
    ]


def limits(found: Iterable[Room]) -> list[Limit]:
    """Return the limiting causes, the one that limits most hosts first."""
    hosts: collections.Counter[str] = collections.Counter()
    more: collections.Counter[str] = collections.Counter()
    for room in found:
        hosts[room.verdict.cause] += 1
        more[room.verdict.cause] += room.more
    ranked = sorted(hosts, key=lambda cause: (-hosts[cause], cause))
    return [Limit(hosts[cause], more[cause], cause) for cause in ranked]


def _rejected(
    filters: Mapping[str, Filter], hosts: Sequence[HostState], request: Request
) -> dict[str, Verdict]:
    """Return the hosts on which no server fits, with the first filter's verdict."""
    rejected: dict[str, Verdict] = {}
    left = list(hosts)
    for name, filter_ in filters.items():
        with plugins.blamed(FILTERS, name):
            passed = list(filter_.filter_all(left, request))
            kept = set(passed)
            rejects = [host for host in left if host not in kept]
            names = [host.host for host in rejects]
            rejected.update(zip(names, filter_.first_rejections(rejects, request), strict=True))
        left = passed
    return rejected


def _room(
    host: HostState, request: Request, filters: Mapping[str, Filter], servers: Sequence[Server]
) -> Room:
    """Return the room on a host on which at least one server fits."""

    def is_full(servers_there: int) -> bool:
        """Return whether the host rejects another server with so many additional ones on it."""
        return not _verdict(host.with_servers(*servers[:servers_there]), request, filters).passed

    reach = 1  # doubled, not halved from MOST: on most hosts only a few servers fit
    while reach < MOST and not is_full(reach):
        reach = min(2 * reach, MOST)
    more = bisect.bisect_left(range(reach), True, lo=reach // 2, key=is_full)
    verdict = _verdict(host.with_servers(*servers[:more]), request, filters)
    if verdict.passed:
        verdict = Verdict.rejected(f"at most {MOST} servers are tried per host")
    return Room(host.host, more, verdict)


def _verdict(host: HostState, request: Request, filters: Mapping[str, Filter]) -> Verdict:
    verdict = Verdict(True)
    for name, filter_ in filters.items():
        with plugins.blamed(FILTERS, name):
            verdict = filter_.examine(host, request)
        if not verdict.passed:
            break
    return verdict
