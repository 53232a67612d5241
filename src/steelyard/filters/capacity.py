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


class Capacity:
    """What hosts have left of each resource class, after overcommitment."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        group = options.register(conf)
        # The resource class; of a host, what it has and what of it is used; how far overcommitted.
        self._resources = (
            ("VCPU", "vcpus_total", "vcpus_used", group.cpu_allocation_ratio),
            ("MEMORY_MB", "ram_mb_total", "ram_mb_used", group.ram_allocation_ratio),
            ("DISK_GB", "disk_gb_total", "disk_gb_used", group.disk_allocation_ratio),
        )

    def of(self, host: object) -> Iterator[tuple[str, Supply]]:
        """Each resource class with what the host has of it."""
        for name, has, used, ratio in self._resources:
            total = read(host, has) or 0
            limit = total * ratio
            yield name, Supply(total, limit, limit - (read(host, used) or 0))


# Of a resource class: what a flavor calls it, and what people do.
_WANTED = {
    "VCPU": ("vcpus", "vCPUs"),
    "MEMORY_MB": ("memory_mb", "MiB of RAM"),
    "DISK_GB": ("root_gb", "GiB of disk"),
}


class CapacityFilter(base.Filter):
    """Keeps hosts with enough virtual CPUs, RAM and disk left, after overcommitment."""

    in_nova = False  # Placement does this there

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self._capacity = Capacity(conf)

    def examine(self, host: object, request: object) -> Verdict:
        for name, wanted, supply in self._shortages(host, request):
            return Verdict.rejected(
                f"{name}: flavor wants {wanted}, "
                f"the host has {max(supply.left, 0):.10g} of {supply.limit:.10g} left",
                f"not enough {name}: flavor wants {wanted}",
            )
        return PASSED

    def host_passes(self, host: object, request: object) -> bool:
        return not any(self._shortages(host, request))

    def _shortages(self, host: object, request: object) -> Iterator[tuple[str, int, Supply]]:
        """Of what there is too little: its name, what is wanted, and what there is."""
        flavor = read(request, "flavor")
        for resource_class, supply in self._capacity.of(host):
            asked, name = _WANTED[resource_class]
            wanted = read(flavor, asked) or 0
            if wanted > supply.left:
                yield name, wanted, supply
