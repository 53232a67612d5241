"""Hosts and requests as filters and weighers see them, by the names that Nova gives them.

They are values: placing a server makes a new state of its host. Whoever still holds the old one
can explain a decision that was made on it.
"""

import collections
import dataclasses
from collections.abc import Mapping

from steelyard.filters.capacity import on_host
from steelyard.groups import ServerGroup
from steelyard.scheduler.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.traits.flavors import flavor_amounts


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HostState:
    host: str
    aggregates: list[Aggregate]
    instances: Mapping[str, Server]
    traits: frozenset[str]
    vcpus_total: int
    ram_mb_total: int
    disk_gb_total: int
    vcpus_used: int = 0
    ram_mb_used: int = 0
    disk_gb_used: int = 0
    vcpus_reserved: int = 0
    ram_mb_reserved: int = 0
    disk_gb_reserved: int = 0
    cpu_allocation_ratio: float | None = None
    ram_allocation_ratio: float | None = None
    disk_allocation_ratio: float | None = None
    out_of_service: str = ""
    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)
    resources_used: Mapping[str, int] = dataclasses.field(default_factory=dict)
    uuid: str = ""
    """The UUID of the host's resource provider, if the cloud names one."""

    @property
    def nodename(self) -> str:
        return self.host

    @property
    def free_ram_mb(self) -> int:
        return self.ram_mb_total - self.ram_mb_reserved - self.ram_mb_used

    def with_servers(self, *servers: Server) -> "HostState":
        """This state once the servers run here."""
        used = collections.Counter(self.resources_used)
        flavors = {id(server.flavor): server.flavor for server in servers}
        for each, count in collections.Counter(id(server.flavor) for server in servers).items():
            wanted = on_host(flavor_amounts(flavors[each]), self.resources)
            used.update({name: amount * count for name, amount in wanted.items()})
        return dataclasses.replace(
            self,
            instances={**self.instances, **{server.uuid: server for server in servers}},
            vcpus_used=self.vcpus_used + used.pop("VCPU", 0),
            ram_mb_used=self.ram_mb_used + used.pop("MEMORY_MB", 0),
            disk_gb_used=self.disk_gb_used + used.pop("DISK_GB", 0),
            resources_used=used,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What is to be placed: one server at a time, ``instance_uuid``."""

    flavor: Flavor
    instance_group: ServerGroup | None = None
    instance_uuid: str = ""
    ignore_hosts: frozenset[str] = frozenset()
    """Hosts that are no candidates: the one that a server is moved from."""


def host_states(cloud: Cloud) -> list[HostState]:
    """The state of every host of the cloud, in its order."""
    aggregates: dict[str, list[Aggregate]] = {name: [] for name in cloud.hosts}
    for aggregate in cloud.aggregates.values():
        for name in dict.fromkeys(aggregate.hosts):
            aggregates[name].append(aggregate)
    servers: dict[str, list[Server]] = {}
    for server in cloud.servers.values():
        servers.setdefault(server.host, []).append(server)
    states = []
    for host in cloud.hosts.values():
        state = _without_servers(host, aggregates[host.name])
        here = servers.get(host.name)
        states.append(state.with_servers(*here) if here else state)
    return states


def _without_servers(host: Host, aggregates: list[Aggregate]) -> HostState:
    used, reserved, ratios = host.used, host.reserved, host.allocation_ratios
    return HostState(
        host.name,
        aggregates,
        {},
        host.traits,
        host.vcpus,
        host.ram_mb,
        host.disk_gb,
        used.get("vcpus", 0),
        used.get("ram_mb", 0),
        used.get("disk_gb", 0),
        reserved.get("vcpus", 0),
        reserved.get("ram_mb", 0),
        reserved.get("disk_gb", 0),
        ratios.get("vcpus"),
        ratios.get("ram_mb"),
        ratios.get("disk_gb"),
        host.out_of_service,
        host.resources,
        {name: used.get(name, 0) for name in host.resources},
        host.uuid,
    )
