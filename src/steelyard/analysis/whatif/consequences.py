"""The consequences of a change: two clouds compared, before and after it.

The servers of hosts that go out of service get other hosts from the scheduler, as in an evacuation.
The cloud after the change is counted and checked with them in their new places.
"""

import dataclasses
from collections.abc import Collection
from typing import Any

from oslo_config import cfg

from steelyard import errors
from steelyard.analysis.checks import check
from steelyard.analysis.progress import Watching, unwatched
from steelyard.analysis.whatif.baseline import Baseline
from steelyard.analysis.whatif.findings import FindingChanges, difference
from steelyard.analysis.whatif.flavors import FlavorChange, flavor_changes
from steelyard.cloud import Cloud, Server
from steelyard.filters.in_service import InServiceFilter
from steelyard.findings import Check, Severity
from steelyard.scheduler import FilterScheduler, NoValidHost
from steelyard.scheduler.several import select_evacuation
from steelyard.text.wording import counted


@dataclasses.dataclass(frozen=True, slots=True)
class Displaced:
    """A server of a host that goes out of service, and the host that it would get."""

    server: Server
    to: str


@dataclasses.dataclass(frozen=True, slots=True)
class Stranded:
    """A server of a host that goes out of service and that no other host fits."""

    server: Server
    cause: str
    """The most frequent cause of rejections."""


@dataclasses.dataclass(frozen=True, slots=True)
class NewlyMisplaced:
    """A server whose own host rejects it after the change, and did not before."""

    server: Server
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Consequences:
    """The differences between a cloud before and after a change."""

    before: Cloud
    after: Cloud
    """The changed cloud, with the displaced servers in their new places."""
    flavors: tuple[FlavorChange, ...]
    """The flavors with different numbers."""
    displaced: tuple[Displaced, ...]
    stranded: tuple[Stranded, ...]
    misplaced: tuple[NewlyMisplaced, ...]
    findings: FindingChanges

    def worse(self, *, strict: bool = False) -> list[str]:
        """Return the deteriorations as text; if strict, any decrease of a number is one."""
        no_host = sum(each.falls_to_0 for each in self.flavors)
        less = sum(each.decreases for each in self.flavors) if strict else 0
        violations = self.findings.of(violations=True).new
        others = self.findings.of(violations=False).new
        error_count = sum(each.severity is Severity.ERROR for each in others)
        return [
            text
            for count, text in (
                (no_host, f"{counted(no_host, 'flavor')} without a host"),
                (less, f"{counted(less, 'flavor')} with fewer hosts or less room"),
                (len(self.stranded), f"{counted(len(self.stranded), 'server')} without a host"),
                (len(self.misplaced), counted(len(self.misplaced), "misplaced server")),
                (len(violations), counted(len(violations), "new violation")),
                (error_count, counted(error_count, "new error")),
            )
            if count
        ]

    def is_worse(self, *, strict: bool = False) -> bool:
        """Return whether something is worse; if strict, any decrease of a number is."""
        return bool(self.worse(strict=strict))


def consequences(
    baseline: Baseline,
    after: Cloud,
    watch: Watching = unwatched,
    missing: Collection[str] = frozenset(),
) -> Consequences:
    """Return the consequences of a change that turns the cloud of the baseline into the other.

    Both clouds have the same servers on the same hosts, and the second one has all of the hosts of
    the first; those in ``missing`` are only there until their servers have moved. Raises BadRequest
    if hosts go out of service although InServiceFilter is not enabled, and PluginError if a filter
    or a weigher fails.
    """
    before, conf = baseline.cloud, baseline.conf
    displaced, stranded, settled = _settled(before, after, conf, missing)
    # Servers without a host violate no policy, and hosts that no longer exist need no flavor.
    left = settled.without_servers([each.server.uuid for each in stranded])
    checked = dataclasses.replace(
        left, hosts={name: each for name, each in left.hosts.items() if name not in missing}
    )
    findings = difference(baseline.findings(watch), check(checked, conf, watch))
    return Consequences(
        before,
        settled,
        tuple(each for each in flavor_changes(baseline, settled, watch) if each.differs),
        displaced,
        stranded,
        tuple(
            NewlyMisplaced(settled.servers[each.details["uuid"]], each.details["reason"])
            for each in findings.new
            if each.check is Check.MISPLACED_SERVER
        ),
        findings,
    )


def _settled(
    before: Cloud, after: Cloud, conf: cfg.ConfigOpts | None, missing: Collection[str]
) -> tuple[tuple[Displaced, ...], tuple[Stranded, ...], Cloud]:
    """Return the servers that must move, those that cannot, and the cloud after the moves."""
    gone = {
        name
        for name, host in before.hosts.items()
        if name in missing or (after.hosts[name].out_of_service and not host.out_of_service)
    }
    if not gone:
        return (), (), after
    scheduler = FilterScheduler(after, conf, are_all_filters_enforced=True)
    if InServiceFilter not in map(type, scheduler.filters.values()):
        raise errors.BadRequest(
            "hosts go out of service, but InServiceFilter is not enabled, so that they would still "
            "get servers: add it to enabled_filters"
        )
    found = select_evacuation(scheduler, gone)
    scheduler.commit(found.selection)
    return (
        tuple(
            Displaced(before.servers[server.uuid], server.host)
            for server in found.selection.servers
        ),
        tuple(
            Stranded(before.servers[uuid], _main_cause(error))
            for uuid, error in found.stranded.items()
        ),
        scheduler.cloud,
    )


def _main_cause(error: NoValidHost) -> str:
    """Return the most frequent cause; of several, the one of the filter that runs last."""
    order = list(error.decision.filters)
    ranked = sorted(
        error.decision.causes, key=lambda each: (each.count, order.index(each.filter)), reverse=True
    )
    return f"{ranked[0].filter}: {ranked[0].cause}" if ranked else "there are no other hosts"


def as_dict(found: Consequences, *, strict: bool = False) -> dict[str, Any]:
    """Return the consequences as a dictionary, for output in JSON and YAML."""
    violations = found.findings.of(violations=True)
    others = found.findings.of(violations=False)
    return {
        "summary": {
            "hosts": len(found.after.hosts),
            "flavors": len(found.after.flavors),
            "worse": found.is_worse(strict=strict),
        },
        "flavors": list(map(_numbers, found.flavors)),
        "displaced": [{**_placed(each.server), "to": each.to} for each in found.displaced],
        "stranded": [{**_placed(each.server), "cause": each.cause} for each in found.stranded],
        "misplaced": [
            {**_identity(each.server), "host": each.server.host, "reason": each.reason}
            for each in found.misplaced
        ],
        "violations": _both(violations),
        "findings": _both(others),
    }


def _numbers(change: FlavorChange) -> dict[str, Any]:
    found = dataclasses.asdict(change)
    return {key: value for key, value in found.items() if not isinstance(value, bytes)}


def _placed(server: Server) -> dict[str, Any]:
    return {**_identity(server), "from": server.host}


def _identity(server: Server) -> dict[str, Any]:
    return {"server": server.name, "uuid": server.uuid, "flavor": server.flavor.name}


def _both(difference: FindingChanges) -> dict[str, Any]:
    return {
        "new": [each.as_dict() for each in difference.new],
        "resolved": [each.as_dict() for each in difference.resolved],
    }
