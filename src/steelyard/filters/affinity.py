"""Filters for the server group policies ``affinity`` and ``anti-affinity``."""

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
        """Return that nothing limits the servers of other policies."""
        if _has_policy(request, Policy.AFFINITY):
            return None
        return [base.ServerLimit(most, PASSED)] * len(hosts)

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
        """Return that nothing limits the servers of other policies."""
        if _has_policy(request, Policy.ANTI_AFFINITY):
            return None
        return [base.ServerLimit(most, PASSED)] * len(hosts)

    def passing(self, hosts: Sequence[object], request: object) -> Sequence[bool]:
        """Return whether each host passes; all of them do for other policies."""
        if _has_policy(request, Policy.ANTI_AFFINITY):
            return super().passing(hosts, request)
        return [True] * len(hosts)

    def judge(self, request: object) -> base.Rejections:
        group = read(request, "instance_group")
        if not _has_policy(request, Policy.ANTI_AFFINITY):
            return _pass
        name = read(group, "name")
        most = (read(group, "rules") or {}).get(MAX_SERVER_PER_HOST, 1)
        others = frozenset(read(group, "members") or ()) - {read(request, "instance_uuid")}

        def rejections(host: object) -> Iterator[Verdict]:
            here = sum(uuid in others for uuid in read(host, "instances") or ())
            if here >= most:
                yield Verdict.rejected(
                    f"server group {name!r} has {counted(here, 'server')} here; the limit is {most}"
                )

        return rejections


def _has_policy(request: object, policy: Policy) -> bool:
    return bool(read(read(request, "instance_group"), "policy") == policy)


def _pass(host: object) -> tuple[Verdict, ...]:
    """Return no rejections, because the filter does not apply to the request."""
    return ()
