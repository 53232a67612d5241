"""Responses of Nova and Placement, parsed into values.

Each ``of`` raises LookupError, TypeError, ValueError or AttributeError for a malformed record.
"""

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from steelyard.cloud.values import CPUInfo
from steelyard.resources import flavor_disk
from steelyard.traits import Inventory, ResourceProvider
from steelyard.traits.providers import UNLIMITED

ValueT = TypeVar("ValueT")

_GREATEST = 10**15 - 1

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
            _field(record, "id", _text),
            _field(record, "hypervisor_hostname", _text),
            _field(record["service"], "host", _text),
            _out_of_service(record),
            {ours: _field(record, theirs, _amount) for theirs, ours in names.items()},
            {ours: _field(record, f"{theirs}_used", _amount) for theirs, ours in names.items()},
            _text(record.get("hypervisor_type") or ""),
            _field(record, "hypervisor_version", _amount)
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
        {_text(name): _amount(each) for name, each in numbers if each is not None},
    )


def _words(value: Any) -> list[str]:
    return [_text(each) for each in (value if isinstance(value, list) else [value]) if each]


def _out_of_service(record: Mapping[str, Any]) -> str:
    reasons = []
    if record["status"] != "enabled":
        reason = record["service"].get("disabled_reason")
        reasons.append(f"disabled: {_text(reason)}" if reason else "disabled")
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
            _field(record, "uuid", _text),
            _field(record, "name", _text),
            _field(record, "metadata", _texts),
            _field(record, "hosts", _list_of_texts),
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
    def of(cls, record: Mapping[str, Any]) -> "SeenFlavor":
        return cls(
            _field(record, "id", _text),
            _field(record, "name", _text),
            _field(record, "vcpus", _amount),
            _field(record, "ram", _amount),
            _disk(record, "OS-FLV-EXT-DATA:ephemeral"),
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
            _field(embedded, "original_name", _text),
            _field(embedded, "vcpus", _amount),
            _field(embedded, "ram", _amount),
            _disk(embedded, "ephemeral", root_on_volume=record.get("image") == ""),
            _extra_specs(embedded),
        )


def _disk(record: Mapping[str, Any], ephemeral: str, *, root_on_volume: bool = False) -> int:
    """Return the total disk of a flavor. ``ephemeral`` names the field of its ephemeral disk."""
    return flavor_disk(
        0 if root_on_volume else _field(record, "disk", _amount),
        _field(record, ephemeral, _amount) if record.get(ephemeral) else 0,
        _field(record, "swap", _amount) if record.get("swap") else 0,
    )


def _extra_specs(record: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the extra specs, or None if Nova does not show them.

    Nova's database may have null as a value; it becomes an empty text.
    """
    if record.get("extra_specs") is None:
        return None
    specs = _field(record, "extra_specs", _object)
    return _texts({name: "" if value is None else value for name, value in specs.items()})


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
            _field(record, "id", _text),
            _field(record, "name", _text),
            record["policy"],
            record["rules"] or {},
            _field(record, "members", _list_of_texts),
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
            _field(record, "id", _text),
            _field(record, "name", _text),
            None if host is None else _text(host),
            _text(record.get("OS-EXT-SRV-ATTR:hypervisor_hostname") or ""),
            SeenFlavor.of_server(record),
            record.get("image") == "",
            _text(record.get("tenant_id") or ""),
            _text(record.get("user_id") or ""),
            _text(record.get("pinned_availability_zone") or ""),
            _properties((record.get("image") or {}).get("properties") or {}),
            _hints(record.get("scheduler_hints") or {}),
        )


def _properties(value: Any) -> dict[str, str]:
    """Return image properties. Nova has texts, but its API promises none."""
    return {_text(name): _as_text(each) for name, each in _object(value).items()}


def _hints(value: Any) -> dict[str, tuple[str, ...]]:
    """Return the values of each scheduler hint; Nova shows one value or a list."""
    return {
        _text(name): tuple(map(_as_text, each if isinstance(each, list) else [each]))
        for name, each in _object(value).items()
    }


def _as_text(value: Any) -> str:
    return _text(value if isinstance(value, str) else json.dumps(value))


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
            _field(given, "total", _amount),
            _field(given, "reserved", _amount),
            _field(given, "allocation_ratio", _ratio),
            *(_field(given, name, _unit) for name in _UNITS),
        )

    def with_used(self, used: int) -> Inventory:
        """Return the inventory as a value, of which this amount is in use."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return Inventory(used=used, **fields)


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
            _field(each, "uuid", _text),
            _text(each.get("name") or ""),
            _text(each["parent_provider_uuid"]) if each.get("parent_provider_uuid") else None,
            _field(each, "root_provider_uuid" if each["root_provider_uuid"] else "uuid", _text),
        )
        for each in answer["resource_providers"]
    ]
    return {each.uuid: each for each in found}


def inventories(answer: Mapping[str, Any]) -> dict[str, SeenInventory]:
    return _by_name(answer["inventories"], SeenInventory.of)


def usages(answer: Mapping[str, Any]) -> dict[str, int]:
    return _by_name(answer["usages"], _amount)


def traits(answer: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(map(_text, answer["traits"]))


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


def _field(record: Any, name: str, read: Callable[[Any], ValueT]) -> ValueT:
    """Return the parsed value of a field. Raises ValueError, naming the field, if it is invalid."""
    try:
        return read(record[name])
    except KeyError:
        raise ValueError(f"{name}: missing") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{name}: {error}") from error


def _by_name(value: Any, read: Callable[[Any], ValueT]) -> dict[str, ValueT]:
    return {_text(name): _field(value, name, read) for name in _object(value)}


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected an object, got {value!r:.100}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r:.100}")
    # JSON can contain a lone surrogate, which cannot be written to a file.
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _texts(value: Any) -> dict[str, str]:
    return _by_name(value, _text)


def _list_of_texts(value: Any) -> list[str]:
    return [_text(item) for item in value]


def _amount(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _GREATEST:
        raise ValueError(f"expected a whole number from 0 to {_GREATEST}, got {value!r:.100}")
    return value


def _unit(value: Any) -> int:
    if _amount(value) < 1:
        raise ValueError("expected at least 1, got 0")
    return int(value)


def _ratio(value: Any) -> float:
    if not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise ValueError(f"expected a finite number of at least 0, got {value!r:.100}")
    return float(value)
