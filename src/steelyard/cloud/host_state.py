"""Hosts and requests for filters and weighers, with the attribute names of Nova.

They are immutable: placing a server makes a new state of its host. With the old state, a decision
can be explained later.
"""

import collections
import dataclasses
import operator
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import Any

from steelyard.cloud.model import Cloud
from steelyard.cloud.values import Aggregate, Flavor, Host, Server
from steelyard.groups import ServerGroup
from steelyard.resources import FIELDS, HOST_CLASSES, MIB_PER_GIB, flavor_amounts, on_host


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HostState:
    """The state of a host for one decision: its aggregates, its servers and its capacity."""

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
    def kind(self) -> Hashable:
        """The host's kind: all that is known of it but its name, its UUID and its servers.

        Two hosts are of one kind if their kinds are equal. They are in the same aggregates, and
        have the same traits, the same capacity and the same amounts in use.
        """
        return (
            tuple(map(id, self.aggregates)),
            _plain_fields(self),
            frozenset(self.resources.items()),
            frozenset(self.resources_used.items()),
        )

    @property
    def free_ram_mb(self) -> int:
        return self.ram_mb_total - self.ram_mb_reserved - self.ram_mb_used

    @property
    def free_disk_mb(self) -> int:
        return (self.disk_gb_total - self.disk_gb_reserved - self.disk_gb_used) * MIB_PER_GIB

    def with_servers(self, *servers: Server) -> "HostState":
        """Return this state with more servers on the host."""
        used = {**self.resources_used}
        for name, amount in _wanted(servers, self.resources, _AmountsOfFlavors()).items():
            used[name] = used.get(name, 0) + amount
        amounts: dict[str, Any] = {
            f"{field}_used": getattr(self, f"{field}_used") + used.pop(name, 0)
            for name, field in FIELDS.items()
        }
        return dataclasses.replace(
            self,
            instances={**self.instances, **{server.uuid: server for server in servers}},
            resources_used=used,
            **amounts,
        )


# The fields that may differ between hosts of one kind, and those that are not hashable.
_NOT_PLAIN = {"host", "uuid", "instances", "aggregates", "resources", "resources_used"}
_plain_fields = operator.attrgetter(
    *(field.name for field in dataclasses.fields(HostState) if field.name not in _NOT_PLAIN)
)


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A request for servers, which are placed one at a time.

    ``instance_uuid`` is the UUID of the server that is being placed.
    """

    flavor: Flavor
    instance_group: ServerGroup | None = None
    instance_uuid: str = ""
    ignore_hosts: frozenset[str] = frozenset()
    """Hosts that are not candidates, such as the one that a server is moved from."""


def host_states(cloud: Cloud) -> list[HostState]:
    """Return the state of every host, in the order of the cloud's hosts."""
    aggregates: dict[str, list[Aggregate]] = {name: [] for name in cloud.hosts}
    for aggregate in cloud.aggregates.values():
        for name in dict.fromkeys(aggregate.hosts):
            aggregates[name].append(aggregate)
    servers: dict[str, list[Server]] = {}
    for server in cloud.servers.values():
        servers.setdefault(server.host, []).append(server)
    amounts = _AmountsOfFlavors()
    # Hosts in the same aggregates share a list, so that it can be recognised.
    shared: dict[tuple[int, ...], list[Aggregate]] = {}
    for name, found in aggregates.items():
        aggregates[name] = shared.setdefault(tuple(map(id, found)), found)
    return [
        _state(host, aggregates[name], servers.get(name, ()), amounts)
        for name, host in cloud.hosts.items()
    ]


def host_state(host: Host, aggregates: list[Aggregate], servers: Sequence[Server]) -> HostState:
    """Return the state of a host in these aggregates, with these servers on it."""
    return _state(host, aggregates, servers, _AmountsOfFlavors())


def by_kind(states: Iterable[HostState]) -> list[list[HostState]]:
    """Return the hosts of each kind, in their order."""
    found: dict[Hashable, list[HostState]] = {}
    for state in states:
        found.setdefault(state.kind, []).append(state)
    return list(found.values())


class _AmountsOfFlavors(dict[int, Mapping[str, int]]):
    """The amounts that a server of each flavor uses, by the ``id`` of the flavor."""

    def of(self, flavor: Flavor) -> Mapping[str, int]:
        """Return the amounts; they are computed once for each flavor."""
        if id(flavor) not in self:
            self[id(flavor)] = flavor_amounts(flavor)
        return self[id(flavor)]


def _wanted(
    servers: Sequence[Server], resources: Container[str], amounts: _AmountsOfFlavors
) -> dict[str, int]:
    """Return the amounts that the servers use on a host with these other resources."""
    counts = collections.Counter(id(server.flavor) for server in servers)
    flavors = {id(server.flavor): server.flavor for server in servers}
    wanted: dict[str, int] = {}
    for identity, count in counts.items():
        for name, amount in on_host(amounts.of(flavors[identity]), resources).items():
            wanted[name] = wanted.get(name, 0) + amount * count
    return wanted


def _state(
    host: Host, aggregates: list[Aggregate], servers: Sequence[Server], amounts: _AmountsOfFlavors
) -> HostState:
    used = {name: host.used.get(name, 0) for name in host.resources}
    wanted = _wanted(servers, host.resources, amounts)
    fields: dict[str, Any] = {}
    for name, (field, _, ratio) in HOST_CLASSES.items():
        fields[f"{field}_total"] = getattr(host, field)
        fields[f"{field}_used"] = host.used.get(field, 0) + wanted.pop(name, 0)
        fields[f"{field}_reserved"] = host.reserved.get(field, 0)
        fields[ratio] = host.allocation_ratios.get(field)
    for name, amount in wanted.items():
        used[name] = used.get(name, 0) + amount
    return HostState(
        host.name,
        aggregates,
        {server.uuid: server for server in servers},
        host.traits,
        out_of_service=host.out_of_service,
        resources=host.resources,
        resources_used=used,
        uuid=host.uuid,
        **fields,
    )
