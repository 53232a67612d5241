"""The fields of a host in a cloud file that Nova and Placement know besides its capacity."""

from collections.abc import Iterable, Mapping
from typing import Any

from steelyard import errors
from steelyard.cloud.files import entries, provider_records
from steelyard.cloud.files.records import Field, RecordFields
from steelyard.cloud.files.syntax import Mistake, Path
from steelyard.cloud.values import CPUInfo, Host
from steelyard.text import uuids
from steelyard.traits import ProviderTrees, ResourceProvider

_CPU_TEXTS = ("arch", "vendor", "model")


def _cpu_info(value: Any, path: Path) -> CPUInfo:
    fields = entries.fields(value, path, optional=(*_CPU_TEXTS, "features", "topology"))
    topology = entries.mapping(fields.get("topology", {}), (*path, "topology"))
    arch, vendor, model = (entries.text(fields.get(n, ""), (*path, n)) for n in _CPU_TEXTS)
    return CPUInfo(
        arch,
        vendor,
        model,
        frozenset(entries.texts(fields.get("features", []), (*path, "features"))),
        {name: entries.number(each, (*path, "topology", name)) for name, each in topology.items()},
    )


def _aggregates(value: Any, path: Path) -> frozenset[str]:
    """Return the UUIDs of aggregates in their canonical form."""
    found = []
    for index, text in enumerate(entries.texts(value, path)):
        try:
            found.append(uuids.read(text))
        except ValueError as error:
            raise Mistake(str(error), (*path, str(index)), text=text) from error
    return frozenset(found)


def _providers(value: Any, path: Path, root: Any) -> tuple[ResourceProvider, ...]:
    """Return the providers below that of the host, whose UUID is ``root``."""
    found = provider_records.parse(value, path, root if isinstance(root, str) else None)
    try:
        ProviderTrees(found)
    except errors.InvalidProvider as error:
        raise Mistake(error.message, path, text=error.text) from error
    return tuple(found)


# In the order of the attributes after the limits of single servers.
FIELDS: RecordFields = {
    "node": Field(entries.text, ""),
    "hypervisor_type": Field(entries.text, ""),
    "hypervisor_version": Field(entries.number, None),
    "cpu_info": Field(_cpu_info, None),
    "placement_aggregates": Field(_aggregates, frozenset()),
    "providers": Field(_providers, (), beside="uuid"),
}


def check_unique(hosts: Iterable[Host]) -> None:
    """Raise a Mistake if two resource providers of hosts have the same UUID."""
    owners: dict[str, str] = {}
    for host in hosts:
        given = [(host.uuid, "uuid")] if host.uuid else []
        for uuid, key in [*given, *((each.uuid, "providers") for each in host.providers)]:
            if uuid in owners:
                raise Mistake(
                    f"duplicate UUID {uuid!r}: a provider of host {owners[uuid]!r} has it too",
                    ("hosts", host.name, key),
                    text=uuid,
                )
            owners[uuid] = host.name


def describe(host: Host) -> dict[str, Any]:
    """Return the fields of the host that differ from the default."""
    found: dict[str, Any] = {}
    for name in ("node", "hypervisor_type"):
        if getattr(host, name):
            found[name] = getattr(host, name)
    if host.hypervisor_version is not None:
        found["hypervisor_version"] = host.hypervisor_version
    if host.cpu_info is not None:
        found["cpu_info"] = _described_cpu(host.cpu_info)
    if host.placement_aggregates:
        found["placement_aggregates"] = sorted(host.placement_aggregates)
    if host.providers:
        found["providers"] = provider_records.describe(host.providers)
    return found


def _described_cpu(cpu: CPUInfo) -> Mapping[str, Any]:
    found = {
        **{name: getattr(cpu, name) for name in _CPU_TEXTS},
        "features": sorted(cpu.features),
        "topology": dict(cpu.topology),
    }
    return {name: value for name, value in found.items() if value}
