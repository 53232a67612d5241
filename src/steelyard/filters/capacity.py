"""Hosts by what they have left."""

from collections.abc import Iterator

from oslo_config import cfg

from steelyard import conf as options
from steelyard.attributes import read
from steelyard.filters import base
from steelyard.verdict import PASSED, Verdict


class CapacityFilter(base.Filter):
    """Keeps hosts with enough virtual CPUs, RAM and disk left, after overcommitment."""

    in_nova = False  # Placement does this there

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        group = options.register(conf)
        # What it is called, of the flavor, of the host, used on the host, how far overcommitted.
        self._resources = (
            ("vCPUs", "vcpus", "vcpus_total", "vcpus_used", group.cpu_allocation_ratio),
            ("MiB of RAM", "memory_mb", "ram_mb_total", "ram_mb_used", group.ram_allocation_ratio),
            (
                "GiB of disk",
                "root_gb",
                "disk_gb_total",
                "disk_gb_used",
                group.disk_allocation_ratio,
            ),
        )

    def examine(self, host: object, request: object) -> Verdict:
        for name, wanted, left, limit in self._shortages(host, request):
            return Verdict.rejected(
                f"{name}: flavor wants {wanted}, "
                f"the host has {max(left, 0):.10g} of {limit:.10g} left",
                f"not enough {name}: flavor wants {wanted}",
            )
        return PASSED

    def host_passes(self, host: object, request: object) -> bool:
        return not any(self._shortages(host, request))

    def _shortages(self, host: object, request: object) -> Iterator[tuple[str, int, float, float]]:
        """Of what there is too little: its name, what is wanted, left, and the limit."""
        flavor = read(request, "flavor")
        for name, asked, total, used, ratio in self._resources:
            wanted = read(flavor, asked) or 0
            limit = (read(host, total) or 0) * ratio
            left = limit - (read(host, used) or 0)
            if wanted > left:
                yield name, wanted, left, limit
