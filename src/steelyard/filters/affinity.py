"""Filters for the server group policies ``affinity`` and ``anti-affinity``."""

import functools
from collections.abc import Iterator, Sequence

from steelyard.attributes import read
from steelyard.filters import base
from steelyard.groups import MAX_SERVER_PER_HOST, Policy
from steelyard.text.wording import counted
from steelyard.verdict import PASSED, Verdict


class ServerGroupAffinityFilter(base.Filter):
    """A filter that keeps the servers of a group with the policy ``affinity`` on one host."""

    host_local = True
    in_nova = False  # Nova has its own of this name, and keys filters by class name

    def by_kind(self, request: object) -> bool:
        return not _has_policy(request, Policy.AFFINITY)

    def server_limits(
        self, hosts: Sequence[object], request: object, most: int
    ) -> Sequence[base.ServerLimit] | None:
        """Return that the policy limits the servers on hosts that are not those of the group."""
        if not _has_policy(request, Policy.AFFINITY):
            return [base.ServerLimit(most, PASSED)] * len(hosts)
        rejections = self.judge(request)
        verdicts = (next(iter(rejections(host)), PASSED) for host in hosts)
        return [base.ServerLimit(most if each.passed else 0, each) for each in verdicts]

    def passing(self, hosts: Sequence[object], request: object) -> Sequence[bool]:
        """Return whether each host passes; all of them do for other policies."""
        if _has_policy(request, Policy.AFFINITY):
            return super().passing(hosts, request)
        return [True] * len(hosts)

    def judge(self, request: object) -> base.Rejections:
        group = read(request, "instance_group")
        hosts = frozenset(read(group, "hosts") or ())
        if not _has_policy(request, Policy.AFFINITY) or not hosts:
            return _pass
        rejected = Verdict.rejected(
            f"server group {read(group, 'name')!r} is on {', '.join(map(repr, sorted(hosts)))}"
        )

        def rejections(host: object) -> Iterator[Verdict]:
            if read(host, "host") not in hosts:
                yield rejected

        return rejections


class ServerGroupAntiAffinityFilter(base.Filter):
    """A filter that spreads the servers of a group with the policy ``anti-affinity`` over hosts.

    A host passes while it has fewer of the group's servers than ``max_server_per_host``, which is 1
    unless the group has another rule.
    """

    host_local = True
    in_nova = False  # Nova has its own of this name, and keys filters by class name

    def by_kind(self, request: object) -> bool:
        return not _has_policy(request, Policy.ANTI_AFFINITY)

    def server_limits(
        self, hosts: Sequence[object], request: object, most: int
    ) -> Sequence[base.ServerLimit] | None:
        """Return that the policy limits the servers on each host to the rule of the group."""
        if not _has_policy(request, Policy.ANTI_AFFINITY):
            return [base.ServerLimit(most, PASSED)] * len(hosts)
        group = _SpreadGroup(request)
        limit = functools.cache(lambda here: group.limit(here, most))
        return [limit(group.servers_on(host)) for host in hosts]

    def passing(self, hosts: Sequence[object], request: object) -> Sequence[bool]:
        """Return whether each host passes; all of them do for other policies."""
        if _has_policy(request, Policy.ANTI_AFFINITY):
            return super().passing(hosts, request)
        return [True] * len(hosts)

    def judge(self, request: object) -> base.Rejections:
        if not _has_policy(request, Policy.ANTI_AFFINITY):
            return _pass
        group = _SpreadGroup(request)

        def rejections(host: object) -> Iterator[Verdict]:
            here = group.servers_on(host)
            if here >= group.most:
                yield group.rejected(here)

        return rejections


class _SpreadGroup:
    """The server group of a request with the policy ``anti-affinity``."""

    def __init__(self, request: object) -> None:
        group = read(request, "instance_group")
        self._name = read(group, "name")
        self.most = (read(group, "rules") or {}).get(MAX_SERVER_PER_HOST, 1)
        self._others = frozenset(read(group, "members") or ()) - {read(request, "instance_uuid")}

    def servers_on(self, host: object) -> int:
        """Return the number of the group's other servers on the host."""
        instances = read(host, "instances") or ()
        if self._others.isdisjoint(instances):
            return 0
        return sum(uuid in self._others for uuid in instances)

    def rejected(self, here: int) -> Verdict:
        """Return the rejection of a host with this number of the group's servers."""
        return Verdict.rejected(
            f"server group {self._name!r} has {counted(here, 'server')} here; "
            f"the limit is {self.most}"
        )

    def limit(self, here: int, most: int) -> base.ServerLimit:
        """Return how many servers may join those on a host, up to ``most``."""
        servers = max(self.most - here, 0)
        if servers > most:
            return base.ServerLimit(most, PASSED)
        return base.ServerLimit(servers, self.rejected(max(here, self.most)))


def _has_policy(request: object, policy: Policy) -> bool:
    return bool(read(read(request, "instance_group"), "policy") == policy)


def _pass(host: object) -> tuple[Verdict, ...]:
    """Return no rejections, because the filter does not apply to the request."""
    return ()
