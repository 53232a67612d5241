"""Slow and plain versions of the checks of placed servers, to compare with."""

import collections
import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from steelyard.cloud import Cloud, Flavor, Server
from steelyard.groups import Policy, ServerGroup
from support.filters import aggregate_oracle

IGNORED = (
    "availability_zone",
    "filter_tenant_id*",
    "trait:*",
)
"""The patterns of keys that forced aggregates do not require, apart from failure domains."""


class Violation(NamedTuple):
    """A group that violates its policy, at a level, by servers with the hosts they would fit."""

    level: str
    better: dict[str, set[str]]
    """The best other hosts for each server; none under a hard policy."""


class NaivePlacement:
    """The rules for placed servers, applied to each server and each host by itself.

    ``domains`` are the keys of failure domains, from near to far. All hosts have allocation ratios
    of their own.
    """

    def __init__(self, cloud: Cloud, domains: Sequence[str]) -> None:
        self.cloud = cloud
        self.domains = domains

    def fits(self, flavor: Flavor, name: str, *, emptied: bool = False) -> bool:
        """Return whether a server of the flavor fits the host, or would if it were empty."""
        if self.cloud.hosts[name].out_of_service and not emptied:
            return False
        unmet = self.unmet(flavor, name, emptied=emptied)
        return not unmet and not self.requires_missing_key(flavor, name)

    def unmet(self, flavor: Flavor, name: str, *, emptied: bool = False) -> dict[str, float]:
        """Return the flavor's demands that the host does not meet, with the missing share."""
        found: dict[str, float] = {}
        metadata = self._metadata(name)
        for key, text in flavor.extra_specs.items():
            if not aggregate_oracle.offers_what_flavor_wants(key, text, metadata):
                found[key] = 0
            trait = key.removeprefix("trait:")
            if trait != key and trait not in self.cloud.hosts[name].traits:
                found[f"{key} of the host"] = 0
        used = {} if emptied else self.allocated(name)
        limits = self.limits(name)
        for field, amount in amounts(flavor).items():
            left = max(limits[field] - used.get(field, 0), 0)
            if amount > left:
                found[field] = 1 - left / amount
        return found

    def requires_missing_key(self, flavor: Flavor, name: str) -> bool:
        """Return whether a forced aggregate of the host requires a key that the flavor lacks."""
        ignored, metadata = [*IGNORED, *self.domains], self._metadata(name)
        return not all(
            aggregate_oracle.forced_aggregates_admit_absence(key, metadata)
            for key in aggregate_oracle.keys_of_forced(metadata)
            if key not in flavor.extra_specs
            and not any(fnmatch.fnmatchcase(key, pattern) for pattern in ignored)
        )

    def nearest(self, flavor: Flavor) -> str:
        """Return the nearest host for a flavor that fits no host, even if all are empty."""

        def distance(name: str) -> tuple[bool, int, float]:
            unmet = self.unmet(flavor, name, emptied=True)
            keys = {key for metadata in self._metadata(name) for key in metadata}
            is_for_tenants = any(key.startswith("filter_tenant_id") for key in keys)
            dedicated = is_for_tenants or self.requires_missing_key(flavor, name)
            return dedicated, len(unmet), sum(unmet.values())

        return min(self.cloud.hosts, key=distance)

    def _metadata(self, name: str) -> list[Mapping[str, str]]:
        return [each.metadata for each in self.cloud.aggregates.values() if name in each.hosts]

    def limits(self, name: str) -> dict[str, float]:
        """Return the amounts that servers may use on the host."""
        host = self.cloud.hosts[name]
        totals = {"vcpus": host.vcpus, "ram_mb": host.ram_mb, "disk_gb": host.disk_gb}
        return {
            field: max(total - host.reserved.get(field, 0), 0) * host.allocation_ratios[field]
            for field, total in totals.items()
        }

    def allocated(self, name: str) -> dict[str, int]:
        """Return the amounts that are in use on the host."""
        used = {field: self.cloud.hosts[name].used.get(field, 0) for field in AMOUNTS}
        for server in self.cloud.servers.values():
            if server.host == name:
                for field, amount in amounts(server.flavor).items():
                    used[field] += amount
        return used

    def overcommitted(self) -> dict[str, set[str]]:
        """Return the amounts of which more is allocated on a host than it has, by host."""
        found = {}
        for name in self.cloud.hosts:
            used, limits = self.allocated(name), self.limits(name)
            over = {field for field in AMOUNTS if used[field] > limits[field]}
            if over:
                found[name] = over
        return found

    def misplaced(self) -> set[str]:
        """Return the servers whose hosts would reject their flavors even if empty."""
        return {
            server.uuid
            for server in self.cloud.servers.values()
            if not self.fits(server.flavor, server.host, emptied=True)
        }

    def violations(self) -> dict[str, Violation]:
        """Return the violations by group."""
        found = {}
        for name, group in self.cloud.server_groups.items():
            members = [each for each in self.cloud.servers.values() if each.group == name]
            if group.policy in (Policy.AFFINITY, Policy.ANTI_AFFINITY):
                against = set(self._against_hard_policy(group, members))
                if against:
                    found[name] = Violation("host", {uuid: set() for uuid in against})
            else:
                by_level = self._against_soft_policy(group, members)
                for level in (*reversed(self.domains), "host"):
                    if by_level[level]:
                        found[name] = Violation(level, by_level[level])
                        break
        return found

    def _against_hard_policy(self, group: ServerGroup, members: list[Server]) -> Iterator[str]:
        for server in members:
            together = sum(other.host == server.host for other in members)
            if group.policy is Policy.AFFINITY and together < len(members):
                yield server.uuid
            most = group.rules.get("max_server_per_host", 1)
            if group.policy is Policy.ANTI_AFFINITY and together > most:
                yield server.uuid

    def _against_soft_policy(
        self, group: ServerGroup, members: list[Server]
    ) -> dict[str, dict[str, set[str]]]:
        """Return by level the servers with better hosts, each with the best of them.

        The level is the farthest at which one of the better hosts differs from the server's own.
        """
        found: dict[str, dict[str, set[str]]] = collections.defaultdict(dict)
        levels = (*reversed(self.domains), "host")
        sign = 1 if group.policy is Policy.SOFT_AFFINITY else -1
        for server in members:
            others = [each.host for each in members if each.uuid != server.uuid]
            own = self._counts(server.host, others)
            better = {}
            for name in self.cloud.hosts:
                counts = self._counts(name, others)
                signed = [sign * count for count in counts]
                if signed > [sign * count for count in own] and self.fits(server.flavor, name):
                    better[name] = signed
            if better:
                first = min(
                    next(i for i, count in enumerate(counts) if count != sign * own[i])
                    for counts in better.values()
                )
                best = max(better.values())
                found[levels[first]][server.uuid] = {
                    name for name, counts in better.items() if counts == best
                }
        return found

    def _counts(self, name: str, others: list[str]) -> list[int]:
        """Return how many of the other servers are in each domain of the host, the farthest first.

        The host is its own nearest domain.
        """
        place = self._place(name)
        counts = [
            sum(self._place(other)[:depth] == place[:depth] for other in others)
            for depth in range(1, len(place) + 1)
        ]
        return [*counts, others.count(name)]

    def _place(self, name: str) -> list[str]:
        """Return the names of the host's domains, from far to near; empty for a missing name."""
        place = []
        for key in reversed(self.domains):
            names = [
                each.metadata[key]
                for each in self.cloud.aggregates.values()
                if name in each.hosts and key in each.metadata
            ]
            place.append(min(names, default=""))
        return place


AMOUNTS = ("vcpus", "ram_mb", "disk_gb")
"""The amounts of hosts, by their names in cloud files."""


def amounts(flavor: Flavor) -> dict[str, int]:
    """Return the amounts that a server of the flavor uses."""
    return dict(zip(AMOUNTS, (flavor.vcpus, flavor.memory_mb, flavor.root_gb), strict=True))
