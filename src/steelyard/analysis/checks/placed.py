"""Checks of placed servers: their groups, their hosts, and the capacity of these hosts."""

import math
from collections.abc import Iterator

from steelyard.analysis.fitting import Fitting
from steelyard.analysis.group_violations import HOST, Violation, violations
from steelyard.analysis.placed_servers import Excess, misplaced, overcommitted
from steelyard.findings import Check, Finding, Severity, Subject, SubjectKind
from steelyard.groups import MAX_SERVER_PER_HOST, Policy, ServerGroup
from steelyard.resources import kind, quantity
from steelyard.text.wording import counted, listed

_MOST_SHOWN = 3


def groups(fitting: Fitting) -> Iterator[Finding]:
    """Yield each server group that violates its policy."""
    for each in violations(fitting):
        group = each.group
        is_soft = group.policy in (Policy.SOFT_AFFINITY, Policy.SOFT_ANTI_AFFINITY)
        yield Finding(
            Severity.WARNING if is_soft else Severity.ERROR,
            Check.GROUP_VIOLATION,
            Subject(SubjectKind.GROUP, group.name),
            f"policy {str(group.policy)!r}: {_described(each)}",
            _remedy(group),
            details={
                "policy": str(group.policy),
                "level": each.level,
                "hosts": list(each.hosts),
                "servers": [
                    {
                        "server": offender.server.name,
                        "uuid": offender.server.uuid,
                        "host": offender.server.host,
                        "better_host": offender.better_host,
                    }
                    for offender in each.offenders
                ],
            },
        )


def _remedy(group: ServerGroup) -> str:
    match group.policy:
        case Policy.AFFINITY:
            return "move the servers to one host"
        case Policy.ANTI_AFFINITY:
            most = counted(_most(group), "server")
            return f"move servers until no host has more than {most} of the group"
        case Policy.SOFT_AFFINITY:
            return "move one server after the other, each to a host with more of the others"
        case Policy.SOFT_ANTI_AFFINITY:
            return "move one server after the other, each to a host with fewer of the others"


def _most(group: ServerGroup) -> int:
    """Return the number of servers that the policy ``anti-affinity`` permits on a host."""
    return group.rules.get(MAX_SERVER_PER_HOST, 1)


def _described(violation: Violation) -> str:
    group, hosts = violation.group, violation.hosts
    if group.policy is Policy.AFFINITY:
        there = _shown([f"{len(servers)} on {host!r}" for host, servers in hosts.items()])
        return f"its servers are on {counted(len(hosts), 'host')}: {there}"
    if group.policy is Policy.ANTI_AFFINITY:
        there = _shown(
            [
                f"{host!r} has {listed([each.server.name for each in servers])}"
                for host, servers in hosts.items()
            ]
        )
        return f"more than {counted(_most(group), 'server')} on a host: {there}"
    first = violation.offenders[0]
    better = "more" if group.policy is Policy.SOFT_AFFINITY else "fewer"
    where = "a host" if violation.level == HOST else f"another {violation.level!r}"
    return (
        f"{len(violation.offenders)} of {counted(violation.members, 'server')} would fit "
        f"{where} with {better} of the others: {first.server.name!r} on {first.server.host!r} "
        f"would fit {first.better_host!r}"
    )


def _shown(parts: list[str]) -> str:
    more = len(parts) - _MOST_SHOWN
    return "; ".join(parts[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def servers(fitting: Fitting) -> Iterator[Finding]:
    """Yield each server whose host would reject its flavor today."""
    for each in misplaced(fitting):
        server = each.server
        yield Finding(
            Severity.WARNING,
            Check.MISPLACED_SERVER,
            Subject(SubjectKind.SERVER, server.name),
            f"it is on {server.host!r}, which would reject flavor {server.flavor.name!r} even if "
            f"the host were empty: {each.verdict.reason}",
            "move the server to another host, or correct the flavor or the host's aggregates",
            details={
                "uuid": server.uuid,
                "flavor": server.flavor.name,
                "host": server.host,
                "reason": each.verdict.reason,
            },
        )


def hosts(fitting: Fitting) -> Iterator[Finding]:
    """Yield each host with more allocated than it has."""
    for each in overcommitted(fitting):
        yield Finding(
            Severity.WARNING,
            Check.OVERCOMMITTED_HOST,
            Subject(SubjectKind.HOST, each.host),
            f"more is allocated than the host has: {', '.join(map(_excess, each.excesses))}",
            "move servers to other hosts, or correct the host's amounts or allocation ratios",
            details={
                "resources": [
                    {
                        "resource_class": excess.resource_class,
                        "allocated": excess.allocated,
                        "limit": excess.limit,
                    }
                    for excess in each.excesses
                ]
            },
        )


def _excess(excess: Excess) -> str:
    # Rounded in opposite directions, so that the two amounts never read the same.
    allocated = quantity(excess.resource_class, excess.allocated, math.ceil)
    limit = quantity(excess.resource_class, excess.limit, math.floor)
    shown = allocated.number if allocated.unit == limit.unit else allocated
    return f"{kind(excess.resource_class)}: {shown} of {limit}"
