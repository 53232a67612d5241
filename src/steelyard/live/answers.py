"""Responses of Nova and Placement, parsed into values.

Each ``of`` raises LookupError, TypeError, ValueError or AttributeError for a malformed record.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.cloud.values import CPUInfo
from steelyard.live import fields
from steelyard.resources import flavor_disk
from steelyard.traits import Inventory, ResourceProvider
from steelyard.traits.providers import UNLIMITED

_UNITS = {"min_unit": 1, "max_unit": UNLIMITED, "step_size": 1}
"""Placement's limits of single allocations, with their defaults."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hypervisor:
    uuid: str
    node: str
    host: str
    """The name of the compute service. Several nodes may share one."""
    out_of_service: str
    totals: Mapping[str, int]
    used: Mapping[str, int]
    """Includes the reserved amounts."""
    kind: str = ""
    version: int | None = None
    cpu: CPUInfo | None = None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Hypervisor":
        names = {"vcpus": "vcpus", "memory_mb": "ram_mb", "local_gb": "disk_gb"}
        return cls(
            fields.read(record, "id", fields.text),
            fields.read(record, "hypervisor_hostname", fields.text),
            fields.read(record["service"], "host", fields.text),
            _out_of_service(record),
            {ours: fields.read(record, theirs, fields.amount) for theirs, ours in names.items()},
            {
                ours: fields.read(record, f"{theirs}_used", fields.amount)
                for theirs, ours in names.items()
            },
            fields.text(record.get("hypervisor_type") or ""),
            fields.read(record, "hypervisor_version", fields.amount)
            if record.get("hypervisor_version") is not None
            else None,
            _cpu(record.get("cpu_info")),
        )


def _cpu(value: Any) -> CPUInfo | None:
    """Return the CPU of a hypervisor; None if the hypervisor reports none.

    Each driver of Nova reports its own fields. Some report a list of all vendors and models.
    """
    if not isinstance(value, Mapping) or not value:
        return None
    arch, vendor, model = (", ".join(_words(value.get(n))) for n in ("arch", "vendor", "model"))
    topology = value.get("topology")
    numbers = topology.items() if isinstance(topology, Mapping) else ()
    return CPUInfo(
        arch,
        vendor,
        model,
        frozenset(_words(value.get("features"))),
        {fields.text(name): fields.amount(each) for name, each in numbers if each is not None},
    )


def _words(value: Any) -> list[str]:
    return [fields.text(each) for each in (value if isinstance(value, list) else [value]) if each]


def _out_of_service(record: Mapping[str, Any]) -> str:
    reasons = []
    if record["status"] != "enabled":
        reason = record["service"].get("disabled_reason")
        reasons.append(f"disabled: {fields.text(reason)}" if reason else "disabled")
    if record["state"] != "up":
        reasons.append("down")
    return "; ".join(reasons)


@dataclasses.dataclass(frozen=True, slots=True)
class SeenAggregate:
    uuid: str
    name: str
    metadata: Mapping[str, str]
    hosts: Sequence[str]
    """Names of compute services."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "SeenAggregate":
        return cls(
            fields.read(record, "uuid", fields.text),
            fields.read(record, "name", fields.text),
            fields.read(record, "metadata", fields.texts),
            fields.read(record, "hosts", fields.list_of_texts),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class SeenFlavor:
    uuid: str
    """Empty for the flavor embedded in a server."""
    name: str
    vcpus: int
    ram_mb: int
    disk_gb: int
    """Root, ephemeral and swap disk together, as far as they use the host's disk."""
    extra_specs: Mapping[str, str] | None
    """None if Nova does not show them."""

    @classmethod
    def of(cls, record: Mapping[str, Any], *, root_on_volume: bool = False) -> "SeenFlavor":
        """Return a flavor of Nova's list. A root disk on a volume does not count."""
        return cls(
            fields.read(record, "id", fields.text),
            fields.read(record, "name", fields.text),
            fields.read(record, "vcpus", fields.amount),
            fields.read(record, "ram", fields.amount),
            _disk(record, "OS-FLV-EXT-DATA:ephemeral", root_on_volume=root_on_volume),
            _extra_specs(record),
        )

    @classmethod
    def of_server(cls, record: Mapping[str, Any]) -> "SeenFlavor":
        """Return the flavor embedded in a server, as it was when the server was created.

        A root disk on a volume does not count, since it does not use the host's disk.
        """
        embedded = record["flavor"]
        return cls(
            "",
            fields.read(embedded, "original_name", fields.text),
            fields.read(embedded, "vcpus", fields.amount),
            fields.read(embedded, "ram", fields.amount),
            _disk(embedded, "ephemeral", root_on_volume=record.get("image") == ""),
            _extra_specs(embedded),
        )


def _disk(record: Mapping[str, Any], ephemeral: str, *, root_on_volume: bool) -> int:
    """Return the total disk of a flavor. ``ephemeral`` names the field of its ephemeral disk."""
    return flavor_disk(
        0 if root_on_volume else fields.read(record, "disk", fields.amount),
        fields.read(record, ephemeral, fields.amount) if record.get(ephemeral) else 0,
        fields.read(record, "swap", fields.amount) if record.get("swap") else 0,
    )


def _extra_specs(record: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the extra specs, or None if Nova does not show them.

    Nova's database may have null as a value; it becomes an empty text.
    """
    if record.get("extra_specs") is None:
        return None
    specs = fields.read(record, "extra_specs", fields.mapping)
    return fields.texts({name: "" if value is None else value for name, value in specs.items()})


@dataclasses.dataclass(frozen=True, slots=True)
class SeenGroup:
    uuid: str
    name: str
    policy: Any
    rules: Any
    members: Sequence[str]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "SeenGroup":
        return cls(
            fields.read(record, "id", fields.text),
            fields.read(record, "name", fields.text),
            record["policy"],
            record["rules"] or {},
            fields.read(record, "members", fields.list_of_texts),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class SeenServer:
    uuid: str
    name: str
    host: str | None
    """The name of the compute service.

    None if the server is on no host; empty if Nova does not show it.
    """
    node: str
    flavor: SeenFlavor
    from_volume: bool = False
    project: str = ""
    user: str = ""
    pinned_zone: str = ""
    image_properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    scheduler_hints: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "SeenServer":
        host = record.get("OS-EXT-SRV-ATTR:host", "")
        return cls(
            fields.read(record, "id", fields.text),
            fields.read(record, "name", fields.text),
            None if host is None else fields.text(host),
            fields.text(record.get("OS-EXT-SRV-ATTR:hypervisor_hostname") or ""),
            SeenFlavor.of_server(record),
            record.get("image") == "",
            fields.text(record.get("tenant_id") or ""),
            fields.text(record.get("user_id") or ""),
            fields.text(record.get("pinned_availability_zone") or ""),
            fields.by_name((record.get("image") or {}).get("properties") or {}, fields.as_text),
            _hints(record.get("scheduler_hints") or {}),
        )


def _hints(value: Any) -> dict[str, tuple[str, ...]]:
    """Return the values of each scheduler hint; Nova shows one value or a list."""
    return {
        fields.text(name): tuple(map(fields.as_text, each if isinstance(each, list) else [each]))
        for name, each in fields.mapping(value).items()
    }


@dataclasses.dataclass(frozen=True, slots=True)
class SeenInventory:
    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0
    min_unit: int = 1
    max_unit: int = UNLIMITED
    step_size: int = 1

    @property
    def limited(self) -> bool:
        """Whether min_unit, max_unit or step_size exclude some amounts up to the total."""
        return self.min_unit > 1 or self.step_size > 1 or self.max_unit < self.total

    @property
    def limit(self) -> int:
        """The amount that servers may use, after reservation and overcommitment."""
        return int(max(self.total - self.reserved, 0) * self.allocation_ratio)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "SeenInventory":
        given = {"reserved": 0, "allocation_ratio": 1.0, **_UNITS, **record}
        return cls(
            fields.read(given, "total", fields.amount),
            fields.read(given, "reserved", fields.amount),
            fields.read(given, "allocation_ratio", fields.ratio),
            *(fields.read(given, name, fields.unit) for name in _UNITS),
        )

    def with_used(self, used: int) -> Inventory:
        """Return the inventory as a value, of which this amount is in use."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return Inventory(used=used, **values)


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """The resource provider of a host. A field is None if Placement does not show it."""

    inventories: Mapping[str, SeenInventory] | None
    usages: Mapping[str, int] | None
    traits: frozenset[str] | None
    aggregates: frozenset[str] = frozenset()
    """The UUIDs of the aggregates in Nova that Placement has the provider in, too."""
    nested: tuple[ResourceProvider, ...] = ()
    """The providers below it; those directly below it have no parent."""


class ListedProvider(NamedTuple):
    """A resource provider as Placement lists it."""

    uuid: str
    name: str
    parent: str | None
    root: str


def listed(answer: Mapping[str, Any]) -> dict[str, ListedProvider]:
    """Return the providers by UUID.

    A provider that was created before nested providers existed may name no root. It is then its own
    root.
    """
    found = [
        ListedProvider(
            fields.read(each, "uuid", fields.text),
            fields.text(each.get("name") or ""),
            fields.text(each["parent_provider_uuid"]) if each.get("parent_provider_uuid") else None,
            fields.read(
                each, "root_provider_uuid" if each["root_provider_uuid"] else "uuid", fields.text
            ),
        )
        for each in answer["resource_providers"]
    ]
    return {each.uuid: each for each in found}


def inventories(answer: Mapping[str, Any]) -> dict[str, SeenInventory]:
    return fields.by_name(answer["inventories"], SeenInventory.of)


def usages(answer: Mapping[str, Any]) -> dict[str, int]:
    return fields.by_name(answer["usages"], fields.amount)


def traits(answer: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(map(fields.text, answer["traits"]))


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """Everything that was read, with messages about data that was not accessible."""

    hypervisors: Sequence[Hypervisor]
    aggregates: Sequence[SeenAggregate] = ()
    flavors: Sequence[SeenFlavor] = ()
    groups: Sequence[SeenGroup] = ()
    servers: Sequence[SeenServer] = ()
    providers: Mapping[str, Provider] | None = None
    """By the UUIDs of hypervisors; None if Placement is not accessible."""
    unseen: Sequence[str] = ()
