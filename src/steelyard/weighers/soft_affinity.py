"""Hosts by how many servers of the group they have: soft affinity and soft anti-affinity."""

import abc
import collections
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard.attributes import read, read_all
from steelyard.failure_domains import FailureDomains, Place
from steelyard.groups import Policy
from steelyard.weighers import base

LOG = logging.getLogger(__name__)


class _SoftWeigher(base.Weigher):
    """Counts the group's servers on each host, without the one that is being placed."""

    policy: ClassVar[Policy]
    multiplier_key: ClassVar[str]

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        group = options.register(conf)
        self._multiplier = options.Latest(group, self.multiplier_key)
        self._levels = tuple(group.failure_domains)

    def multiplier(self) -> float:
        return float(self._multiplier())

    def weigh_objects(
        self, weighed_hosts: Sequence[base.WeighedHost], request: object
    ) -> list[float]:
        hosts = [each.obj for each in weighed_hosts]
        self.keep_multipliers(hosts)
        group = read(request, "instance_group")
        if read(group, "policy") != self.policy:
            return [0.0] * len(hosts)
        others = _others(group, request)
        weights = _counts(others, read_all(hosts, "instances"))
        if self._levels:
            unseen = _unseen_hosts(hosts, len(others) - sum(weights), group, request)
            weights = self._ranks(hosts, weights, unseen)
        return self._preference(weights)

    def _weigh_object(self, host: object, request: object) -> float:
        """The count on this host; which domains are fuller, only ``weigh_objects`` can tell."""
        group = read(request, "instance_group")
        if read(group, "policy") != self.policy:
            return 0.0
        (weight,) = self._preference(_counts(_others(group, request), [read(host, "instances")]))
        return weight

    @abc.abstractmethod
    def _preference(self, counts: list[int]) -> list[float]:
        """The weights of hosts with so many of the group's servers."""

    def _ranks(self, hosts: Sequence[object], counts: Sequence[int], unseen: set[str]) -> list[int]:
        """The hosts' places in the order of (farthest domain, …, nearest domain, host).

        Ranks, not sums: a step at any level then weighs the same, and enough to be felt.
        """
        domains = FailureDomains(hosts, self._levels, self._warn_once)
        members = _members_by_domain(domains.places, counts, domains.places_of(unseen))
        totals = {
            place: tuple(members[domain] for domain in _domains(place))
            for place in set(domains.places)
        }
        fullness = zip(domains.places, counts, strict=True)
        keys = [(*totals[place], count) for place, count in fullness]
        ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        return [ranks[key] for key in keys]

    def _warn_once(self, message: str) -> None:
        if self._first_time(message):
            LOG.warning("%s", message)


class ServerGroupSoftAffinityWeigher(_SoftWeigher):
    """Prefers hosts that have more servers of a group with the policy ``soft-affinity``."""

    policy = Policy.SOFT_AFFINITY
    multiplier_key = "soft_affinity_weight_multiplier"

    def _preference(self, counts: list[int]) -> list[float]:
        return [*counts]


class ServerGroupSoftAntiAffinityWeigher(_SoftWeigher):
    """Prefers hosts that have fewer servers of a group with the policy ``soft-anti-affinity``."""

    policy = Policy.SOFT_ANTI_AFFINITY
    multiplier_key = "soft_anti_affinity_weight_multiplier"

    def _preference(self, counts: list[int]) -> list[float]:
        return list(map(operator.neg, counts))


def _others(group: object, request: object) -> set[str]:
    """The group's servers without the one that is being placed."""
    others = set(read(group, "members") or ())
    others.discard(read(request, "instance_uuid"))
    return others


def _counts(others: set[str], instances: Sequence[Mapping[str, object] | None]) -> list[int]:
    """How many of the others are on each host, for the price of the smaller of the two."""
    try:
        there = cast(Sequence[dict[str, object]], instances)
        if len(others) > max(map(len, there), default=0):
            return list(map(len, map(others.intersection, there)))
        # Between keys and a set, & walks the smaller side; a frozenset it would walk as a whole.
        return list(map(len, map(operator.and_, map(dict.keys, there), itertools.repeat(others))))
    except TypeError:  # some hosts have none, or another kind of mapping
        return [len(others.intersection(each or ())) for each in instances]


def _unseen_hosts(
    hosts: Sequence[object], unseen_members: int, group: object, request: object
) -> set[str]:
    """The hosts of the group that are no candidates and that have one of the others.

    The server that is being placed may have a host too, which the group lists: the one that it
    leaves is among those that the request ignores, and stands first there. It is left out where
    there are fewer others than hosts that they could be on.
    """
    unseen = set(read(group, "hosts") or ()).difference(read_all(hosts, "host"))
    if unseen_members <= 0:
        return set()
    left = [host for host in read(request, "ignore_hosts") or () if host in unseen]
    return unseen.difference(left[: max(len(unseen) - unseen_members, 0)])


def _members_by_domain(
    places: Sequence[Place], counts: Sequence[int], unseen: Sequence[Place]
) -> collections.Counter[Place]:
    members: collections.Counter[Place] = collections.Counter()
    for place, count in zip(places, counts, strict=True):
        for domain in _domains(place) if count else ():
            members[domain] += count
    for place in unseen:
        # Where the candidates' aggregates name nothing, it is not known which domain it is.
        members.update(domain for domain in _domains(place) if domain[-1] is not None)
    return members


def _domains(place: Place) -> list[Place]:
    """The domains that the place is in, from far to near."""
    return [place[:depth] for depth in range(1, len(place) + 1)]
