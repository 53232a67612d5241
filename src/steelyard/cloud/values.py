"""The values that a cloud holds: aggregates, hosts, flavors and servers."""

import dataclasses
from collections.abc import Mapping

from steelyard.traits import ResourceProvider


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """A group of hosts with metadata; two aggregates are never equal."""

    name: str
    metadata: Mapping[str, str]
    hosts: tuple[str, ...]
    uuid: str = ""
    """The UUID of the aggregate in Nova and Placement, if it is known."""


@dataclasses.dataclass(frozen=True, slots=True)
class CPUInfo:
    """The CPU of a host, as its hypervisor reports it."""

    arch: str = ""
    vendor: str = ""
    model: str = ""
    features: frozenset[str] = frozenset()
    topology: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Numbers by ``cells``, ``sockets``, ``cores`` and ``threads``."""


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
    min_units: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """The least amounts that one server may use, by the names of ``used``."""
    max_units: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """The greatest amounts that one server may use, by the names of ``used``."""
    step_sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """The amounts whose multiples one server may use, by the names of ``used``."""
    node: str = ""
    """The name of the hypervisor, if it differs from that of the host."""
    hypervisor_type: str = ""
    hypervisor_version: int | None = None
    cpu_info: CPUInfo | None = None
    placement_aggregates: frozenset[str] = frozenset()
    """The UUIDs of the aggregates in Placement that have the host's resource provider."""
    providers: tuple[ResourceProvider, ...] = ()
    """The resource providers below that of the host; those directly below it have no parent.

    Their used amounts include those of the cloud's servers.
    """


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
    project: str = ""
    user: str = ""
    availability_zone: str = ""
    """The zone that the server is pinned to; empty if it may be moved to other zones."""
    image_properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    scheduler_hints: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
