"""Hosts by what they are in: aggregates, and failure domains; and by what they fell to."""

import dataclasses
from collections.abc import Iterable, Sequence

from steelyard.desk.page.matrix import Judged
from steelyard.desk.page.view import Cause, Group
from steelyard.failure_domains import FailureDomains, Place
from steelyard.scheduler.cloud import Aggregate


@dataclasses.dataclass(frozen=True, slots=True)
class Grouping:
    """Groups, or causes, by their keys, each with the places that its hosts have in their list."""

    members: dict[str, list[int]]
    groups: tuple[Group, ...] = ()
    causes: tuple[Cause, ...] = ()


def by_aggregate(hosts: Sequence[Judged], aggregates: Iterable[Aggregate]) -> Grouping:
    """The aggregates, in their order; behind them, if there are any, the hosts in none."""
    members: dict[Aggregate, list[int]] = {aggregate: [] for aggregate in aggregates}
    alone = []
    for index, host in enumerate(hosts):
        for aggregate in host.state.aggregates:
            members[aggregate].append(index)
        if not host.state.aggregates:
            alone.append(index)
    keyed = {f"a{number}": indices for number, indices in enumerate(members.values())}
    groups = [
        _group(key, aggregate.name, hosts, keyed[key], aggregate)
        for key, aggregate in zip(keyed, members, strict=True)
    ]
    if alone and groups:
        keyed["none"] = alone
        groups.append(_group("none", "in no aggregate", hosts, alone))
    return Grouping(keyed, tuple(groups))


def by_domain(hosts: Sequence[Judged], keys: Sequence[str]) -> Grouping:
    """The domains that the metadata keys, from near to far, name; each before those in it."""
    places = FailureDomains([host.state for host in hosts], keys).places
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
        said = "not said" if domain[-1] is None else domain[-1]
        name = f"{far_to_near[level]}: {said}"
        groups.append(dataclasses.replace(_group(key, name, hosts, members[domain]), level=level))
    return Grouping(keyed, tuple(groups))


def by_cause(hosts: Sequence[Judged]) -> Grouping:
    """What hosts were turned away for, the most frequent first."""
    members: dict[tuple[str, str], list[int]] = {}
    for index, host in enumerate(hosts):
        if not host.fits:
            members.setdefault(host.cause, []).append(index)
    ranked = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    return Grouping(
        {f"c{number}": indices for number, (_, indices) in enumerate(ranked)},
        causes=tuple(
            Cause(f"c{number}", *cause, len(indices))
            for number, (cause, indices) in enumerate(ranked)
        ),
    )


def keys_of_hosts(count: int, *groupings: Grouping) -> list[tuple[str, ...]]:
    """For each host the keys of all that it is in."""
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
) -> Group:
    return Group(
        key,
        name,
        hosts=len(members),
        fit=sum(hosts[index].fits for index in members),
        chosen=any(hosts[index].chosen for index in members),
        metadata={} if aggregate is None else aggregate.metadata,
    )


def _in_text_order(place: Place) -> list[tuple[bool, str]]:
    """What is not said comes last."""
    return [(name is None, name or "") for name in place]
