"""Conversion of a decision into the content of the page."""

import datetime
import itertools
from collections.abc import Sequence

from steelyard.analysis.capacity import FlavorRooms
from steelyard.analysis.suggestions import Suggestions
from steelyard.cloud.host_state import HostState
from steelyard.filters.capacity import FreeCapacity
from steelyard.page import grouping, view
from steelyard.page.bars import Bars, contributions
from steelyard.page.conditions import conditions
from steelyard.page.matrix import Judged, Reasons, judged
from steelyard.page.rooms import Rooms
from steelyard.page.view import FreeAmount, HostVerdict, Row, View
from steelyard.scheduler import Decision, FilterScheduler, Request


def view_of(
    decision: Decision,
    scheduler: FilterScheduler,
    source: str = "",
    modified: datetime.datetime | None = None,
    found: FlavorRooms | None = None,
) -> View:
    """Return the content of the page for the scheduler's decision.

    ``source`` is the name of the cloud that the page shows, and ``modified`` the time when its file
    was modified. ``found`` is the room for more such servers, if the page shall show it. Every
    filter examines every host, so this takes longer than the decision. Raises PluginError if a
    filter fails.
    """
    hosts = judged(decision, scheduler.filters)
    filters = tuple(decision.filters)
    flavor, suggestions = (
        decision.request.flavor,
        Suggestions(scheduler.cloud, scheduler.filters.values()),
    )
    rejections = [host.rejections for host in hosts]
    by_reason = suggestions.by_reason(flavor, itertools.chain(*rejections))
    reasons = Reasons(hosts, filters, by_reason)
    bars = Bars(hosts, list(scheduler.weighers))
    aggregates = grouping.by_aggregate(hosts, scheduler.cloud.aggregates.values())
    domains = grouping.by_domain(hosts, scheduler.failure_domains)
    decisive = [each[0] for host, each in zip(hosts, rejections, strict=True) if not host.fits]
    causes = grouping.by_cause(hosts, suggestions.by_cause(flavor, decisive))
    keys = grouping.keys_of_hosts(len(hosts), aggregates, domains, causes)
    states = [host.state for host in hosts]
    rooms = Rooms(found, scheduler.cloud, [state.host for state in states])
    tiles = grouping.Tiles(states, scheduler.cloud.aggregates.values(), scheduler.failure_domains)
    rows = zip(
        hosts,
        conditions(hosts, decision, scheduler.filters),
        keys,
        tiles.of_hosts,
        _free(states, FreeCapacity(scheduler.conf)),
        strict=True,
    )
    return View(
        flavor=_flavor(decision.request),
        group=_server_group(decision.request),
        filters=filters,
        weighers=bars.weighers,
        causes=causes.causes,
        aggregates=tuple(rooms.of_groups(aggregates)),
        domains=tuple(rooms.of_groups(domains)),
        domain_keys=tuple(reversed(scheduler.failure_domains)),
        rows=tuple(
            Row(
                host.state.host,
                _verdict(host),
                groups,
                tuple(aggregate.name for aggregate in host.state.aggregates),
                reasons.cells(host),
                host.weight,
                bars.widths(host),
                contributions(host),
                condition,
                tile,
                free,
                tuple(host.state.instances.values()),
                tuple(sorted(host.state.traits)),
            )
            for host, condition, groups, tile, free in rows
        ),
        reasons=reasons.all,
        tiles=tiles.all,
        room=rooms.total,
        zones=tuple(rooms.of_zones()),
        axis=bars.axis,
        source=source,
        modified=modified,
    )


def _verdict(host: Judged) -> HostVerdict:
    if host.chosen:
        return HostVerdict.CHOSEN
    return HostVerdict.FITS if host.fits else HostVerdict.REJECTED


def _free(states: Sequence[HostState], capacity: FreeCapacity) -> list[tuple[FreeAmount, ...]]:
    """Return the free amounts of each host, after overcommitment."""
    columns = [
        [FreeAmount(name, left, limit) for limit, left in zip(limits, lefts, strict=True)]
        for name, (_, limits, lefts) in capacity.columns(states).items()
    ]
    return [
        (
            *usual,
            *(
                FreeAmount(name, limit - state.resources_used.get(name, 0), limit)
                for name, limit in state.resources.items()
            ),
        )
        for usual, state in zip(zip(*columns, strict=True), states, strict=True)
    ]


def _flavor(request: Request) -> view.ShownFlavor:
    flavor = request.flavor
    return view.ShownFlavor(
        flavor.name, flavor.vcpus, flavor.memory_mb, flavor.root_gb, flavor.extra_specs
    )


def _server_group(request: Request) -> view.ShownServerGroup | None:
    group = request.instance_group
    if group is None:
        return None
    return view.ShownServerGroup(
        group.name, group.policy.value, group.rules, tuple(sorted(group.hosts))
    )
