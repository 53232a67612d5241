"""Conversion of hypervisors and their resource providers into hosts of a cloud."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence

from steelyard.cloud import Host, Server
from steelyard.live.answers import Hypervisor, Observed, Provider, SeenInventory
from steelyard.resources import FIELDS, flavor_amounts, on_host
from steelyard.text.wording import counted


def hosts_of(
    seen: Observed, names: Mapping[str, str], servers: Sequence[Server], remarks: list[str]
) -> list[Host]:
    """Return the hosts; their used amounts do not include those of these servers.

    ``names`` has the names of the hosts by the UUIDs of the hypervisors. Remarks on differences
    from the live cloud are added to ``remarks``.
    """
    by_servers: dict[str, collections.Counter[str]] = {}
    for server in servers:
        used = by_servers.setdefault(server.host, collections.Counter())
        used.update(flavor_amounts(server.flavor))
    providers = seen.providers or {}
    hosts, overrun = [], collections.Counter[str]()
    for each in seen.hypervisors:
        name = names[each.uuid]
        provider = providers.get(each.uuid)
        supply = _Supply.of(each, provider)
        left = supply.without(on_host(by_servers.get(name, {}), supply.resources))
        overrun.update(kind for kind, used in left.used.items() if used < 0)
        hosts.append(_host(name, each, left, provider))
    _remark_on_providers(seen, remarks)
    remarks.extend(
        f"less {kind} used than the flavors of the servers need: {counted(count, 'host')}; the "
        f"file has less free {kind} there than the live cloud"
        for kind, count in sorted(overrun.items())
    )
    return hosts


@dataclasses.dataclass(frozen=True, slots=True)
class _Supply:
    """The amounts of each resource on a host, by their names in the cloud file."""

    totals: Mapping[str, int]
    reserved: Mapping[str, int]
    ratios: Mapping[str, float]
    resources: Mapping[str, int]
    """Usable amounts of other resource classes."""
    used: Mapping[str, int]
    units: Mapping[str, Mapping[str, int]]
    """The limits of single servers, by the names of the host's fields."""

    @classmethod
    def of(cls, hypervisor: Hypervisor, provider: Provider | None) -> "_Supply":
        """Return the amounts in Placement, or those in Nova if Placement does not show them."""
        totals, reserved, ratios = hypervisor.totals, dict.fromkeys(FIELDS.values(), 0), {}
        resources: dict[str, int] = {}
        units: dict[str, dict[str, int]] = {}
        if provider is not None and provider.inventories is not None:
            found = {
                kind: provider.inventories.get(name, SeenInventory(0))
                for name, kind in FIELDS.items()
            }
            totals = {kind: each.total for kind, each in found.items()}
            reserved = {kind: each.reserved for kind, each in found.items()}
            ratios = {kind: each.allocation_ratio for kind, each in found.items() if each.total}
            resources = {
                name: each.limit
                for name, each in provider.inventories.items()
                if name not in FIELDS
            }
            units = _units(provider.inventories)
        if provider is not None and provider.usages is not None:
            names = {**FIELDS, **{name: name for name in resources}}
            used = {kind: provider.usages.get(name, 0) for name, kind in names.items()}
        else:
            used = {kind: max(hypervisor.used[kind] - reserved[kind], 0) for kind in reserved}
        return cls(totals, reserved, ratios, resources, used, units)

    def without(self, by_servers: Mapping[str, int]) -> "_Supply":
        """Return the supply without the amounts, by resource class, that these servers use."""
        by_kind = {FIELDS.get(name, name): amount for name, amount in by_servers.items()}
        used = {kind: amount - by_kind.get(kind, 0) for kind, amount in self.used.items()}
        return dataclasses.replace(self, used=used)


def _units(inventories: Mapping[str, SeenInventory]) -> dict[str, dict[str, int]]:
    """Return the limits of single servers that differ from the defaults of the cloud file."""
    found: dict[str, dict[str, int]] = {"min_units": {}, "max_units": {}, "step_sizes": {}}
    for name, each in inventories.items():
        kind = FIELDS.get(name, name)
        if each.min_unit != 1:
            found["min_units"][kind] = each.min_unit
        if each.max_unit != (each.total if name in FIELDS else each.limit):
            found["max_units"][kind] = each.max_unit
        if each.step_size != 1:
            found["step_sizes"][kind] = each.step_size
    return found


def _host(name: str, seen: Hypervisor, supply: _Supply, provider: Provider | None) -> Host:
    return Host(
        name,
        supply.totals["vcpus"],
        supply.totals["ram_mb"],
        supply.totals["disk_gb"],
        traits=(None if provider is None else provider.traits) or frozenset(),
        uuid=seen.uuid,
        reserved={kind: amount for kind, amount in supply.reserved.items() if amount},
        used={kind: amount for kind, amount in supply.used.items() if amount > 0},
        allocation_ratios=dict(supply.ratios),
        resources=dict(supply.resources),
        out_of_service=seen.out_of_service,
        node="" if seen.node == name else seen.node,
        hypervisor_type=seen.kind,
        hypervisor_version=seen.version,
        cpu_info=seen.cpu,
        placement_aggregates=frozenset() if provider is None else provider.aggregates,
        providers=() if provider is None else provider.nested,
        min_units=supply.units.get("min_units", {}),
        max_units=supply.units.get("max_units", {}),
        step_sizes=supply.units.get("step_sizes", {}),
    )


def _remark_on_providers(seen: Observed, remarks: list[str]) -> None:
    """Add remarks on differences between Placement and the cloud file."""
    if seen.providers is None:
        return
    missing = sum(each.uuid not in seen.providers for each in seen.hypervisors)
    if missing:
        remarks.append(
            f"no resource provider in Placement: {counted(missing, 'host')}; the file has the "
            f"amounts that Nova reports, and no traits"
        )
    shown = [each.inventories for each in seen.providers.values() if each.inventories is not None]
    _remark_on_inventories(shown, remarks)
    nested = sum(bool(each.nested) for each in seen.providers.values())
    if nested:
        remarks.append(
            f"filters do not read the nested resource providers of {counted(nested, 'host')}; "
            f"flavors that need their resources or traits do not fit there in the file"
        )


def _remark_on_inventories(
    shown: Sequence[Mapping[str, SeenInventory]], remarks: list[str]
) -> None:
    without = collections.Counter(
        name for name in FIELDS for inventories in shown if name not in inventories
    )
    limited = collections.Counter(
        name for inventories in shown for name, each in inventories.items() if each.limited
    )
    for counts, form in (
        (without, "no {} in Placement: {}; in the file, flavors that need it do not fit there"),
        (limited, "filters do not read min_unit, max_unit and step_size, which limit {} on {}"),
    ):
        remarks.extend(
            form.format(name, counted(count, "host")) for name, count in sorted(counts.items())
        )
