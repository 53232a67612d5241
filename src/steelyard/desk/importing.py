"""A described cloud from what was read of a real one, with a remark on each thing that differs."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from steelyard import errors
from steelyard.desk.observed import (
    RESOURCES,
    Hypervisor,
    Inventory,
    Observed,
    Provider,
    SeenAggregate,
    SeenFlavor,
    SeenGroup,
    SeenServer,
)
from steelyard.desk.wording import counted
from steelyard.filters.capacity import on_host
from steelyard.groups import Policy, ServerGroup, parse_rules
from steelyard.scheduler import Cloud, Flavor, Host
from steelyard.scheduler.cloud import Aggregate, Server
from steelyard.traits.flavors import flavor_amounts

_NamedT = TypeVar("_NamedT", Host, Aggregate, Flavor, ServerGroup)


@dataclasses.dataclass(frozen=True, slots=True)
class Imported:
    cloud: Cloud
    remarks: Sequence[str]
    """What the description does not say, or says otherwise, and why."""


def imported(seen: Observed) -> Imported:
    """The described cloud. Everything is in the order of names, so that files can be compared."""
    remarks = list(seen.unseen)
    places = _Places(seen.hypervisors)
    flavors = _Flavors(seen.flavors)
    groups, group_of = _groups(seen.groups, remarks)
    servers = _servers(seen.servers, places, flavors, group_of, remarks)
    hosts = _hosts(seen, places, servers, remarks)
    cloud = Cloud(
        hosts,
        _aggregates(seen.aggregates, places, remarks),
        flavors.by_name(remarks),
        groups,
    )
    return Imported(cloud.with_servers(servers), remarks)


class _Places:
    """The hosts of the file, by what compute services and their nodes are called."""

    def __init__(self, hypervisors: Sequence[Hypervisor]) -> None:
        services = collections.Counter(each.host for each in hypervisors)
        self.names = _own_names(
            (each.uuid, each.host if services[each.host] == 1 else each.node)
            for each in hypervisors
        )
        self._of_service: dict[str, list[str]] = {}
        self._of_node: dict[tuple[str, str], str] = {}
        for each in hypervisors:
            name = self.names[each.uuid]
            self._of_service.setdefault(each.host, []).append(name)
            self._of_node[each.host, each.node] = name

    def of_service(self, host: str) -> list[str]:
        """More than one where a service has several nodes."""
        return sorted(self._of_service.get(host, []))

    def of_server(self, server: SeenServer) -> str | None:
        if server.host is None:
            return None
        alone = self._of_service.get(server.host, [])
        return alone[0] if len(alone) == 1 else self._of_node.get((server.host, server.node))


class _Flavors:
    """The flavors of the file: those that there are, and those that servers have kept."""

    def __init__(self, flavors: Sequence[SeenFlavor]) -> None:
        self._there = {flavor.name: flavor for flavor in flavors}
        names = _own_names((flavor.uuid, flavor.name) for flavor in flavors)
        self._described = {
            flavor.name: _flavor(names[flavor.uuid], flavor, {}) for flavor in flavors
        }
        self._taken = set(names.values())
        self._kept: dict[object, Flavor] = {}
        self._servers_with_kept = 0

    def of(self, server: SeenServer) -> Flavor:
        """The server's flavor: one that is there, or one of its own where that is another."""
        kept = server.flavor
        there = self._there.get(kept.name)
        if there is not None and _same(there, kept):
            return self._described[kept.name]
        self._servers_with_kept += 1
        specs = kept.extra_specs
        if specs is None:
            specs = {} if there is None or there.extra_specs is None else there.extra_specs
        amounts = (kept.vcpus, kept.ram_mb, kept.disk_gb)
        key = (kept.name, *amounts, frozenset(specs.items()), server.from_volume)
        if key not in self._kept:
            name = self._name(kept.name, from_volume=server.from_volume)
            self._kept[key] = _flavor(name, kept, specs)
        return self._kept[key]

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
        if self._kept:
            remarks.append(
                f"added to the file: {counted(len(self._kept), 'flavor')}, such as "
                f"{next(iter(self._kept.values())).name!r}, for "
                f"{counted(self._servers_with_kept, 'server')} with another than there is now, or "
                f"with the root disk on a volume"
            )
        return _sorted([*self._described.values(), *self._kept.values()])


def _same(there: SeenFlavor, kept: SeenFlavor) -> bool:
    """Whether a server got what a flavor gives today, as far as is shown."""
    amounts = [(each.vcpus, each.ram_mb, each.disk_gb) for each in (there, kept)]
    hidden = there.extra_specs is None or kept.extra_specs is None
    return amounts[0] == amounts[1] and (hidden or there.extra_specs == kept.extra_specs)


def _flavor(name: str, seen: SeenFlavor, extra_specs: Mapping[str, str]) -> Flavor:
    return Flavor(
        name, seen.vcpus, seen.ram_mb, seen.disk_gb, dict(seen.extra_specs or extra_specs)
    )


def _groups(
    seen: Sequence[SeenGroup], remarks: list[str]
) -> tuple[dict[str, ServerGroup], dict[str, str]]:
    """The groups by name, and the names by the UUIDs of servers."""
    names = _own_names((group.uuid, group.name) for group in seen)
    groups, names_by_server = [], {}
    for group in seen:
        name = names[group.uuid]
        try:
            policy = Policy.parse(group.policy)
            rules = parse_rules(policy, group.rules)
        except errors.InvalidServerGroup as error:
            remarks.append(f"the server group {group.name!r} is not in the file: {error}")
            continue
        groups.append(ServerGroup(name, policy, rules, uuid=group.uuid))
        names_by_server.update(dict.fromkeys(group.members, name))
    return _sorted(groups), names_by_server


def _servers(
    seen: Sequence[SeenServer],
    places: _Places,
    flavors: _Flavors,
    group_of: Mapping[str, str],
    remarks: list[str],
) -> list[Server]:
    # Who is listed in pages may be listed twice, where others come and go meanwhile.
    placed = {server.uuid: server for server in seen if places.of_server(server) is not None}
    names = _own_names((server.uuid, server.name) for server in placed.values())
    _remark_on_left_out(seen, places, remarks)
    return sorted(
        (
            Server(
                server.uuid,
                names[server.uuid],
                flavors.of(server),
                places.of_server(server) or "",
                group_of.get(server.uuid),
            )
            for server in placed.values()
        ),
        key=lambda server: server.name,
    )


def _remark_on_left_out(seen: Sequence[SeenServer], places: _Places, remarks: list[str]) -> None:
    kinds = {
        "on no host, being built, shelved or in error": [each.host is None for each in seen],
        "whose hosts Nova does not show; it does to who may "
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
    seen: Sequence[SeenAggregate], places: _Places, remarks: list[str]
) -> dict[str, Aggregate]:
    names = _own_names((aggregate.uuid, aggregate.name) for aggregate in seen)
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
        )
        for each in seen
    )


def _hosts(
    seen: Observed, places: _Places, servers: Sequence[Server], remarks: list[str]
) -> dict[str, Host]:
    by_servers: dict[str, collections.Counter[str]] = {}
    for server in servers:
        used = by_servers.setdefault(server.host, collections.Counter())
        used.update(flavor_amounts(server.flavor))
    providers = seen.providers or {}
    hosts, overrun = [], collections.Counter[str]()
    for each in seen.hypervisors:
        name = places.names[each.uuid]
        there = providers.get(each.uuid)
        supply = _Supply.of(each, there)
        left = supply.without(on_host(by_servers.get(name, {}), supply.resources))
        overrun.update(kind for kind, used in left.used.items() if used < 0)
        hosts.append(_host(name, each, left, there))
    _remark_on_providers(seen, remarks)
    remarks.extend(
        f"less {kind} used than the flavors of servers say: {counted(count, 'host')}; the file "
        f"has less of it free there than the cloud"
        for kind, count in sorted(overrun.items())
    )
    return _sorted(hosts)


@dataclasses.dataclass(frozen=True, slots=True)
class _Supply:
    """What a host has of each resource, by the names that files have for them."""

    totals: Mapping[str, int]
    reserved: Mapping[str, int]
    ratios: Mapping[str, float]
    resources: Mapping[str, int]
    """Of other resource classes, what servers may use."""
    used: Mapping[str, int]

    @classmethod
    def of(cls, hypervisor: Hypervisor, provider: Provider | None) -> "_Supply":
        """As Placement has it; what it does not show, as Nova does."""
        totals, reserved, ratios = hypervisor.totals, dict.fromkeys(RESOURCES.values(), 0), {}
        resources: dict[str, int] = {}
        if provider is not None and provider.inventories is not None:
            found = {
                kind: provider.inventories.get(name, Inventory(0))
                for name, kind in RESOURCES.items()
            }
            totals = {kind: each.total for kind, each in found.items()}
            reserved = {kind: each.reserved for kind, each in found.items()}
            ratios = {kind: each.allocation_ratio for kind, each in found.items() if each.total}
            resources = {
                name: each.limit
                for name, each in provider.inventories.items()
                if name not in RESOURCES
            }
        if provider is not None and provider.usages is not None:
            names = {**RESOURCES, **{name: name for name in resources}}
            used = {kind: provider.usages.get(name, 0) for name, kind in names.items()}
        else:
            used = {kind: max(hypervisor.used[kind] - reserved[kind], 0) for kind in reserved}
        return cls(totals, reserved, ratios, resources, used)

    def without(self, by_servers: Mapping[str, int]) -> "_Supply":
        """With only that as used which is not by these, given by their resource classes."""
        by_kind = {RESOURCES.get(name, name): amount for name, amount in by_servers.items()}
        used = {kind: amount - by_kind.get(kind, 0) for kind, amount in self.used.items()}
        return dataclasses.replace(self, used=used)


def _host(name: str, seen: Hypervisor, supply: _Supply, provider: Provider | None) -> Host:
    return Host(
        name,
        **supply.totals,
        traits=(None if provider is None else provider.traits) or frozenset(),
        uuid=seen.uuid,
        reserved={kind: amount for kind, amount in supply.reserved.items() if amount},
        used={kind: amount for kind, amount in supply.used.items() if amount > 0},
        allocation_ratios=dict(supply.ratios),
        resources=dict(supply.resources),
        out_of_service=seen.out_of_service,
    )


def _remark_on_providers(seen: Observed, remarks: list[str]) -> None:
    """What Placement has and a file cannot say, and what a file says and Placement has not."""
    if seen.providers is None:
        return
    missing = sum(each.uuid not in seen.providers for each in seen.hypervisors)
    if missing:
        remarks.append(
            f"no resource provider in Placement: {counted(missing, 'host')}; what they have is as "
            f"Nova reports it, without traits"
        )
    shown = [each.inventories for each in seen.providers.values() if each.inventories is not None]
    _remark_on_inventories(shown, remarks)
    nested = sum(each.nested for each in seen.providers.values())
    if nested:
        remarks.append(
            f"not in the file: the nested resource providers of {counted(nested, 'host')}, with "
            f"what they have and their traits"
        )


def _remark_on_inventories(shown: Sequence[Mapping[str, Inventory]], remarks: list[str]) -> None:
    without = collections.Counter(
        name for name in RESOURCES for inventories in shown if name not in inventories
    )
    limited = collections.Counter(
        name for inventories in shown for name, each in inventories.items() if each.limited
    )
    for counts, form in (
        (without, "no {} in Placement: {}; flavors that want some fit on none of them in the file"),
        (limited, "not in the file: min_unit, max_unit and step_size, which limit {} on {}"),
    ):
        remarks.extend(
            form.format(name, counted(count, "host")) for name, count in sorted(counts.items())
        )


def _own_names(wanted: Iterable[tuple[str, str]]) -> dict[str, str]:
    """By UUID, a name that can be in a file: the wanted one if only one of them wants it."""
    by_uuid = dict(wanted)
    asking = collections.Counter(by_uuid.values())
    plain = {name for name, count in asking.items() if count == 1 and name and name.isprintable()}
    names = {}
    for uuid, name in by_uuid.items():
        own = name
        if name not in plain:
            own = f"{name} ({uuid})" if name and name.isprintable() else uuid
            while own in plain:
                own += f" ({uuid})"
        names[uuid] = own
    return names


def _sorted(named: Iterable[_NamedT]) -> dict[str, _NamedT]:
    return {each.name: each for each in sorted(named, key=lambda each: each.name)}
