"""Flavors that fit no host, hosts that no flavor reaches, and what nobody offers."""

import collections
import dataclasses
from collections.abc import Hashable, Iterator, Sequence

from steelyard import errors
from steelyard.desk.checks.finding import Finding, listed, of_flavor
from steelyard.desk.checks.subject import Subject
from steelyard.desk.fitting import Fitting
from steelyard.scheduler import HostState
from steelyard.severity import Severity
from steelyard.traits import CandidatesRequest


@dataclasses.dataclass(frozen=True)
class Reach:
    """Which hosts each flavor reaches, when they are empty and as they are."""

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

    @property
    def unreached(self) -> list[HostState]:
        """The hosts that take no flavor even when they are empty."""
        reached = {host.host for hosts in self.emptied.values() for host in hosts}
        return [host for host in self.fitting.emptied_hosts if host.host not in reached]


def flavors(reach: Reach) -> Iterator[Finding]:
    """Flavors that fit no host: never, or not as the hosts are now."""
    for flavor, hosts in reach.emptied.items():
        if not hosts:
            yield Finding(
                Severity.ERROR,
                "fits-no-host",
                of_flavor(flavor),
                f"it fits no host, not even an empty one{_nearest(reach, flavor, empty=True)}",
                "change the flavor, or the host that comes nearest",
            )
        elif not reach.present[flavor]:
            names = [host.host for host in hosts]
            yield Finding(
                Severity.WARNING,
                "no-room",
                of_flavor(flavor),
                f"{len(names)} hosts would take it if they were empty ({listed(names)}), and none "
                f"does now{_nearest(reach, flavor, empty=False)}",
                "make room there, or add hosts of the kind",
            )


def _nearest(reach: Reach, flavor: str, *, empty: bool) -> str:
    """The host that lacks least, and what."""
    hosts = reach.fitting.emptied_hosts if empty else reach.fitting.hosts
    nearest = min((reach.fitting.missing(flavor, host) for host in hosts), default=None)
    if nearest is None:
        return "; there are no hosts"
    return f"; nearest is {nearest.host!r}, where {nearest}"


def hosts(reach: Reach) -> Iterator[Finding]:
    """Hosts that no flavor reaches, those of a kind together."""
    kinds: dict[Hashable, list[HostState]] = collections.defaultdict(list)
    for host in reach.unreached if reach.emptied else ():
        kinds[_kind(host)].append(host)
    for found in kinds.values():
        nearest = min(reach.fitting.missing(flavor, found[0]) for flavor in reach.emptied)
        yield Finding(
            Severity.WARNING,
            "unreachable-host",
            f"{'hosts' if len(found) > 1 else 'host'} {listed([host.host for host in found])}",
            f"no flavor fits here, not even when nothing else is there; nearest is "
            f"{nearest.flavor!r}: {nearest}",
            "add a flavor that fits, or change the aggregates",
        )


def _kind(host: HostState) -> Hashable:
    """What hosts have in common that differ in nothing but their names."""
    supplies = (host.vcpus_total, host.ram_mb_total, host.disk_gb_total)
    return host.traits, supplies, frozenset(aggregate.name for aggregate in host.aggregates)


def demands(subject: Subject) -> Iterator[Finding]:
    """What a flavor cannot do without, and no aggregate offers."""
    for asked in subject.asked_of_aggregates:
        demand = asked.demand
        offers = subject.offers.get(demand.key, [])
        if demand.lenient or demand.expression.faults or any(map(demand.expression.meets, offers)):
            continue
        values = sorted({str(offer) for offer in offers})
        there = f"offered are {listed(values, most=5)}" if values else "none has the key at all"
        yield Finding(
            Severity.ERROR,
            "nobody-offers",
            of_flavor(asked.flavor, asked.written),
            f"no aggregate offers {str(demand.expression)!r} for {demand.key!r}; {there}",
            "offer it in an aggregate, or let the flavor do without by adding '<or> ~'",
        )


def traits(subject: Subject) -> Iterator[Finding]:
    """Traits that are malformed, or both required and forbidden."""
    for flavor in subject.cloud.flavors.values():
        try:
            request = CandidatesRequest.from_flavor(flavor)
        except errors.InvalidQuery as error:
            yield Finding(
                Severity.ERROR,
                "malformed-request",
                of_flavor(flavor.name),
                f"Placement cannot be asked for it: {str(error).partition(chr(10))[0]}",
                "correct the extra spec; until then the flavor fits no host",
            )
            continue
        required = {
            trait: suffix
            for suffix, group in request.groups.items()
            for trait in group.traits.required
        }
        for suffix, group in request.groups.items():
            for trait in sorted(group.traits.forbidden & required.keys()):
                yield Finding(
                    Severity.WARNING,
                    "contradictory-traits",
                    of_flavor(flavor.name, f"trait{suffix}:{trait}"),
                    f"the trait is required by 'trait{required[trait]}:{trait}' and forbidden "
                    f"here: no host that is one provider has both",
                    "remove one of them, unless the two come from different providers of a host",
                )
