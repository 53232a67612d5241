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

    def with_servers(self, servers: Iterable[Server]) -> "Cloud":
        """This cloud with more servers, which also join their groups."""
        added: dict[str, Server] = {}
        groups = dict(self.server_groups)
        for server in servers:
            if server.uuid in self.servers or server.uuid in added:
                raise errors.Conflict(f"there is already a server with the UUID {server.uuid!r}")
            known("host", server.host, self.hosts)
            if server.group is not None:
                group = known("server group", server.group, groups)
                groups[server.group] = group.with_member(server.uuid, server.host)
            added[server.uuid] = server
        return dataclasses.replace(self, servers={**self.servers, **added}, server_groups=groups)


def known(kind: str, name: str, there: Mapping[str, ValueT]) -> ValueT:
    """What the name stands for, or NotFound with the names that come near."""
    try:
        return there[name]
    except KeyError:
        raise errors.NotFound(f"there is no {kind} {name!r}{errors.near(name, there)}") from None
