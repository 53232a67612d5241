"""Weighers for the server group policies ``soft-affinity`` and ``soft-anti-affinity``."""

import abc
import collections
import itertools
import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, cast

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard.attributes import read, read_all
from steelyard.failure_domains import FailureDomains, HostPlaces, Place
from steelyard.groups import Policy
from steelyard.weighers import base

__all__ = ["ServerGroupSoftAffinityWeigher", "ServerGroupSoftAntiAffinityWeigher"]

LOG = logging.getLogger(__name__)

# With at least as many hosts for each server of the group, most hosts have none of them.
_HOSTS_PER_MEMBER = 20


class _SoftWeigher(base.Weigher):
    """A weigher that counts the group's servers on each host, without the one being placed."""

    policy: ClassVar[Policy]
    multiplier_key: ClassVar[str]

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        group = options.register(conf)
        self._multiplier = options.Latest(group, self.multiplier_key)
        self._domains: FailureDomains | None = None
        if group.failure_domains:
            self._domains = FailureDomains(group.failure_domains, self._warn_once)

    def by_kind(self, request: object) -> bool:
        return bool(read(read(request, "instance_group"), "policy") != self.policy)

    def keys_without_members(self, hosts: Sequence[object]) -> Sequence[Hashable]:
        if self._domains is None:
            return [()] * len(hosts)
        return self._domains.of(hosts).naming

    def multiplier(self) -> float:
        return float(self._multiplier())

    def weigh_objects(
        self, weighed_hosts: Sequence[base.WeighedHostLike], request: object
    ) -> list[float]:
        hosts = [each.obj for each in weighed_hosts]
        self.keep_multipliers(hosts)
        group = read(request, "instance_group")
        if read(group, "policy") != self.policy:
            return [0.0] * len(hosts)
        others = _others(group, request)
        weights = _counts(others, read_all(hosts, "instances"))
        if self._domains is not None:
            unseen = _unseen_hosts(hosts, len(others) - sum(weights), group, request)
            weights = _ranks(self._domains.of(hosts), weights, unseen)
        return self._preference(weights)

    def _weigh_object(self, host: object, request: object) -> float:
        """Return the weight by the servers on this host alone, without failure domains.

        Domains can be compared only with all hosts, in ``weigh_objects``.
        """
        group = read(request, "instance_group")
        if read(group, "policy") != self.policy:
            return 0.0
        (weight,) = self._preference(_counts(_others(group, request), [read(host, "instances")]))
        return weight

    @abc.abstractmethod
    def _preference(self, counts: list[int]) -> list[float]:
        """Return the weights of hosts with these numbers of the group's servers."""

    def _warn_once(self, message: str) -> None:
        if self._first_time(message):
            LOG.warning("%s", message)


class ServerGroupSoftAffinityWeigher(_SoftWeigher):
    """A weigher that prefers hosts with more servers of a ``soft-affinity`` group."""

    policy = Policy.SOFT_AFFINITY
    multiplier_key = "soft_affinity_weight_multiplier"

    def _preference(self, counts: list[int]) -> list[float]:
        return [*counts]


class ServerGroupSoftAntiAffinityWeigher(_SoftWeigher):
    """A weigher that prefers hosts with fewer servers of a ``soft-anti-affinity`` group."""

    policy = Policy.SOFT_ANTI_AFFINITY
    multiplier_key = "soft_anti_affinity_weight_multiplier"

    def _preference(self, counts: list[int]) -> list[float]:
        return list(map(operator.neg, counts))


def _ranks(hosts: HostPlaces, counts: Sequence[int], unseen: set[str]) -> list[int]:
    """Return the rank of each host by the group's servers in its domains.

    Hosts are ordered by the servers in their farthest domain, then in nearer ones, and last on the
    host itself. The weights are ranks, so a difference at any level changes them by at least 1.
    """
    some = list(itertools.compress(range(len(counts)), counts))
    of_places: collections.Counter[int] = collections.Counter()
    for index in some:
        of_places[hosts.numbers[index]] += counts[index]
    members = _members_by_domain(
        {hosts.distinct[number]: count for number, count in of_places.items()},
        collections.Counter(hosts.places_of(unseen)),
    )
    totals = [tuple(members[domain] for domain in _domains(place)) for place in hosts.distinct]
    # Most hosts have none of the servers: their ranks are computed by place.
    without = collections.Counter(hosts.numbers)
    without.subtract(hosts.numbers[index] for index in some)
    keys = {(*totals[number], 0) for number, count in without.items() if count}
    keys.update((*totals[hosts.numbers[index]], counts[index]) for index in some)
    rank_of = {key: rank for rank, key in enumerate(sorted(keys))}
    rank_without = [rank_of.get((*each, 0), 0) for each in totals]
    ranks = list(map(rank_without.__getitem__, hosts.numbers))
    for index in some:
        ranks[index] = rank_of[*totals[hosts.numbers[index]], counts[index]]
    return ranks


def _others(group: object, request: object) -> set[str]:
    """Return the group's servers without the one that is being placed."""
    others = set(read(group, "members") or ())
    others.discard(read(request, "instance_uuid"))
    return others


def _counts(others: set[str], instances: Sequence[Mapping[str, object] | None]) -> list[int]:
    """Return how many of the other servers each host has."""
    try:
        there = cast(Sequence[Mapping[str, object]], instances)
        if len(others) * _HOSTS_PER_MEMBER > len(there):
            return list(map(len, map(others.intersection, there)))
        # Most hosts have none of the servers, and this is known without a set for each host.
        counts = [0] * len(there)
        some = map(operator.not_, map(others.isdisjoint, there))
        for index in itertools.compress(itertools.count(), some):
            counts[index] = len(others.intersection(there[index]))
        return counts
    except TypeError:  # a host has no instances
        return [len(others.intersection(each or ())) for each in instances]


def _unseen_hosts(
    hosts: Sequence[object], unseen_members: int, group: object, request: object
) -> set[str]:
    """Return the group's hosts that are not candidates but have one of its other servers.

    ``unseen_members`` is the number of other servers that are on no candidate. The group's hosts
    may include the one that the server is moved from, which the request ignores and lists first. If
    there are more hosts than such servers, the first ignored hosts are left out.
    """
    if unseen_members <= 0:
        return set()
    unseen = set(read(group, "hosts") or ()).difference(read_all(hosts, "host"))
    left = [host for host in read(request, "ignore_hosts") or () if host in unseen]
    return unseen.difference(left[: max(len(unseen) - unseen_members, 0)])


def _members_by_domain(
    counts: Mapping[Place, int], unseen: Mapping[Place, int]
) -> collections.Counter[Place]:
    """Return the servers in each domain, from the servers in each place."""
    members: collections.Counter[Place] = collections.Counter()
    for place, count in counts.items():
        for domain in _domains(place):
            members[domain] += count
    for place, count in unseen.items():
        for domain in _domains(place):
            if domain[-1] is not None:  # else it is not known which domain it is
                members[domain] += count
    return members


def _domains(place: Place) -> list[Place]:
    """Return the domains of the place, from far to near."""
    return [place[:depth] for depth in range(1, len(place) + 1)]
