"""A cloud that changes while servers are placed in it."""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from steelyard import errors
from steelyard.cloud import Cloud, Flavor, Server
from steelyard.cloud.host_state import host_state
from steelyard.cloud.model import known
from steelyard.groups import ServerGroup
from steelyard.scheduler.hosts import Hosts
from steelyard.scheduler.ranking import Rankings


class WorkingCloud:
    """The cloud of a scheduler, changed in place.

    Adding a server costs as much in a large cloud as in a small one. The immutable cloud is made
    only when it is read.
    """

    def __init__(self, cloud: Cloud, lock: AbstractContextManager[object]) -> None:
        self._cloud = cloud
        self._lock = lock
        self._is_current = True
        self._first_numbers: dict[str, int] = collections.defaultdict(lambda: 1)
        self._groups = dict(cloud.server_groups)
        self.version = object()
        """The version of the cloud, an object that is replaced when the cloud changes."""

    @property
    def cloud(self) -> Cloud:
        """The cloud as it is now."""
        if not self._is_current:
            self._cloud = dataclasses.replace(
                self._cloud, servers=dict(self.servers), server_groups=dict(self._groups)
            )
            self._is_current = True
        return self._cloud

    @functools.cached_property
    def servers(self) -> dict[str, Server]:
        """The servers by UUID."""
        return dict(self._cloud.servers)

    @functools.cached_property
    def hosts(self) -> Hosts:
        """The hosts with the servers that are placed on them."""
        return Hosts(self._cloud, self._lock)

    @functools.cached_property
    def rankings(self) -> Rankings:
        """The kept answers of plugins about the hosts."""
        return Rankings(self.hosts)

    @functools.cached_property
    def _by_name(self) -> dict[str, Server]:
        return {server.name: server for server in self.servers.values()}

    @functools.cached_property
    def _members(self) -> dict[str, dict[str, str]]:
        """The servers of each group, and the host of each server, unless the cloud lacks it."""
        found: dict[str, dict[str, str]] = collections.defaultdict(dict)
        for server in self.servers.values():
            # An evacuation leaves out failed hosts. A group's servers need not join those there.
            if server.group is not None and server.host in self._cloud.hosts:
                found[server.group][server.uuid] = server.host
        return found

    def flavor(self, name: str) -> Flavor:
        """Return the flavor of this name; raise NotFound if it is missing."""
        return self._cloud.flavor(name)

    def server(self, name: str) -> Server:
        """Return the server with this UUID or name; raise NotFound if it is missing."""
        return self.servers.get(name) or known("server", name, self._by_name)

    def server_group(self, name: str) -> ServerGroup:
        """Return the server group of this name; raise NotFound if it is missing."""
        return known("server group", name, self._groups)

    def others_of(self, server: Server) -> ServerGroup | None:
        """Return the server's group without the server; None if it is in no group."""
        if server.group is None:
            return None
        group = self.server_group(server.group)
        others = dict(self._members[server.group])
        others.pop(server.uuid, None)
        return dataclasses.replace(
            group,
            members=group.members - {server.uuid},
            hosts=(group.hosts - {server.host}) | set(others.values()),
        )

    def free_names(self, flavor: str, count: int) -> Iterator[str]:
        """Return names for new servers of the flavor, which are not in use."""
        first = self._first_numbers[flavor]
        while f"{flavor}-{first}" in self._by_name:
            first += 1
        self._first_numbers[flavor] = first
        names = (f"{flavor}-{number}" for number in itertools.count(first))
        return itertools.islice((name for name in names if name not in self._by_name), count)

    def check_new(self, servers: Sequence[Server]) -> None:
        """Raise Conflict if a UUID occurs twice, and NotFound if a host or a group is missing."""
        uuids = set()
        for server in servers:
            if server.uuid in uuids:
                raise errors.Conflict(
                    f"server with UUID {server.uuid!r} already exists", server.uuid
                )
            uuids.add(server.uuid)
            known("host", server.host, self.hosts.index)
            if server.group is not None:
                self.server_group(server.group)

    def place(self, server: Server) -> None:
        """Place a new server on its host, or move an existing one there."""
        before = self.servers.get(server.uuid)
        if before is not None:
            server = dataclasses.replace(before, host=server.host)
            self._leave(before)
        if server.group is not None:
            group = self.others_of(before or server) or self.server_group(server.group)
            self._groups[server.group] = group.with_members({server.uuid: server.host})
            self._members[server.group][server.uuid] = server.host
        self.hosts.place(server)
        self.servers[server.uuid] = self._by_name[server.name] = server
        self._is_current = False
        self.version = object()

    def _leave(self, server: Server) -> None:
        index = self.hosts.index.get(server.host)
        if index is None:  # the server leaves a failed host
            return
        state = self.hosts.version[index]
        others = [each for uuid, each in state.instances.items() if uuid != server.uuid]
        host = self._cloud.hosts[server.host]
        self.hosts.change(index, host_state(host, state.aggregates, others))
