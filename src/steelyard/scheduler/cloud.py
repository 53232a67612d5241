"""A described cloud: values that change by being replaced."""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import TypeVar

from steelyard import errors
from steelyard.groups import ServerGroup

ValueT = TypeVar("ValueT")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """A group of hosts with metadata. Each is itself and equal to no other."""

    name: str
    metadata: Mapping[str, str]
    hosts: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    name: str
    vcpus: int
    ram_mb: int
    disk_gb: int
    traits: frozenset[str] = frozenset()
    uuid: str = ""
    """The one that its resource provider has; empty, one that follows from the name."""
    reserved: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """What no server may use of ``vcpus``, ``ram_mb`` and ``disk_gb``."""
    used: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """What is used of them, and of ``resources``, by what is not among the servers of the cloud."""
    allocation_ratios: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """How far they are overcommitted, where this is not as the options say."""
    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """How much servers may use of other resource classes, by the names that Placement has."""
    out_of_service: str = ""
    """Why no server may be placed here; empty for a host that is in service."""


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """What a server gets, by the attribute names that Nova's flavors have."""

    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    uuid: str
    name: str
    flavor: Flavor
    host: str
    group: str | None = None


@dataclasses.dataclass(frozen=True)
class Cloud:
    """Hosts, aggregates, flavors and server groups by name; servers by UUID."""

    hosts: Mapping[str, Host]
    aggregates: Mapping[str, Aggregate] = dataclasses.field(default_factory=dict)
    flavors: Mapping[str, Flavor] = dataclasses.field(default_factory=dict)
    server_groups: Mapping[str, ServerGroup] = dataclasses.field(default_factory=dict)
    servers: Mapping[str, Server] = dataclasses.field(default_factory=dict)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Cloud":
        """The cloud that a YAML or JSON file describes."""
        from steelyard.scheduler import cloud_file  # noqa: PLC0415  (it builds on this module)

        return cloud_file.load(path)

    def flavor(self, name: str) -> Flavor:
        return known("flavor", name, self.flavors)

    def server_group(self, name: str) -> ServerGroup:
        return known("server group", name, self.server_groups)

    def server(self, name: str) -> Server:
        """The server with the name, or with the UUID."""
        if name in self.servers:
            return self.servers[name]
        return known("server", name, {server.name: server for server in self.servers.values()})

    def with_servers(self, servers: Iterable[Server]) -> "Cloud":
        """This cloud with more servers, which also join their groups."""
        added: dict[str, Server] = {}
        joining: dict[str, dict[str, str]] = {}
        for server in servers:
            if server.uuid in self.servers or server.uuid in added:
                raise errors.Conflict(f"there is already a server with the UUID {server.uuid!r}")
            known("host", server.host, self.hosts)
            if server.group is not None:
                self.server_group(server.group)
                joining.setdefault(server.group, {})[server.uuid] = server.host
            added[server.uuid] = server
        groups = dict(self.server_groups)
        groups |= {name: groups[name].with_members(placed) for name, placed in joining.items()}
        return dataclasses.replace(self, servers={**self.servers, **added}, server_groups=groups)

    def with_moved(self, server: Server, host: str) -> "Cloud":
        """This cloud with one of its servers on another host."""
        known("host", host, self.hosts)
        moved = dataclasses.replace(server, host=host)
        groups = dict(self.server_groups)
        others = self.others_of(server)
        if others is not None:
            groups[others.name] = others.with_members({server.uuid: host})
        servers = {**self.servers, server.uuid: moved}
        return dataclasses.replace(self, servers=servers, server_groups=groups)

    def others_of(self, server: Server) -> ServerGroup | None:
        """The server's group as it is for that server: without it."""
        if server.group is None:
            return None
        group = self.server_group(server.group)
        hosts = {
            other.host
            for other in self.servers.values()
            if other.group == server.group and other.uuid != server.uuid
        }
        return dataclasses.replace(
            group,
            members=group.members - {server.uuid},
            hosts=(group.hosts - {server.host}) | hosts,
        )

    def with_server_group(self, group: ServerGroup) -> "Cloud":
        """This cloud with one more server group."""
        if not group.name.isprintable():
            raise errors.InvalidServerGroup(
                f"the name {group.name!r} cannot be printed; leave out what is shown as \\x or \\u"
            )
        if group.name in self.server_groups:
            raise errors.Conflict(f"there is already a server group {group.name!r}")
        return dataclasses.replace(self, server_groups={**self.server_groups, group.name: group})

    def without_server_group(self, name: str) -> "Cloud":
        """This cloud without the group; its servers stay, in no group."""
        self.server_group(name)
        groups = {other: group for other, group in self.server_groups.items() if other != name}
        servers = {
            uuid: dataclasses.replace(server, group=None) if server.group == name else server
            for uuid, server in self.servers.items()
        }
        return dataclasses.replace(self, servers=servers, server_groups=groups)


def known(kind: str, name: str, there: Mapping[str, ValueT]) -> ValueT:
    """What the name stands for, or NotFound with the names that come near."""
    try:
        return there[name]
    except KeyError:
        raise errors.NotFound(f"there is no {kind} {name!r}{errors.near(name, there)}") from None
