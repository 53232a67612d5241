"""Server groups: what their policies promise, and whether that is supported here."""

import dataclasses
import enum
from collections.abc import Collection, Mapping

from steelyard import errors


class Policy(enum.StrEnum):
    """Where the servers of a group should be, in relation to each other."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    SOFT_AFFINITY = "soft-affinity"
    SOFT_ANTI_AFFINITY = "soft-anti-affinity"

    @classmethod
    def parse(cls, text: str) -> "Policy":
        try:
            return cls(text)
        except ValueError:
            raise errors.InvalidServerGroup(
                f"unknown policy {text!r}; write one of {', '.join(map(repr, map(str, cls)))}"
            ) from None


_FILTERS = {
    Policy.AFFINITY: "ServerGroupAffinityFilter",
    Policy.ANTI_AFFINITY: "ServerGroupAntiAffinityFilter",
}
_WEIGHERS = {
    Policy.SOFT_AFFINITY: "ServerGroupSoftAffinityWeigher",
    Policy.SOFT_ANTI_AFFINITY: "ServerGroupSoftAntiAffinityWeigher",
}


@dataclasses.dataclass(frozen=True, slots=True)
class ServerGroup:
    """A group, with the UUIDs of its servers and the names of the hosts they are on."""

    name: str
    policy: Policy
    rules: Mapping[str, int] = dataclasses.field(default_factory=dict)
    members: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()

    def with_member(self, uuid: str, host: str) -> "ServerGroup":
        """This group with one more server."""
        return dataclasses.replace(self, members=self.members | {uuid}, hosts=self.hosts | {host})


def check_supported(
    group: ServerGroup, enabled_filters: Collection[str], enabled_weighers: Collection[str]
) -> None:
    """Raises PolicyNotSupported when what enforces the group's policy is not enabled."""
    for kind, needed, enabled in (
        ("filter", _FILTERS.get(group.policy), enabled_filters),
        ("weigher", _WEIGHERS.get(group.policy), enabled_weighers),
    ):
        if needed is not None and needed not in enabled:
            raise errors.PolicyNotSupported(
                f"server group {group.name!r} has the policy '{group.policy}', which needs the "
                f"{kind} {needed!r}; it is not enabled: add it to enabled_{kind}s"
            )
