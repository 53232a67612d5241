"""The answers of Nova's filters for the hosts that Placement selects."""

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from steelyard import plugins
from steelyard.analysis.suggestions import Suggestions, told
from steelyard.analysis.why.facts import Facts, KnownHost
from steelyard.analysis.why.novas_filters import NovasFilters
from steelyard.analysis.why.placement_view import CandidateRoot, ClassUsage
from steelyard.cloud import Cloud, Host, Server
from steelyard.cloud.host_state import HostState, Request, host_states
from steelyard.filters.base import FILTERS
from steelyard.groups import MAX_SERVER_PER_HOST, Policy, ServerGroup
from steelyard.resources import FIELDS
from steelyard.verdict import Verdict

_NEAREST = 5


@dataclasses.dataclass(frozen=True, slots=True)
class FilterCause:
    """The number of hosts that one filter rejects for one cause, with possible typos."""

    filter: str
    cause: str
    hosts: int
    possible_typos: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class NearHost:
    """A host that only few filters reject, with their names and reasons."""

    host: str
    reasons: Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Filtering:
    """The answers of the filters for one request.

    A host is counted for each of its causes, also for those of filters that Nova would not ask any
    more, because all of them must be mended.
    """

    hosts: int
    """The number of hosts that were examined."""
    fitting: Sequence[str]
    causes: Sequence[FilterCause]
    nearest: Sequence[NearHost]
    """The rejected hosts with the fewest reasons."""
    room: int
    """The number of servers that fit, at most as many as were requested."""


def filtered(
    facts: Facts,
    roots: Mapping[str, CandidateRoot],
    filters: NovasFilters,
    amounts: Sequence[Mapping[str, int]],
) -> Filtering:
    """Return the answers for the hosts of these root providers.

    ``amounts`` has the amounts that one server uses of the root provider, for each request that
    Nova sends. Nova ignores providers without a
    host, so they are left out if the hosts are known.
    """
    known = _known(facts, roots)
    cloud = _cloud(facts, known, roots)
    services = {each.name: each.service for each in known}
    states = _with_servers(host_states(cloud), facts, services)
    request = Request(facts.wanted.flavor, _on_nodes(facts.wanted.group, services))
    rejected = list(_rejected(states, request, filters))
    reasons: dict[str, list[tuple[str, str]]] = {}
    for name, state, verdict in rejected:
        reasons.setdefault(state.host, []).append((name, verdict.reason))
    fitting = [state.host for state in states if state.host not in reasons]
    near = sorted(reasons.items(), key=lambda item: (len(item[1]), item[0]))
    by_name = {cloud.hosts[state.host].uuid: state.host for state in states}
    free = {by_name[uuid]: roots[uuid].supplies for uuid in roots if uuid in by_name}
    return Filtering(
        len(states),
        fitting,
        _causes(rejected, Suggestions(cloud, filters.applied.values()), request),
        [NearHost(host, found) for host, found in near[:_NEAREST]],
        _room({host: _free(free[host], amounts) for host in fitting}, facts, services),
    )


def _known(facts: Facts, roots: Mapping[str, CandidateRoot]) -> list[KnownHost]:
    """Return the hosts of the root providers that Nova examines.

    If the requested host has several nodes, Nova does not name it to Placement, and drops the nodes
    of other hosts itself.
    """
    if facts.hosts is None:
        return [KnownHost(name=each.name or uuid, uuid=uuid) for uuid, each in roots.items()]
    nodes = [each for each in facts.hosts if each.is_named(facts.wanted.host)]
    return [each for each in (nodes if len(nodes) > 1 else facts.hosts) if each.uuid in roots]


def _on_nodes(group: ServerGroup | None, services: Mapping[str, str]) -> ServerGroup | None:
    """Return the group with all hosts of its services, because Nova compares services."""
    if group is None:
        return None
    names = (name for name, service in services.items() if service in group.hosts)
    unknown = group.hosts.difference(services.values())
    return dataclasses.replace(group, hosts=unknown.union(names))


def _cloud(facts: Facts, known: Sequence[KnownHost], roots: Mapping[str, CandidateRoot]) -> Cloud:
    """Return the hosts as a cloud, with the requested flavor."""
    hosts = {each.name: _host(each, roots[each.uuid]) for each in known}
    aggregates = {
        f"{number} {each.name}": dataclasses.replace(
            each, hosts=tuple(name for name in each.hosts if name in hosts)
        )
        for number, each in enumerate(facts.aggregates or ())
    }
    flavor = facts.wanted.flavor
    return Cloud(hosts, aggregates, {flavor.name: flavor})


def _host(known: KnownHost, root: CandidateRoot) -> Host:
    """Return the host with the capacity that Placement counts, after reservation and ratios."""
    supplies = dict(root.supplies)
    own = {field: supplies.pop(name, ClassUsage(0, 0)) for name, field in FIELDS.items()}
    return Host(
        known.name,
        own["vcpus"].capacity,
        own["ram_mb"].capacity,
        own["disk_gb"].capacity,
        traits=root.traits,
        uuid=known.uuid,
        used={
            **{field: each.used for field, each in own.items()},
            **{name: each.used for name, each in supplies.items()},
        },
        resources={name: each.capacity for name, each in supplies.items()},
        out_of_service=known.out_of_service,
    )


def _with_servers(
    states: Sequence[HostState], facts: Facts, services: Mapping[str, str]
) -> list[HostState]:
    """Return the states with the servers of the request's group and hints on their services."""
    flavor = facts.wanted.flavor
    servers: dict[str, dict[str, Server]] = {}
    for uuid, host in facts.server_hosts.items():
        servers.setdefault(host, {})[uuid] = Server(uuid, uuid, flavor, host)
    return [
        dataclasses.replace(state, instances=servers[services[state.host]])
        if services[state.host] in servers
        else state
        for state in states
    ]


def _rejected(
    states: Sequence[HostState], request: Request, filters: NovasFilters
) -> Iterator[tuple[str, HostState, Verdict]]:
    """Yield each rejection by each filter, also of hosts that a filter before it rejects."""
    for name, filter_ in filters.applied.items():
        with plugins.blamed(FILTERS, name):
            found = filter_.rejections_all(states, request)
            for state, verdicts in zip(states, found, strict=True):
                for verdict in verdicts:
                    yield name, state, verdict


def _causes(
    rejected: Sequence[tuple[str, HostState, Verdict]], suggestions: Suggestions, request: Request
) -> list[FilterCause]:
    """Return the causes, the most frequent first."""
    counts = collections.Counter(
        dict.fromkeys((name, verdict.cause, state.host) for name, state, verdict in rejected)
    )
    hosts = collections.Counter((name, cause) for name, cause, _ in counts)
    typos = suggestions.by_cause(request.flavor, rejected)
    ranked = sorted(hosts.items(), key=lambda item: (-item[1], item[0]))
    return [
        FilterCause(name, cause, count, tuple(told(typos.get((name, cause), ()))))
        for (name, cause), count in ranked
    ]


def _free(supplies: Mapping[str, ClassUsage], amounts: Sequence[Mapping[str, int]]) -> int | None:
    """Return how many servers the free amounts suffice for; None if nothing limits them.

    The host may serve any of the requests, so the one for most servers counts.
    """
    rooms = []
    for each in amounts:
        limits = [
            max(supplies[name].capacity - supplies[name].used, 0) // amount
            for name, amount in each.items()
            if amount and name in supplies
        ]
        if limits:
            rooms.append(min(limits))
    return max(rooms, default=None)


def _room(rooms: Mapping[str, int | None], facts: Facts, services: Mapping[str, str]) -> int:
    """Return how many of the requested servers fit on hosts with room for these numbers."""
    wanted, group = facts.wanted.count, facts.wanted.group
    each: collections.Counter[str] = collections.Counter()
    for name, room in rooms.items():
        each[services[name]] += wanted if room is None else room
    if group is not None and group.policy is Policy.AFFINITY:
        return min(max(each.values(), default=0), wanted)
    if group is not None and group.policy is Policy.ANTI_AFFINITY:
        most = group.rules.get(MAX_SERVER_PER_HOST, 1)
        here = collections.Counter(
            host for uuid, host in facts.server_hosts.items() if uuid in group.members
        )
        return min(sum(min(room, most - here[host]) for host, room in each.items()), wanted)
    return min(each.total(), wanted)
