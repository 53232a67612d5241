"""Checks for flavors that fit no host, unreachable hosts, and demands that no aggregate meets."""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from steelyard import errors
from steelyard.analysis.checks.checked_cloud import CheckedCloud
from steelyard.analysis.fitting import Fitting, Missing
from steelyard.cloud.host_state import HostState
from steelyard.findings import Check, Finding, Severity, Subject, SubjectKind
from steelyard.text.wording import listed
from steelyard.traits import CandidatesRequest


@dataclasses.dataclass(frozen=True)
class Reach:
    """The hosts that fit each flavor, as they are and as if empty."""

    fitting: Fitting
    emptied: dict[str, list[HostState]]
    present: dict[str, list[HostState]]

    @classmethod
    def of(cls, fitting: Fitting, flavors: Sequence[str]) -> "Reach":
        return cls(
            fitting,
            {flavor: fitting.of(flavor, fitting.emptied_hosts) for flavor in flavors},
            {flavor: fitting.of(flavor, fitting.hosts) for flavor in flavors},
        )

    @functools.cached_property
    def kinds(self) -> dict[Hashable, HostState]:
        """The first host of each kind, as if empty."""
        kinds: dict[Hashable, HostState] = {}
        for host in self.fitting.emptied_hosts:
            kinds.setdefault(_kind(host), host)
        return kinds

    @property
    def unreached(self) -> list[HostState]:
        """The hosts that fit no flavor even when they are empty."""
        reached = {host.host for hosts in self.emptied.values() for host in hosts}
        return [host for host in self.fitting.emptied_hosts if host.host not in reached]


def flavors(reach: Reach) -> Iterator[Finding]:
    """Yield each flavor that fits no host, or fits only hosts that are full."""
    for flavor, hosts in reach.emptied.items():
        if not hosts:
            nearest = _nearest(reach, flavor, reach.kinds.values())
            yield Finding(
                Severity.ERROR,
                Check.FITS_NO_HOST,
                Subject(SubjectKind.FLAVOR, flavor),
                f"it fits no host, not even an empty one{_described(nearest)}",
                "change the flavor, or give the nearest host what it lacks",
                details=_nearest_host(nearest),
            )
        elif not reach.present[flavor]:
            names = [host.host for host in hosts]
            present = [host for host in reach.fitting.hosts if host.host in set(names)]
            nearest = _nearest(reach, flavor, present)
            yield Finding(
                Severity.WARNING,
                Check.NO_ROOM,
                Subject(SubjectKind.FLAVOR, flavor),
                f"it would fit {listed(names)} if empty, but fits no host now{_described(nearest)}",
                "free capacity there, or add similar hosts",
                details={"hosts": names, **_nearest_host(nearest)},
            )


def _nearest(reach: Reach, flavor: str, hosts: Iterable[HostState]) -> Missing | None:
    """Return the missing parts of the nearest host; None if there are no hosts."""
    return min((reach.fitting.missing(flavor, host) for host in hosts), default=None)


def _described(nearest: Missing | None) -> str:
    if nearest is None:
        return "; there are no hosts"
    return f"; nearest is {nearest.host!r}: {nearest}"


def _nearest_host(nearest: Missing | None) -> dict[str, Any]:
    if nearest is None:
        return {"nearest_host": None, "reasons": []}
    return {"nearest_host": nearest.host, "reasons": nearest.reasons}


def hosts(reach: Reach) -> Iterator[Finding]:
    """Yield one finding per kind of host that fits no flavor, on the first host of the kind."""
    names_by_kind: dict[Hashable, list[str]] = collections.defaultdict(list)
    for host in reach.unreached if reach.emptied else ():
        names_by_kind[_kind(host)].append(host.host)
    for kind, names in names_by_kind.items():
        first = reach.kinds[kind]
        nearest = min(reach.fitting.missing(flavor, first) for flavor in reach.emptied)
        others = f"; the same applies to {listed(names[1:])}" if len(names) > 1 else ""
        yield Finding(
            Severity.WARNING,
            Check.UNREACHABLE_HOST,
            Subject(SubjectKind.HOST, names[0]),
            f"no flavor fits the host, even if it is empty; nearest is {nearest.flavor!r}: "
            f"{nearest}{others}",
            "add a flavor that fits, or change the aggregates",
            details={
                "hosts": names,
                "nearest_flavor": nearest.flavor,
                "reasons": nearest.reasons,
            },
        )


def _kind(host: HostState) -> Hashable:
    """Return a key that is equal for hosts that differ only in their names."""
    fields = dataclasses.asdict(
        dataclasses.replace(host, host="", uuid="", aggregates=[], instances={})
    )
    fields["aggregates"] = frozenset(aggregate.name for aggregate in host.aggregates)
    return tuple(
        frozenset(value.items()) if isinstance(value, dict) else value for value in fields.values()
    )


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
