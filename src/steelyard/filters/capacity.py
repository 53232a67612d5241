"""Hosts by what they have left."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from oslo_config import cfg

from steelyard import conf as options
from steelyard.attributes import read, read_mapping
from steelyard.filters import base
from steelyard.traits.flavors import flavor_amounts
from steelyard.verdict import PASSED, Verdict


class Supply(NamedTuple):
    """What a host has of one resource."""

    total: float
    limit: float
    """After overcommitment."""
    left: float


# What people call a resource class.
_CALLED = {"VCPU": "vCPUs", "MEMORY_MB": "MiB of RAM", "DISK_GB": "GiB of disk"}

_NONE = Supply(0, 0, 0)


class Shortage(NamedTuple):
    """A resource of which a host has less left than a flavor wants."""

    name: str
    wanted: int
    supply: Supply


class Capacity:
    """What hosts have left of each resource class, after overcommitment."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        group = options.register(conf)
        # The resource class, what hosts call it, and how far it is overcommitted where a host does
        # not say.
        self._resources = (
            ("VCPU", "vcpus", "cpu_allocation_ratio", group.cpu_allocation_ratio),
            ("MEMORY_MB", "ram_mb", "ram_allocation_ratio", group.ram_allocation_ratio),
            ("DISK_GB", "disk_gb", "disk_allocation_ratio", group.disk_allocation_ratio),
        )

    def of(self, host: object) -> Iterator[tuple[str, Supply]]:
        """Each resource class with what the host has of it."""
        for resource_class, name, own_ratio, usual_ratio in self._resources:
            total = read(host, f"{name}_total") or 0
            ratio = read(host, own_ratio)
            free = total - (read(host, f"{name}_reserved") or 0)
            limit = max(free, 0) * (usual_ratio if ratio is None else ratio)
            yield resource_class, Supply(total, limit, limit - (read(host, f"{name}_used") or 0))
        used = read_mapping(host, "resources_used")
        for resource_class, limit in read_mapping(host, "resources").items():
            yield resource_class, Supply(limit, limit, limit - used.get(resource_class, 0))

    def shortages(self, host: object, wanted: Mapping[str, int]) -> Iterator[Shortage]:
        """Of what is wanted of each resource class, what the host has too little of."""
        supplies = dict(self.of(host))
        for resource_class, amount in on_host(wanted, supplies).items():
            supply = supplies.get(resource_class, _NONE)
            if amount > max(supply.left, 0):
                yield Shortage(_CALLED.get(resource_class, resource_class), amount, supply)


def on_host(wanted: Mapping[str, int], there: Container[str]) -> Mapping[str, int]:
    """What is wanted, on a host that has these resource classes.

    Where no CPUs are set apart, those that nobody is to share come from among the others, as Nova
    has it where it finds no host otherwise.
    """
    if "PCPU" not in wanted or "PCPU" in there:
        return wanted
    others = {name: amount for name, amount in wanted.items() if name != "PCPU"}
    return {**others, "VCPU": others.get("VCPU", 0) + wanted["PCPU"]}


class CapacityFilter(base.Filter):
    """Keeps hosts with enough left of what the flavor asks for, after overcommitment."""

    in_nova = False  # Placement does this there

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self._capacity = Capacity(conf)

    def examine(self, host: object, request: object) -> Verdict:
        return next(self.rejections(host, request), PASSED)

    def rejections(self, host: object, request: object) -> Iterator[Verdict]:
        wanted = flavor_amounts(read(request, "flavor"))
        for name, amount, supply in self._capacity.shortages(host, wanted):
            yield Verdict.rejected(
                f"{name}: flavor wants {amount}, "
                f"the host has {max(supply.left, 0):.10g} of {supply.limit:.10g} left",
                f"not enough {name}: flavor wants {amount}",
            )

    def filter_all(self, hosts: Iterable[base.HostT], request: object) -> Iterator[base.HostT]:
        """The hosts that pass, lazily and in their order; the flavor is read once."""
        wanted = flavor_amounts(read(request, "flavor"))
        return (host for host in hosts if not any(self._capacity.shortages(host, wanted)))
