"""Conversion of a decision into the content of the page."""

from steelyard.page import grouping, view
from steelyard.page.bars import Bars, contributions
from steelyard.page.matrix import Judged, Reasons, judged
from steelyard.page.view import HostVerdict, Row, View
from steelyard.scheduler import Decision, FilterScheduler, Request


def view_of(decision: Decision, scheduler: FilterScheduler, source: str = "") -> View:
    """Return the content of the page for the scheduler's decision.

    ``source`` is the name of the cloud that the page shows. Every filter examines every host, so
    this takes longer than the decision. Raises PluginError if a filter fails.
    """
    hosts = judged(decision, scheduler.filters)
    filters = tuple(decision.filters)
    reasons = Reasons(hosts, filters)
    bars = Bars(hosts, list(scheduler.weighers))
    aggregates = grouping.by_aggregate(hosts, scheduler.cloud.aggregates.values())
    domains = grouping.by_domain(hosts, scheduler.failure_domains)
    causes = grouping.by_cause(hosts)
    keys = grouping.keys_of_hosts(len(hosts), aggregates, domains, causes)
    return View(
        flavor=_flavor(decision.request),
        group=_server_group(decision.request),
        filters=filters,
        weighers=bars.weighers,
        causes=causes.causes,
        aggregates=aggregates.groups,
        domains=domains.groups,
        domain_keys=tuple(reversed(scheduler.failure_domains)),
        rows=tuple(_row(host, keys[index], reasons, bars) for index, host in enumerate(hosts)),
        reasons=reasons.all,
        axis=bars.axis,
        source=source,
    )


def _row(host: Judged, keys: tuple[str, ...], reasons: Reasons, bars: Bars) -> Row:
    return Row(
        host.state.host,
        _verdict(host),
        keys,
        tuple(aggregate.name for aggregate in host.state.aggregates),
        reasons.cells(host),
        host.weight,
        bars.widths(host),
        contributions(host),
    )


def _verdict(host: Judged) -> HostVerdict:
    if host.chosen:
        return HostVerdict.CHOSEN
    return HostVerdict.FITS if host.fits else HostVerdict.REJECTED


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
