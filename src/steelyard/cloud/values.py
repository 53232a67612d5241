"""The values that a cloud holds: aggregates, hosts, flavors and servers."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """A group of hosts with metadata; two aggregates are never equal."""

    name: str
    metadata: Mapping[str, str]
    hosts: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host and its capacity."""

    name: str
    vcpus: int
    ram_mb: int
    disk_gb: int
    traits: frozenset[str] = frozenset()
    uuid: str = ""
    """The UUID of its resource provider; if empty, one is derived from the name."""
    reserved: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """The amounts of ``vcpus``, ``ram_mb`` and ``disk_gb`` that no server may use."""
    used: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """The amounts of these, and of ``resources``, that are in use outside the cloud's servers."""
    allocation_ratios: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The allocation ratios of ``vcpus``, ``ram_mb`` and ``disk_gb`` that override the options."""
    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """The amounts of other resource classes that servers may use, by the names in Placement."""
    out_of_service: str = ""
    """The reason why no server may be placed here; empty for a host that is in service."""


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor, with the attribute names of Nova's flavors; RAM is in MiB, the disk in GiB."""

    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server on a host; ``group`` is the name of its server group."""

    uuid: str
    name: str
    flavor: Flavor
    host: str
    group: str | None = None
