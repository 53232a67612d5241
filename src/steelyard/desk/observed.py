"""What is read of a real cloud: records of Nova's and Placement's APIs as values."""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

ValueT = TypeVar("ValueT")

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
            _field(record, "id", _text),
            _field(record, "hypervisor_hostname", _text),
            _field(record["service"], "host", _text),
            _out_of_service(record),
            {ours: _field(record, theirs, _amount) for theirs, ours in names.items()},
            {ours: _field(record, f"{theirs}_used", _amount) for theirs, ours in names.items()},
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
            _field(record, "uuid", _text),
            _field(record, "name", _text),
            _field(record, "metadata", _texts),
            _field(record, "hosts", _list_of_texts),
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

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "SeenFlavor":
        return cls(
            _field(record, "id", _text),
            _field(record, "name", _text),
            _field(record, "vcpus", _amount),
            _field(record, "ram", _amount),
            _field(record, "disk", _amount) + _more_disk(record, "OS-FLV-EXT-DATA:ephemeral"),
            _extra_specs(record),
        )

    @classmethod
    def of_server(cls, record: Mapping[str, Any]) -> "SeenFlavor":
        """The one that the server was made with. A root disk on a volume is not the host's."""
        kept = record["flavor"]
        return cls(
            "",
            _field(kept, "original_name", _text),
            _field(kept, "vcpus", _amount),
            _field(kept, "ram", _amount),
            (0 if record.get("image") == "" else _field(kept, "disk", _amount))
            + _more_disk(kept, "ephemeral"),
            _extra_specs(kept),
        )


def _more_disk(record: Mapping[str, Any], ephemeral: str) -> int:
    """What Nova asks Placement for besides the root disk: swap is in MiB, and rounded up."""
    swap = _field(record, "swap", _amount) if record.get("swap") else 0
    return (_field(record, ephemeral, _amount) if record.get(ephemeral) else 0) + -(-swap // 1024)


def _extra_specs(record: Mapping[str, Any]) -> dict[str, str] | None:
    """A null, which Nova's database may have for a value, is an empty one."""
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
    """Of the compute service; None for a server that has none, empty where it is not shown."""
    node: str
    flavor: SeenFlavor
    from_volume: bool = False

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
        total = _field(record, "total", _amount)
        limited = (
            record.get("min_unit", 1) > 1
            or record.get("step_size", 1) > 1
            or record.get("max_unit", total) < total
        )
        given = {"reserved": 0, "allocation_ratio": 1.0, **record}
        return cls(
            total,
            _field(given, "reserved", _amount),
            _field(given, "allocation_ratio", _ratio),
            limited,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider that is a host; None is what is not shown of it."""

    inventories: Mapping[str, Inventory] | None
    usages: Mapping[str, int] | None
    traits: frozenset[str] | None
    nested: bool = False
    """Whether it has providers below it."""


def roots(answer: Mapping[str, Any]) -> dict[str, str]:
    """All providers, each with the one at the top of its tree.

    One that is older than trees are, and that nobody has changed since, may have none to name.
    """
    return {
        _field(each, "uuid", _text): _field(
            each, "root_provider_uuid" if each["root_provider_uuid"] else "uuid", _text
        )
        for each in answer["resource_providers"]
    }


def inventories(answer: Mapping[str, Any]) -> dict[str, Inventory]:
    return _by_name(answer["inventories"], Inventory.of)


def usages(answer: Mapping[str, Any]) -> dict[str, int]:
    return _by_name(answer["usages"], _amount)


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


def _field(record: Any, name: str, read: Callable[[Any], ValueT]) -> ValueT:
    """What the record has under the name; the error says under which name there is none."""
    try:
        return read(record[name])
    except KeyError:
        raise ValueError(f"{name}: there is none") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{name}: {error}") from error


def _by_name(value: Any, read: Callable[[Any], ValueT]) -> dict[str, ValueT]:
    return {_text(name): _field(value, name, read) for name in _object(value)}


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.100} is no object")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.100} is no text")
    # What JSON can say and no file can: half of a character.
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _texts(value: Any) -> dict[str, str]:
    return _by_name(value, _text)


def _list_of_texts(value: Any) -> list[str]:
    return [_text(item) for item in value]


def _amount(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _GREATEST:
        raise ValueError(f"{value!r:.100} is no whole number from 0 to {_GREATEST}")
    return value


def _ratio(value: Any) -> float:
    if not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise ValueError(f"{value!r:.100} is no finite number from 0 on")
    return float(value)
