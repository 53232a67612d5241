"""Server groups whose servers are placed against the policy of the group."""

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from steelyard.analysis.fitting import Fitting
from steelyard.cloud import Server
from steelyard.failure_domains import FailureDomains, Place
from steelyard.groups import MAX_SERVER_PER_HOST, Policy, ServerGroup

HOST = "host"
"""The nearest level at which servers are together or apart."""

_Domain = Place
"""A failure domain or a host, by its names from far to near. All hosts are in the domain ()."""


@dataclasses.dataclass(frozen=True, slots=True)
class Offender:
    """A server that is placed against the policy of its group.

    ``better_host`` is a host that the policy prefers and that fits the flavor of the server, for a
    soft policy; None for the others.
    """

    server: Server
    better_host: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    """A server group that violates its policy.

    ``level`` is the farthest level of failure domains at which it does: a metadata key of
    aggregates, or ``host``. Only the servers that violate the policy at this level are listed.
    """

    group: ServerGroup
    level: str
    offenders: tuple[Offender, ...]
    members: int
    """The number of servers in the group."""

    @property
    def hosts(self) -> dict[str, list[Offender]]:
        """The offenders by the host that they are on, most of them first."""
        found: dict[str, list[Offender]] = {}
        for each in self.offenders:
            found.setdefault(each.server.host, []).append(each)
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def violations(fitting: Fitting) -> Iterator[Violation]:
    """Yield the groups that violate their policy, in the order of the cloud.

    A group with a soft policy violates it if one of its servers, moved alone, would fit a host that
    the policy prefers.
    """
    members: dict[str, list[Server]] = {name: [] for name in fitting.cloud.server_groups}
    for server in fitting.cloud.servers.values():
        if server.group is not None:
            members[server.group].append(server)
    targets = _Targets(fitting)
    for name, group in fitting.cloud.server_groups.items():
        servers = members[name]
        if group.policy in _PREFERENCES:
            level, offenders = _Preferences(group.policy, servers, targets).violated()
        else:
            level, offenders = HOST, [Offender(each) for each in _offending(group, servers)]
        if offenders:
            yield Violation(group, level, tuple(offenders), len(servers))


def _offending(group: ServerGroup, servers: Sequence[Server]) -> list[Server]:
    """Return the servers that are together or apart against the hard policy of their group."""
    there = collections.Counter(server.host for server in servers)
    if group.policy is Policy.AFFINITY:
        return list(servers) if len(there) > 1 else []
    most = group.rules.get(MAX_SERVER_PER_HOST, 1)
    return [server for server in servers if there[server.host] > most]


_PREFERENCES = {Policy.SOFT_AFFINITY: 1, Policy.SOFT_ANTI_AFFINITY: -1}
"""The factor that makes a greater number from the number of servers on a preferred host."""


class _Targets:
    """The hosts that fit each flavor, by failure domain.

    The domains are those that the weighers of soft policies compare: hosts without a name at a
    level are in one domain there.
    """

    def __init__(self, fitting: Fitting) -> None:
        self._fitting = fitting
        hosts = fitting.present.hosts
        places: Sequence[Place] = [()] * len(hosts)
        if fitting.failure_domains:
            places = FailureDomains(fitting.failure_domains).of(hosts).places
        self.levels = (*reversed(fitting.failure_domains), HOST)
        """The levels from far to near."""
        self._paths = {
            host.host: (*place, host.host) for host, place in zip(hosts, places, strict=True)
        }
        self._of_flavors: dict[str, Mapping[_Domain, Sequence[_Domain]]] = {}

    def path(self, host: str) -> _Domain:
        """Return the host as the nearest domain of itself."""
        return self._paths[host]

    def of(self, flavor: str) -> Mapping[_Domain, Sequence[_Domain]]:
        """Return the domains that have a host that fits the flavor.

        They are given with such domains in them one level nearer, none for a host.
        """
        if flavor not in self._of_flavors:
            self._of_flavors[flavor] = self._found(flavor)
        return self._of_flavors[flavor]

    def _found(self, flavor: str) -> Mapping[_Domain, Sequence[_Domain]]:
        present = self._fitting.present
        fitting = self._fitting.of(flavor, present, present.hosts)
        nearest = [self._paths[host.host] for host in fitting]
        found: dict[_Domain, Sequence[_Domain]] = dict.fromkeys(nearest, ())
        for _ in self.levels:
            above: dict[_Domain, list[_Domain]] = {}
            for domain in nearest:
                above.setdefault(domain[:-1], []).append(domain)
            found.update(above)
            nearest = list(above)
        return found


class _Best(NamedTuple):
    """The best host in a domain, by the preferences of its domains at each nearer level."""

    preferences: tuple[int, ...]
    host: _Domain


class _Preferences:
    """The placement of the servers of one group with a soft policy.

    ``_counts`` has the servers of the group in each domain that has any.
    """

    def __init__(self, policy: Policy, servers: Sequence[Server], targets: _Targets) -> None:
        self._factor = _PREFERENCES[policy]
        self._servers = servers
        self._targets = targets
        self._counts: collections.Counter[_Domain] = collections.Counter()
        self._occupied: dict[_Domain, dict[_Domain, None]] = {}
        for server in servers:
            path = targets.path(server.host)
            for depth in range(len(path)):
                child = path[: depth + 1]
                self._counts[child] += 1
                self._occupied.setdefault(path[:depth], {})[child] = None
        self._bests: dict[tuple[str, _Domain], list[tuple[_Best, _Domain]]] = {}

    def violated(self) -> tuple[str, list[Offender]]:
        """Return the farthest level with offenders, and the offenders there."""
        found: dict[int, list[Offender]] = {}
        known: dict[tuple[str, str], tuple[int, str] | None] = {}
        for server in self._servers:
            key = server.flavor.name, server.host
            if key not in known:
                known[key] = self._better(*key)
            better = known[key]
            if better is not None:
                level, host = better
                found.setdefault(level, []).append(Offender(server, host))
        levels = self._targets.levels
        farthest = min(found, default=len(levels) - 1)
        return levels[farthest], found.get(farthest, [])

    def _better(self, flavor: str, host: str) -> tuple[int, str] | None:
        """Return the best host for a server on this host, and the first level where they differ.

        None if the policy prefers no other host that fits the flavor.
        """
        path = self._targets.path(host)
        # The server does not count itself.
        own = tuple(
            self._factor * (self._counts[path[: depth + 1]] - 1) for depth in range(len(path))
        )
        best = _Best(own, path)
        for depth in range(len(path)):
            for within, child in self._best_two(flavor, path[:depth]):
                # Hosts in the server's own domain at this level are compared at the next one.
                if child != path[: depth + 1]:
                    preferences = own[:depth] + within.preferences
                    if preferences > best.preferences:
                        best = _Best(preferences, within.host)
                    break
        if best.host == path:
            return None
        differing = zip(best.preferences, own, strict=True)
        level = next(level for level, (one, other) in enumerate(differing) if one != other)
        return level, str(best.host[-1])

    def _best_two(self, flavor: str, domain: _Domain) -> list[tuple[_Best, _Domain]]:
        """Return the best hosts in two domains one level nearer, the best first.

        Each is given with its domain. All servers of the group count.
        """
        key = flavor, domain
        if key not in self._bests:
            fitting = self._targets.of(flavor)
            occupied = self._occupied.get(domain, {})
            children = [child for child in occupied if child in fitting]
            empty = (child for child in fitting.get(domain, ()) if child not in occupied)
            # All domains without servers of the group are equal: the first stands for them.
            children += [child for child in [next(empty, None)] if child is not None]
            found = [(self._best(flavor, child), child) for child in children]
            self._bests[key] = sorted(found, key=_by_preference, reverse=True)[:2]
        return self._bests[key]

    def _best(self, flavor: str, domain: _Domain) -> _Best:
        """Return the best host in the domain, with the preference of the domain before those."""
        preference = self._factor * self._counts[domain]
        for best, _ in self._best_two(flavor, domain):
            return _Best((preference, *best.preferences), best.host)
        return _Best((preference,), domain)


def _by_preference(each: tuple[_Best, _Domain]) -> tuple[int, ...]:
    best, _ = each
    return best.preferences
