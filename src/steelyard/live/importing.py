"""Conversion of the data read from a live cloud into a cloud, with remarks on what differs."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from steelyard import errors
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.groups import Policy, ServerGroup, parse_rules
from steelyard.live import imported_hosts
from steelyard.live.answers import (
    Observed,
    SeenAggregate,
    SeenFlavor,
    SeenGroup,
    SeenServer,
)
from steelyard.live.places import Places, own_names
from steelyard.text.wording import counted

_NamedT = TypeVar("_NamedT", Host, Aggregate, Flavor, ServerGroup)


@dataclasses.dataclass(frozen=True, slots=True)
class Imported:
    cloud: Cloud
    remarks: Sequence[str]
    """One message for each thing that the cloud file omits or states differently, with reason."""


def imported(seen: Observed) -> Imported:
    """Return the cloud and the remarks.

    Everything is sorted by name, so that two files can be compared.
    """
    remarks = list(seen.unseen)
    places = Places(seen.hypervisors)
    flavors = _Flavors(seen.flavors)
    groups, group_of = _groups(seen.groups, remarks)
    servers = _servers(seen.servers, places, flavors, group_of, remarks)
    hosts = _sorted(imported_hosts.hosts_of(seen, places.names, servers, remarks))
    cloud = Cloud(
        hosts,
        _aggregates(seen.aggregates, places, remarks),
        flavors.by_name(remarks),
        groups,
    )
    return Imported(cloud.with_servers(servers), remarks)


class _Flavors:
    """The flavors of the cloud file: those in Nova, and those that only servers still have."""

    def __init__(self, flavors: Sequence[SeenFlavor]) -> None:
        self._current = {flavor.name: flavor for flavor in flavors}
        names = own_names((flavor.uuid, flavor.name) for flavor in flavors)
        self._described = {
            flavor.name: _flavor(names[flavor.uuid], flavor, {}) for flavor in flavors
        }
        self._taken = set(names.values())
        self._from_servers: dict[object, Flavor] = {}
        self._differing_servers = 0

    def of(self, server: SeenServer) -> Flavor:
        """Return the flavor of a server.

        That is the flavor in Nova with the same name, or an additional one if the server's embedded
        flavor differs from it.
        """
        embedded = server.flavor
        current = self._current.get(embedded.name)
        if current is not None and _same(current, embedded):
            return self._described[embedded.name]
        self._differing_servers += 1
        specs = embedded.extra_specs
        if specs is None:
            specs = {} if current is None or current.extra_specs is None else current.extra_specs
        amounts = (embedded.vcpus, embedded.ram_mb, embedded.disk_gb)
        key = (embedded.name, *amounts, frozenset(specs.items()), server.from_volume)
        if key not in self._from_servers:
            name = self._name(embedded.name, from_volume=server.from_volume)
            self._from_servers[key] = _flavor(name, embedded, specs)
        return self._from_servers[key]

    def _name(self, name: str, *, from_volume: bool) -> str:
        wanted = name if name and name.isprintable() else "a flavor"
        wanted += ", from volume" if from_volume else ", as servers have it"
        chosen, number = wanted, 1
        while chosen in self._taken:
            number += 1
            chosen = f"{wanted} ({number})"
        self._taken.add(chosen)
        return chosen

    def by_name(self, remarks: list[str]) -> dict[str, Flavor]:
        if self._from_servers:
            remarks.append(
                f"added to the file: {counted(len(self._from_servers), 'flavor')}, such as "
                f"{next(iter(self._from_servers.values())).name!r}, for "
                f"{counted(self._differing_servers, 'server')} whose flavor has changed, or whose "
                f"root disk is on a volume"
            )
        return _sorted([*self._described.values(), *self._from_servers.values()])


def _same(current: SeenFlavor, embedded: SeenFlavor) -> bool:
    """Return whether a server's embedded flavor equals the current one, as far as shown."""
    amounts = [(each.vcpus, each.ram_mb, each.disk_gb) for each in (current, embedded)]
    hidden = current.extra_specs is None or embedded.extra_specs is None
    return amounts[0] == amounts[1] and (hidden or current.extra_specs == embedded.extra_specs)


def _flavor(name: str, seen: SeenFlavor, extra_specs: Mapping[str, str]) -> Flavor:
    return Flavor(
        name, seen.vcpus, seen.ram_mb, seen.disk_gb, dict(seen.extra_specs or extra_specs)
    )


def _groups(
    seen: Sequence[SeenGroup], remarks: list[str]
) -> tuple[dict[str, ServerGroup], dict[str, str]]:
    """Return the groups by name, and the name of the group of each server by the server's UUID."""
    names = own_names((group.uuid, group.name) for group in seen)
    groups, names_by_server = [], {}
    for group in seen:
        name = names[group.uuid]
        try:
            policy = Policy.parse(group.policy)
            rules = parse_rules(policy, group.rules)
        except errors.InvalidServerGroup as error:
            remarks.append(f"not in the file: server group {group.name!r}: {error}")
            continue
        groups.append(ServerGroup(name, policy, rules, uuid=group.uuid))
        names_by_server.update(dict.fromkeys(group.members, name))
    return _sorted(groups), names_by_server


def _servers(
    seen: Sequence[SeenServer],
    places: Places,
    flavors: _Flavors,
    group_of: Mapping[str, str],
    remarks: list[str],
) -> list[Server]:
    # A paged listing may repeat a server if others are created or deleted meanwhile.
    placed = {server.uuid: server for server in seen if places.of_server(server) is not None}
    names = own_names((server.uuid, server.name) for server in placed.values())
    _remark_on_left_out(seen, places, remarks)
    return sorted(
        (
            Server(
                server.uuid,
                names[server.uuid],
                flavors.of(server),
                places.of_server(server) or "",
                group_of.get(server.uuid),
                server.project,
                server.user,
                server.pinned_zone,
                server.image_properties,
                server.scheduler_hints,
            )
            for server in placed.values()
        ),
        key=lambda server: server.name,
    )


def _remark_on_left_out(seen: Sequence[SeenServer], places: Places, remarks: list[str]) -> None:
    kinds = {
        "on no host, being built, shelved or in error": [each.host is None for each in seen],
        "whose host Nova does not show without the policy rule "
        "os_compute_api:os-extended-server-attributes": [each.host == "" for each in seen],
        "on hosts that Nova does not list": [
            bool(each.host) and places.of_server(each) is None for each in seen
        ],
    }
    remarks.extend(
        f"not in the file: {counted(sum(those), 'server')} {which}"
        for which, those in kinds.items()
        if any(those)
    )


def _aggregates(
    seen: Sequence[SeenAggregate], places: Places, remarks: list[str]
) -> dict[str, Aggregate]:
    names = own_names((aggregate.uuid, aggregate.name) for aggregate in seen)
    unknown = {host for each in seen for host in each.hosts if not places.of_service(host)}
    if unknown:
        remarks.append(
            f"not in the file: {counted(len(unknown), 'host')} of aggregates, such as "
            f"{min(unknown)!r}, that Nova does not list as hypervisors"
        )
    return _sorted(
        Aggregate(
            names[each.uuid],
            dict(each.metadata),
            tuple(name for host in each.hosts for name in places.of_service(host)),
            each.uuid,
        )
        for each in seen
    )


def _sorted(named: Iterable[_NamedT]) -> dict[str, _NamedT]:
    return {each.name: each for each in sorted(named, key=lambda each: each.name)}
