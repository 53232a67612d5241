"""The cloud as an immutable value; each change returns a new one."""

import collections
import dataclasses
import os
from collections.abc import Collection, Iterable, Mapping
from typing import IO, TypeVar

from steelyard import errors
from steelyard.cloud.files import loading, provider_file
from steelyard.cloud.values import Aggregate, Flavor, Host, Server
from steelyard.groups import ServerGroup
from steelyard.text import spelling
from steelyard.traits import ProviderTrees, ResourceProvider

ValueT = TypeVar("ValueT")


@dataclasses.dataclass(frozen=True)
class Cloud:
    """A cloud: hosts, aggregates, flavors and server groups by name, and servers by UUID."""

    hosts: Mapping[str, Host]
    aggregates: Mapping[str, Aggregate] = dataclasses.field(default_factory=dict)
    flavors: Mapping[str, Flavor] = dataclasses.field(default_factory=dict)
    server_groups: Mapping[str, ServerGroup] = dataclasses.field(default_factory=dict)
    servers: Mapping[str, Server] = dataclasses.field(default_factory=dict)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Cloud":
        """Return the cloud in a YAML or JSON file; raise InvalidCloud if the file is invalid."""
        return _cloud(loading.load(path))

    def flavor(self, name: str) -> Flavor:
        """Return the flavor of this name; raise NotFound if it is missing."""
        return known("flavor", name, self.flavors)

    def server_group(self, name: str) -> ServerGroup:
        """Return the server group of this name; raise NotFound if it is missing."""
        return known("server group", name, self.server_groups)

    def server(self, name: str) -> Server:
        """Return the server with this UUID or name; raise NotFound if it is missing."""
        if name in self.servers:
            return self.servers[name]
        return known("server", name, {server.name: server for server in self.servers.values()})

    def with_servers(self, servers: Iterable[Server]) -> "Cloud":
        """Return this cloud with more servers, which also join their groups.

        Raises Conflict if a UUID is in use, and NotFound if a host or group is missing.
        """
        added = list(servers)
        by_uuid = {server.uuid: server for server in added}
        if len(by_uuid) < len(added) or not by_uuid.keys().isdisjoint(self.servers):
            counts = collections.Counter(server.uuid for server in added)
            uuid = next(uuid for uuid in counts if counts[uuid] > 1 or uuid in self.servers)
            raise errors.Conflict(f"server with UUID {uuid!r} already exists", uuid)
        joining: dict[str, dict[str, str]] = {}
        for server in added:
            if server.host not in self.hosts:
                known("host", server.host, self.hosts)
            if server.group is not None:
                joining.setdefault(server.group, {})[server.uuid] = server.host
        groups = dict(self.server_groups)
        for name, placed in joining.items():
            groups[name] = self.server_group(name).with_members(placed)
        return dataclasses.replace(self, servers={**self.servers, **by_uuid}, server_groups=groups)

    def without_servers(self, uuids: Collection[str]) -> "Cloud":
        """Return this cloud without these servers, which also leave their groups."""
        left = {uuid: server for uuid, server in self.servers.items() if uuid not in uuids}
        hosts: dict[str | None, set[str]] = {}
        for server in left.values():
            hosts.setdefault(server.group, set()).add(server.host)
        groups = {
            name: dataclasses.replace(
                group,
                members=group.members.difference(uuids),
                hosts=frozenset(hosts.get(name, ())),
            )
            if not group.members.isdisjoint(uuids)
            else group
            for name, group in self.server_groups.items()
        }
        return dataclasses.replace(self, servers=left, server_groups=groups)

    def with_moved(self, server: Server, host: str) -> "Cloud":
        """Return this cloud with one of its servers on another host.

        Raises NotFound if the host is missing.
        """
        known("host", host, self.hosts)
        moved = dataclasses.replace(server, host=host)
        groups = dict(self.server_groups)
        others = self.others_of(server)
        if others is not None:
            groups[others.name] = others.with_members({server.uuid: host})
        servers = {**self.servers, server.uuid: moved}
        return dataclasses.replace(self, servers=servers, server_groups=groups)

    def others_of(self, server: Server) -> ServerGroup | None:
        """Return the server's group without the server; None if it is in no group."""
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
        """Return this cloud with one more server group.

        Raises Conflict if the name is in use, and InvalidServerGroup if it cannot be printed.
        """
        if not group.name.isprintable():
            raise errors.InvalidServerGroup(
                f"invalid server group name {group.name!r}: expected printable characters",
                group.name,
            )
        if group.name in self.server_groups:
            raise errors.Conflict(f"server group {group.name!r} already exists", group.name)
        return dataclasses.replace(self, server_groups={**self.server_groups, group.name: group})

    def without_server_group(self, name: str) -> "Cloud":
        """Return this cloud without the group; its servers stay, in no group.

        Raises NotFound if the group is missing.
        """
        self.server_group(name)
        groups = {other: group for other, group in self.server_groups.items() if other != name}
        servers = {
            uuid: dataclasses.replace(server, group=None) if server.group == name else server
            for uuid, server in self.servers.items()
        }
        return dataclasses.replace(self, servers=servers, server_groups=groups)


def read(file: IO[str], name: str) -> Cloud:
    """Return the cloud in the open cloud file; ``name`` is the name of the file in errors."""
    return _cloud(loading.read(file, name))


def read_either(file: IO[str], name: str) -> Cloud | ProviderTrees[ResourceProvider]:
    """Return the cloud or the resource providers in the open file; raise InvalidCloud."""
    found = provider_file.read(file, name)
    return found if isinstance(found, ProviderTrees) else _cloud(found)


def _cloud(described: loading.Described) -> Cloud:
    return Cloud(*described[:-1]).with_servers(described.servers)


def known(kind: str, name: str, there: Mapping[str, ValueT]) -> ValueT:
    """Return the value of this name; raise NotFound, with similar names, if it is missing."""
    try:
        return there[name]
    except KeyError:
        raise errors.NotFound(f"no {kind} {name!r}{spelling.near(name, there)}", name) from None
