"""Hosts by where the other servers of the group are."""

from collections.abc import Collection

from steelyard.attributes import read
from steelyard.filters import base
from steelyard.groups import MAX_SERVER_PER_HOST, Policy
from steelyard.verdict import PASSED, Verdict


class ServerGroupAffinityFilter(base.Filter):
    """Keeps the servers of a group with the policy ``affinity`` on one host."""

    in_nova = False  # Nova has its own, and keys filters by class name

    def examine(self, host: object, request: object) -> Verdict:
        group = read(request, "instance_group")
        if read(group, "policy") != Policy.AFFINITY:
            return PASSED
        hosts: Collection[str] = read(group, "hosts") or ()
        name = read(host, "host")
        if not hosts or name in hosts:
            return PASSED
        return Verdict.rejected(
            f"server group {read(group, 'name')!r} is on {', '.join(map(repr, sorted(hosts)))}"
        )


class ServerGroupAntiAffinityFilter(base.Filter):
    """Keeps the servers of a group with the policy ``anti-affinity`` on different hosts."""

    in_nova = False  # Nova has its own, and keys filters by class name

    def examine(self, host: object, request: object) -> Verdict:
        group = read(request, "instance_group")
        if read(group, "policy") != Policy.ANTI_AFFINITY:
            return PASSED
        most = (read(group, "rules") or {}).get(MAX_SERVER_PER_HOST, 1)
        members: Collection[str] = read(group, "members") or ()
        itself = read(request, "instance_uuid")
        here = sum(uuid in members and uuid != itself for uuid in read(host, "instances") or ())
        if here < most:
            return PASSED
        return Verdict.rejected(
            f"server group {read(group, 'name')!r} has {here} of at most {most} servers here"
        )
