"""Hosts by what they have left."""

from collections.abc import Iterator
from typing import NamedTuple

from oslo_config import cfg

from steelyard import conf as options
from steelyard.attributes import read
from steelyard.filters import base
from steelyard.verdict import PASSED, Verdict


class Supply(NamedTuple):
    """What a host has of one resource."""

    total: float
    limit: float
    """After overcommitment."""
    left: float


# Of a resource class: what a flavor calls it, and what people do.
_WANTED = {
    "VCPU": ("vcpus", "vCPUs"),
    "MEMORY_MB": ("memory_mb", "MiB of RAM"),
    "DISK_GB": ("root_gb", "GiB of disk"),
}


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

    def shortages(self, host: object, flavor: object) -> Iterator[Shortage]:
        """What the host has too little of for one more server of the flavor."""
        for resource_class, supply in self.of(host):
            asked, name = _WANTED[resource_class]
            wanted = read(flavor, asked) or 0
            if wanted > max(supply.left, 0):
                yield Shortage(name, wanted, supply)


class CapacityFilter(base.Filter):
    """Keeps hosts with enough virtual CPUs, RAM and disk left, after overcommitment."""

    in_nova = False  # Placement does this there

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self._capacity = Capacity(conf)

    def examine(self, host: object, request: object) -> Verdict:
        return next(self.rejections(host, request), PASSED)

    def rejections(self, host: object, request: object) -> Iterator[Verdict]:
        for name, wanted, supply in self._capacity.shortages(host, read(request, "flavor")):
            yield Verdict.rejected(
                f"{name}: flavor wants {wanted}, "
                f"the host has {max(supply.left, 0):.10g} of {supply.limit:.10g} left",
                f"not enough {name}: flavor wants {wanted}",
            )

    def host_passes(self, host: object, request: object) -> bool:
        return not any(self._capacity.shortages(host, read(request, "flavor")))
