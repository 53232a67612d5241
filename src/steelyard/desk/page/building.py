"""From a decision to what the page shows of it."""

from steelyard.desk.page import grouping, view
from steelyard.desk.page.bars import Bars, contributions
from steelyard.desk.page.matrix import Judged, Reasons, judged
from steelyard.desk.page.view import Row, Verdict, View
from steelyard.scheduler import Decision, FilterScheduler, Request


def view_of(decision: Decision, scheduler: FilterScheduler, source: str = "") -> View:
    """What there is to see of the scheduler's decision; ``source`` is what the cloud is called.

    Every filter is asked about every host; PluginError if one fails.
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
        bars.segments(host),
        contributions(host),
    )


def _verdict(host: Judged) -> Verdict:
    if host.chosen:
        return Verdict.CHOSEN
    return Verdict.FITS if host.fits else Verdict.REJECTED


def _flavor(request: Request) -> view.Flavor:
    flavor = request.flavor
    return view.Flavor(
        flavor.name, flavor.vcpus, flavor.memory_mb, flavor.root_gb, flavor.extra_specs
    )


def _server_group(request: Request) -> view.ServerGroup | None:
    group = request.instance_group
    if group is None:
        return None
    return view.ServerGroup(group.name, group.policy.value, group.rules, tuple(sorted(group.hosts)))
