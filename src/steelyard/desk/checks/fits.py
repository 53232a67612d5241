"""Flavors that fit no host, hosts that no flavor reaches, and what nobody offers."""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence

from steelyard import errors
from steelyard.desk.checks.finding import Check, Finding, of_flavor
from steelyard.desk.checks.subject import Subject
from steelyard.desk.fitting import Fitting
from steelyard.desk.wording import listed
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

    @functools.cached_property
    def kinds(self) -> dict[Hashable, HostState]:
        """The first of the hosts of each kind, with nothing on it."""
        kinds: dict[Hashable, HostState] = {}
        for host in self.fitting.emptied_hosts:
            kinds.setdefault(_kind(host), host)
        return kinds

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
                Check.FITS_NO_HOST,
                of_flavor(flavor),
                "it fits no host, not even an empty one"
                + _nearest(reach, flavor, reach.kinds.values()),
                "change the flavor, or give the nearest host what it lacks",
            )
        elif not reach.present[flavor]:
            names = [host.host for host in hosts]
            present = [host for host in reach.fitting.hosts if host.host in set(names)]
            yield Finding(
                Severity.WARNING,
                Check.NO_ROOM,
                of_flavor(flavor),
                f"it would fit {listed(names)} if nothing else was there, and fits no host now"
                + _nearest(reach, flavor, present),
                "make room there, or add hosts of the kind",
            )


def _nearest(reach: Reach, flavor: str, hosts: Iterable[HostState]) -> str:
    """The one of the hosts that lacks least, and what."""
    nearest = min((reach.fitting.missing(flavor, host) for host in hosts), default=None)
    if nearest is None:
        return "; there are no hosts"
    return f"; nearest is {nearest.host!r}, where {nearest}"


def hosts(reach: Reach) -> Iterator[Finding]:
    """Hosts that no flavor reaches, those of a kind together, under the first of them."""
    names_by_kind: dict[Hashable, list[str]] = collections.defaultdict(list)
    for host in reach.unreached if reach.emptied else ():
        names_by_kind[_kind(host)].append(host.host)
    for kind, names in names_by_kind.items():
        first = reach.kinds[kind]
        nearest = min(reach.fitting.missing(flavor, first) for flavor in reach.emptied)
        others = f"; the same with {listed(names[1:])}" if len(names) > 1 else ""
        yield Finding(
            Severity.WARNING,
            Check.UNREACHABLE_HOST,
            f"host {names[0]!r}",
            f"no flavor fits here, not even when nothing else is there; nearest is "
            f"{nearest.flavor!r}: {nearest}{others}",
            "add a flavor that fits, or change the aggregates",
        )


def _kind(host: HostState) -> Hashable:
    """What hosts have in common that differ in nothing but their names."""
    fields = dataclasses.asdict(
        dataclasses.replace(host, host="", uuid="", aggregates=[], instances={})
    )
    fields["aggregates"] = frozenset(aggregate.name for aggregate in host.aggregates)
    return tuple(
        frozenset(value.items()) if isinstance(value, dict) else value for value in fields.values()
    )


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
            Check.NOBODY_OFFERS,
            of_flavor(asked.flavor, asked.written),
            f"no aggregate offers {str(demand.expression)!r} for {demand.key!r}; {there}",
            "offer it in an aggregate, or let the flavor do without by adding '<or> ~'",
        )


def traits(subject: Subject) -> Iterator[Finding]:
    """Extra specs of which no request can be made, and traits both required and forbidden."""
    for flavor in subject.cloud.flavors.values():
        try:
            request = CandidatesRequest.from_flavor(flavor)
        except errors.InvalidQuery as error:
            yield Finding(
                Severity.ERROR,
                Check.MALFORMED_REQUEST,
                of_flavor(flavor.name),
                f"Placement cannot be asked for it: {str(error).partition(chr(10))[0]}",
                "correct the extra spec; until then Nova finds no host for the flavor",
            )
        else:
            yield from _contradictory(flavor.name, request)


def _contradictory(flavor: str, request: CandidatesRequest) -> Iterator[Finding]:
    """Traits that one group of the request requires and another one forbids.

    That is legal, and can be had where the groups come from different providers of a host.
    """
    for (one, group), (other, against) in itertools.permutations(request.groups.items(), 2):
        if one and other and request.group_policy == "isolate":
            continue  # they do come from different ones
        for trait in sorted(group.traits.required & against.traits.forbidden):
            yield Finding(
                Severity.NOTE,
                Check.CONTRADICTORY_TRAITS,
                of_flavor(flavor, f"trait{other}:{trait}"),
                f"the trait is forbidden here, and required by 'trait{one}:{trait}': a host that "
                f"is one provider cannot satisfy both",
                "remove one of them, unless the two come from different providers of a host",
            )
