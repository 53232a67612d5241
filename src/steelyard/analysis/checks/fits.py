"""Checks for flavors that fit no host, unreachable hosts, and demands that no aggregate meets."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard import errors
from steelyard.analysis.checks.checked_cloud import CheckedCloud
from steelyard.analysis.fitting import Fitting, Missing
from steelyard.analysis.kinds import HostKinds
from steelyard.analysis.progress import Watching, unwatched
from steelyard.cloud.host_state import HostState, by_kind
from steelyard.findings import Check, Finding, Severity, Subject, SubjectKind
from steelyard.text.wording import listed
from steelyard.traits import CandidatesRequest


def flavors(fitting: Fitting, names: Iterable[str]) -> Iterator[Finding]:
    """Yield each flavor that fits no host, or fits only hosts that are full."""
    present = {host.host: host for host in fitting.present.hosts}
    for flavor in names:
        if not fitting.any(flavor, fitting.emptied):
            everywhere = fitting.emptied.hosts
            nearest = _nearest(fitting, flavor, fitting.emptied, everywhere)
            yield Finding(
                Severity.ERROR,
                Check.FITS_NO_HOST,
                Subject(SubjectKind.FLAVOR, flavor),
                f"it fits no host, not even an empty one{_described(nearest)}",
                "change the flavor, or give the nearest host what it lacks"
                if nearest
                else "add hosts to the cloud",
                details=_nearest_host(nearest),
            )
        elif not fitting.any(flavor, fitting.present):
            empty = fitting.of(flavor, fitting.emptied, fitting.emptied.hosts)
            hosts = [host.host for host in empty]
            full = [present[host] for host in hosts]
            nearest = _nearest(fitting, flavor, fitting.present, full)
            yield Finding(
                Severity.WARNING,
                Check.NO_ROOM,
                Subject(SubjectKind.FLAVOR, flavor),
                f"it would fit {listed(hosts)} if empty, but fits no host now{_described(nearest)}",
                "free capacity there, or add similar hosts",
                details={"hosts": hosts, **_nearest_host(nearest)},
            )


def _nearest(
    fitting: Fitting, flavor: str, kinds: HostKinds, hosts: Sequence[HostState]
) -> Missing | None:
    """Return the missing parts of the nearest host; None if there are no hosts."""
    if not hosts:
        return None
    candidates = fitting.candidates(flavor, kinds, hosts)
    return fitting.nearest(candidates, lambda position: (flavor, hosts[position]))


def _described(nearest: Missing | None) -> str:
    if nearest is None:
        return "; there are no hosts"
    return f"; nearest is {nearest.host!r}: {nearest}"


def _nearest_host(nearest: Missing | None) -> dict[str, Any]:
    if nearest is None:
        return {"nearest_host": None, "reasons": []}
    return {"nearest_host": nearest.host, "reasons": nearest.reasons}


def hosts(
    fitting: Fitting, flavors: Sequence[str], watch: Watching = unwatched
) -> Iterator[Finding]:
    """Yield one finding per kind of host that fits no flavor, on the first host of the kind."""
    alike = by_kind(_unreached(fitting, flavors))
    firsts = [group[0] for group in alike]
    candidates = [
        fitting.candidates(flavor, fitting.emptied, firsts, number * len(firsts))
        for number, flavor in enumerate(flavors)
    ]
    by_group = list(zip(alike, zip(*candidates, strict=True), strict=False))

    def at(position: int) -> tuple[str, HostState]:
        flavor, host = divmod(position, len(firsts))
        return flavors[flavor], firsts[host]

    for group, of_flavors in watch(by_group, "kinds of hosts"):
        nearest = fitting.nearest(of_flavors, at)
        yield unreachable([host.host for host in group], nearest.flavor, nearest.reasons)


def unreachable(hosts: list[str], nearest_flavor: str, reasons: list[str]) -> Finding:
    """Return the finding about hosts of one kind that no flavor fits."""
    others = f"; the same applies to {listed(hosts[1:])}" if len(hosts) > 1 else ""
    return Finding(
        Severity.WARNING,
        Check.UNREACHABLE_HOST,
        Subject(SubjectKind.HOST, hosts[0]),
        f"no flavor fits the host, even if it is empty; nearest is {nearest_flavor!r}: "
        f"{'; and '.join(reasons)}{others}",
        "add a flavor that fits, or change the aggregates",
        details={"hosts": hosts, "nearest_flavor": nearest_flavor, "reasons": reasons},
    )


def _unreached(fitting: Fitting, flavors: Sequence[str]) -> list[HostState]:
    """Return the hosts that fit no flavor even when they are empty; none without flavors."""
    unreached = fitting.emptied.hosts if flavors else []
    for flavor in flavors:
        reached = set(fitting.of(flavor, fitting.emptied, unreached))
        unreached = [host for host in unreached if host not in reached]
    return unreached


def demands(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield each extra spec that a flavor requires and no aggregate offers."""
    for asked in checked.asked_of_aggregates:
        demand = asked.demand
        offers = checked.offers.get(demand.key, [])
        if demand.lenient or demand.expression.faults or any(map(demand.expression.meets, offers)):
            continue
        values = sorted({str(offer) for offer in offers})
        there = f"offered: {listed(values, most=5)}" if values else "none has the key"
        yield Finding(
            Severity.ERROR,
            Check.NOT_OFFERED,
            asked.subject,
            f"no aggregate offers {str(demand.expression)!r} for {demand.key!r}; {there}",
            "offer it in an aggregate, or make the key optional by adding '<or> ~'",
            details={"value": demand.expression.text, "offered": values},
        )


def traits(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield extra specs that make no valid request, and traits both required and forbidden."""
    for flavor in checked.cloud.flavors.values():
        try:
            request = CandidatesRequest.from_flavor(flavor)
        except errors.InvalidQuery as error:
            yield Finding(
                Severity.ERROR,
                Check.MALFORMED_REQUEST,
                Subject(SubjectKind.FLAVOR, flavor.name),
                f"no valid request to Placement: {error.message}",
                "correct the extra spec; until then Nova finds no host for the flavor",
            )
        else:
            yield from _contradictory(flavor.name, request)


def _contradictory(flavor: str, request: CandidatesRequest) -> Iterator[Finding]:
    """Yield each trait that one group of the request requires and another one forbids.

    Such a request is valid: different providers of a host may serve the groups.
    """
    for (one, group), (other, against) in itertools.permutations(request.groups.items(), 2):
        if one and other and request.group_policy == "isolate":
            continue  # different providers serve the groups
        for trait in sorted(group.traits.required & against.traits.forbidden):
            yield Finding(
                Severity.NOTE,
                Check.CONTRADICTORY_TRAITS,
                Subject(SubjectKind.FLAVOR, flavor, f"trait{other}:{trait}"),
                f"the trait is forbidden here, and required by 'trait{one}:{trait}': a host that "
                f"is one provider cannot satisfy both",
                "remove one of them, unless the two come from different providers of a host",
                details={"required_by": f"trait{one}:{trait}"},
            )
