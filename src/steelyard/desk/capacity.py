"""How many more servers of a flavor fit, host by host, and why not more."""

import bisect
import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from steelyard import plugins
from steelyard.filters.base import Filter
from steelyard.scheduler import FilterScheduler, HostState, Request, Server
from steelyard.scheduler.host_state import host_states
from steelyard.verdict import Verdict

MOST = 1_000
"""No more servers than this are tried on one host."""


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    """How many more servers fit on one host; ``verdict`` is that on the first that does not."""

    host: str
    more: int
    verdict: Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """What keeps some hosts from taking more: how many they are, and how many servers fit there."""

    hosts: int
    more: int
    cause: str


def rooms(scheduler: FilterScheduler, flavor: str) -> list[Room]:
    """The room on each host of the cloud, in its order.

    Servers that a host takes are thought to be there when the next one is asked for. A host that
    has turned one away is not asked about more.
    """
    request = scheduler.request(flavor)
    hosts = host_states(scheduler.cloud)
    rejected = _rejected(scheduler.filters, hosts, request)
    again = scheduler.filters_of_each_server
    servers = [Server(f"one more: {number}", "", request.flavor, "") for number in range(MOST)]
    return [
        Room(host.host, 0, rejected[host.host])
        if host.host in rejected
        else _room(host, request, again, servers)
        for host in hosts
    ]


def limits(found: Iterable[Room]) -> list[Limit]:
    """What keeps hosts from taking more, that of most hosts first."""
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
    """The hosts that take no server at all, with the verdict of the first filter that says so."""
    rejected: dict[str, Verdict] = {}
    left = list(hosts)
    for name, filter_ in filters.items():
        with plugins.blamed("filter", name):
            passed = list(filter_.filter_all(left, request))
            kept = set(passed)
            rejected |= {
                host.host: filter_.examine(host, request) for host in left if host not in kept
            }
        left = passed
    return rejected


def _room(
    host: HostState, request: Request, filters: Mapping[str, Filter], servers: Sequence[Server]
) -> Room:
    """The room on a host that takes a server."""

    def turned_away(there: int) -> bool:
        """Whether with so many more servers on it the host takes no other one."""
        return not _verdict(host.with_servers(*servers[:there]), request, filters).passed

    reach = 1  # doubled rather than halved from the most: hosts take few of them
    while reach < MOST and not turned_away(reach):
        reach = min(2 * reach, MOST)
    more = bisect.bisect_left(range(reach), True, lo=reach // 2, key=turned_away)
    verdict = _verdict(host.with_servers(*servers[:more]), request, filters)
    if verdict.passed:
        verdict = Verdict.rejected(f"no more than {MOST} servers are tried on a host")
    return Room(host.host, more, verdict)


def _verdict(host: HostState, request: Request, filters: Mapping[str, Filter]) -> Verdict:
    verdict = Verdict(True)
    for name, filter_ in filters.items():
        with plugins.blamed("filter", name):
            verdict = filter_.examine(host, request)
        if not verdict.passed:
            break
    return verdict
