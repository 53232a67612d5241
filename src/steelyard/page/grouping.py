"""Hosts grouped by aggregate, by failure domain and by cause of rejection."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from steelyard.analysis.suggestions import told
from steelyard.cloud import Aggregate
from steelyard.cloud.host_state import HostState
from steelyard.failure_domains import FailureDomains, Place
from steelyard.findings import Finding
from steelyard.page.matrix import Judged
from steelyard.page.view import HostGroup, ShownCause, Tile

IN_NO_AGGREGATE = "in no aggregate"


@dataclasses.dataclass(frozen=True, slots=True)
class Grouping:
    """Groups or causes, and the indices of their hosts in the list of hosts, by key."""

    members: dict[str, list[int]]
    groups: tuple[HostGroup, ...] = ()
    causes: tuple[ShownCause, ...] = ()


def by_aggregate(hosts: Sequence[Judged], aggregates: Iterable[Aggregate]) -> Grouping:
    """Group the hosts by aggregate, in the order of the aggregates.

    Hosts in no aggregate form the last group, unless there are no aggregates.
    """
    members: dict[Aggregate, list[int]] = {aggregate: [] for aggregate in aggregates}
    ungrouped = []
    for index, host in enumerate(hosts):
        for aggregate in host.state.aggregates:
            members[aggregate].append(index)
        if not host.state.aggregates:
            ungrouped.append(index)
    keyed = {f"a{number}": indices for number, indices in enumerate(members.values())}
    groups = [
        _group(key, aggregate.name, hosts, keyed[key], aggregate)
        for key, aggregate in zip(keyed, members, strict=True)
    ]
    if ungrouped and groups:
        keyed["none"] = ungrouped
        groups.append(_group("none", IN_NO_AGGREGATE, hosts, ungrouped))
    return Grouping(keyed, tuple(groups))


def by_domain(hosts: Sequence[Judged], keys: Sequence[str]) -> Grouping:
    """Group the hosts by the failure domains that the metadata keys name, from near to far.

    Each domain comes before the domains inside it.
    """
    places = FailureDomains(keys).of([host.state for host in hosts]).places
    members: dict[Place, list[int]] = {}
    for index, place in enumerate(places):
        for level in range(1, len(place) + 1):
            members.setdefault(place[:level], []).append(index)
    far_to_near = tuple(reversed(keys))
    keyed = {}
    groups = []
    for number, domain in enumerate(sorted(members, key=_in_text_order)):
        key, level = f"d{number}", len(domain) - 1
        keyed[key] = members[domain]
        name = _domain_name(far_to_near[level], domain[-1])
        groups.append(dataclasses.replace(_group(key, name, hosts, members[domain]), level=level))
    return Grouping(keyed, tuple(groups))


class Tiles:
    """The parts of the map. Each host is in one of them.

    A tile has the hosts of an innermost failure domain. Without failure domains, it has those of an
    aggregate: a host in several aggregates is in the tile of the smallest, a host in none is in the
    last tile.
    """

    def __init__(
        self, hosts: Sequence[HostState], aggregates: Iterable[Aggregate], keys: Sequence[str]
    ) -> None:
        self.all: tuple[Tile, ...]
        self.of_hosts: list[int]
        """The number of each host's tile."""
        if keys:
            self._by_domain(hosts, keys)
        else:
            self._by_aggregate(hosts, list(aggregates))

    def _by_domain(self, hosts: Sequence[HostState], keys: Sequence[str]) -> None:
        places = FailureDomains(keys).of(hosts).places
        ranked = sorted(set(places), key=_in_text_order)
        numbers = {place: number for number, place in enumerate(ranked)}
        names = [list(map(_domain_name, reversed(keys), place)) for place in ranked]
        self.all = tuple(Tile(around[-1], ", ".join(around[:-1])) for around in names)
        self.of_hosts = [numbers[place] for place in places]

    def _by_aggregate(self, hosts: Sequence[HostState], aggregates: Sequence[Aggregate]) -> None:
        sizes = collections.Counter(each for host in hosts for each in host.aggregates)
        smallest = [min(host.aggregates, key=sizes.__getitem__, default=None) for host in hosts]
        shown = [each for each in (*aggregates, None) if each in set(smallest)]
        numbers = {each: number for number, each in enumerate(shown)}
        nowhere = IN_NO_AGGREGATE if aggregates else "all hosts"
        self.all = tuple(Tile(nowhere if each is None else each.name) for each in shown)
        self.of_hosts = [numbers[each] for each in smallest]


def _domain_name(key: str, value: str | None) -> str:
    return f"{key}: {'(missing)' if value is None else value}"


def by_cause(
    hosts: Sequence[Judged], typos: Mapping[tuple[str, str], Sequence[Finding]]
) -> Grouping:
    """Group the rejected hosts by cause, the most frequent first.

    ``typos`` explain causes, given by filter and cause.
    """
    members: dict[tuple[str, str], list[int]] = {}
    for index, host in enumerate(hosts):
        if not host.fits:
            members.setdefault(host.cause, []).append(index)
    ranked = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    return Grouping(
        {f"c{number}": indices for number, (_, indices) in enumerate(ranked)},
        causes=tuple(
            ShownCause(f"c{number}", *cause, len(indices), tuple(told(typos.get(cause, ()))))
            for number, (cause, indices) in enumerate(ranked)
        ),
    )


def keys_of_hosts(count: int, *groupings: Grouping) -> list[tuple[str, ...]]:
    """Return, for each host, the keys of all groups that contain it."""
    found: list[list[str]] = [[] for _ in range(count)]
    for grouping in groupings:
        for key, indices in grouping.members.items():
            for index in indices:
                found[index].append(key)
    return list(map(tuple, found))


def _group(
    key: str,
    name: str,
    hosts: Sequence[Judged],
    members: Sequence[int],
    aggregate: Aggregate | None = None,
) -> HostGroup:
    return HostGroup(
        key,
        name,
        hosts=len(members),
        fit=sum(hosts[index].fits for index in members),
        chosen=any(hosts[index].chosen for index in members),
        metadata={} if aggregate is None else aggregate.metadata,
    )


def _in_text_order(place: Place) -> list[tuple[bool, str]]:
    """Return a sort key that puts unnamed domains last."""
    return [(name is None, name or "") for name in place]
