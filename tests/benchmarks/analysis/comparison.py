"""Time to compare a whole cloud, with steelyard's own rules and with Nova's.

Every flavor has different extra specs. The hosts of a rack are in the same aggregates.
"""

import argparse
import dataclasses
import time
from collections.abc import Callable

from oslo_config import cfg

from steelyard.analysis.comparison import Comparison, compare
from steelyard.analysis.novas_rules import OwnRules
from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.nova.rules import InstalledRules
from steelyard.scheduler.rules import NovaRules

# Flavors, hosts, racks.
SIZES = [(500, 10_000, 200), (500, 10_000, 1_000)]
HEADER = f"{'flavors':>8} {'hosts':>8} {'racks':>8} {'own, s':>10} {'nova, s':>10} {'changed':>10}"

_SSD = ["nvme", "<or> nvme <or> ~", "*", "!", "sata"]


@dataclasses.dataclass(frozen=True)
class Row:
    flavors: int
    hosts: int
    racks: int
    own: float
    nova: float
    changed: int

    def __str__(self) -> str:
        return (
            f"{self.flavors:8} {self.hosts:8} {self.racks:8} {self.own:10.2f} {self.nova:10.2f} "
            f"{self.changed:10}"
        )


def cloud(flavors: int, hosts: int, racks: int) -> Cloud:
    names = [f"host-{number}" for number in range(hosts)]
    aggregates = [
        Aggregate(
            f"rack-{rack}",
            {"ssd": "nvme" if rack % 2 else "sata, optane", "cores": str(rack % 64)},
            tuple(names[rack::racks]),
        )
        for rack in range(racks)
    ]
    gpu = {"gpu": "<or> a100 <or> h100", "force_metadata_check": "true"}
    aggregates.append(Aggregate("gpu", gpu, tuple(names[:: racks // 10])))
    return Cloud(
        {name: Host(name, 64, 262144, 4000) for name in names},
        {aggregate.name: aggregate for aggregate in aggregates},
        {
            f"flavor-{number}": Flavor(f"flavor-{number}", 1, 1024, 10, extra_specs(number))
            for number in range(flavors)
        },
    )


def extra_specs(number: int) -> dict[str, str]:
    said = {"ssd": _SSD[number % 5], "cores": f">= {number % 64}", "quota:x": str(number)}
    return said if number % 7 else {**said, "gpu": "a100"}


def measure(flavors: int, hosts: int, racks: int) -> Row:
    described = cloud(flavors, hosts, racks)

    def timed(rules: NovaRules) -> tuple[float, Comparison]:
        ours = AggregateInstanceTypeFilter(cfg.ConfigOpts())
        start = time.perf_counter()
        found = compare(described, ours, rules)
        return time.perf_counter() - start, found

    (own, known), (nova, found) = timed(OwnRules()), timed(InstalledRules())
    assert known.judgements == found.judgements, "the rules do not agree"
    changed = sum(change.pairs for change in found.changes)
    return Row(flavors, hosts, racks, own, nova, changed)


def run(sizes: list[tuple[int, int, int]], show: Callable[[str], None]) -> list[Row]:
    show(HEADER)
    rows = []
    for size in sizes:
        rows.append(measure(*size))
        show(str(rows[-1]))
    return rows


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    run(SIZES, lambda line: print(line, flush=True))  # noqa: T201
