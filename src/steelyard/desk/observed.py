"""What is read of a real cloud: records of Nova's and Placement's APIs as values."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

RESOURCES = {"VCPU": "vcpus", "MEMORY_MB": "ram_mb", "DISK_GB": "disk_gb"}
"""The resource classes that a described cloud knows, and what it calls them."""

_GREATEST = 10**15 - 1


@dataclasses.dataclass(frozen=True, slots=True)
class Hypervisor:
    uuid: str
    node: str
    host: str
    """The name of its compute service, which those of several nodes share."""
    out_of_service: str
    totals: Mapping[str, int]
    used: Mapping[str, int]
    """With what is reserved."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Hypervisor":
        names = {"vcpus": "vcpus", "memory_mb": "ram_mb", "local_gb": "disk_gb"}
        return cls(
            _text(record["id"]),
            _text(record["hypervisor_hostname"]),
            _text(record["service"]["host"]),
            _out_of_service(record),
            {ours: _amount(record[theirs]) for theirs, ours in names.items()},
            {ours: _amount(record[f"{theirs}_used"]) for theirs, ours in names.items()},
        )


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
    """Of compute services."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "SeenAggregate":
        return cls(
            _text(record["uuid"]),
            _text(record["name"]),
            _texts(record["metadata"]),
            [_text(host) for host in record["hosts"]],
        )


@dataclasses.dataclass(frozen=True, slots=True)
class SeenFlavor:
    uuid: str
    """Empty for the flavor that a server has kept."""
    name: str
    vcpus: int
    ram_mb: int
    disk_gb: int
    """All that it gets of the host's: root, ephemeral and swap."""
    extra_specs: Mapping[str, str] | None
    """None where they are not shown."""
    public: bool = True

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "SeenFlavor":
        specs = record.get("extra_specs")
        return cls(
            _text(record["id"]),
            _text(record["name"]),
            _amount(record["vcpus"]),
            _amount(record["ram"]),
            _amount(record["disk"]) + _more_disk(record, "OS-FLV-EXT-DATA:ephemeral"),
            None if specs is None else _texts(specs),
            record.get("os-flavor-access:is_public") is not False,
        )

    @classmethod
    def of_server(cls, record: Mapping[str, Any]) -> "SeenFlavor":
        """The one that the server was made with. A root disk on a volume is not the host's."""
        kept = record["flavor"]
        specs = kept.get("extra_specs")
        return cls(
            "",
            _text(kept["original_name"]),
            _amount(kept["vcpus"]),
            _amount(kept["ram"]),
            (0 if record.get("image") == "" else _amount(kept["disk"]))
            + _more_disk(kept, "ephemeral"),
            None if specs is None else _texts(specs),
        )


def _more_disk(record: Mapping[str, Any], ephemeral: str) -> int:
    """What Nova asks Placement for besides the root disk: swap is in MiB, and rounded up."""
    swap = _amount(record.get("swap") or 0)
    return _amount(record.get(ephemeral) or 0) + -(-swap // 1024)


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
            _text(record["id"]),
            _text(record["name"]),
            record["policy"],
            record["rules"] or {},
            [_text(member) for member in record["members"]],
        )


@dataclasses.dataclass(frozen=True, slots=True)
class SeenServer:
    uuid: str
    name: str
    host: str | None
    """Of the compute service; None for a server that has none, empty where it is not shown."""
    node: str
    flavor: SeenFlavor
    from_volume: bool = False

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "SeenServer":
        host = record.get("OS-EXT-SRV-ATTR:host", "")
        return cls(
            _text(record["id"]),
            _text(record["name"]),
            None if host is None else _text(host),
            _text(record.get("OS-EXT-SRV-ATTR:hypervisor_hostname") or ""),
            SeenFlavor.of_server(record),
            record.get("image") == "",
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0
    limited: bool = False
    """Whether one server may not have any amount up to the total."""

    @property
    def limit(self) -> int:
        """How much servers may use."""
        return int(max(self.total - self.reserved, 0) * self.allocation_ratio)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Inventory":
        total = _amount(record["total"])
        limited = (
            record.get("min_unit", 1) > 1
            or record.get("step_size", 1) > 1
            or record.get("max_unit", total) < total
        )
        ratio = float(record.get("allocation_ratio", 1.0))
        return cls(total, _amount(record.get("reserved", 0)), ratio, limited)


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider that is a host; None is what is not shown of it."""

    inventories: Mapping[str, Inventory] | None
    usages: Mapping[str, int] | None
    traits: frozenset[str] | None
    nested: bool = False
    """Whether it has providers below it."""


def roots(answer: Mapping[str, Any]) -> dict[str, str]:
    """All providers, each with the one at the top of its tree."""
    return {
        _text(each["uuid"]): _text(each["root_provider_uuid"])
        for each in answer["resource_providers"]
    }


def inventories(answer: Mapping[str, Any]) -> dict[str, Inventory]:
    return {name: Inventory.of(record) for name, record in answer["inventories"].items()}


def usages(answer: Mapping[str, Any]) -> dict[str, int]:
    return {_text(name): _amount(used) for name, used in answer["usages"].items()}


def traits(answer: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(map(_text, answer["traits"]))


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """All that was read, and what could not be."""

    hypervisors: Sequence[Hypervisor]
    aggregates: Sequence[SeenAggregate] = ()
    flavors: Sequence[SeenFlavor] = ()
    groups: Sequence[SeenGroup] = ()
    servers: Sequence[SeenServer] = ()
    providers: Mapping[str, Provider] | None = None
    """By the UUIDs of hypervisors; None where there is no Placement to be seen."""
    unseen: Sequence[str] = ()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.100} is no text")
    # What JSON can say and no file can: half of a character.
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _texts(value: Any) -> dict[str, str]:
    return {_text(key): _text(item) for key, item in value.items()}


def _amount(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _GREATEST:
        raise ValueError(f"{value!r:.100} is no whole number from 0 to {_GREATEST}")
    return value
