"""AggregateInstanceTypeFilter compared with Nova's AggregateInstanceExtraSpecsFilter, in one run.

Nova's handler runs both on Nova's objects. Every host is in 3 aggregates with 6 metadata keys each;
the flavor has 5 extra specs. "Shared": hosts share few distinct sets of aggregates, such as racks.
"Random": nearly every host has a different set. "First" is the first request of a new filter,
"flavor" the first request of another flavor with the same hosts, and "next" a later request of the
same flavor. The floor is the handler with a filter that does nothing. Times are the best of
several, in µs per host.

Pin it to one core: taskset -c 0 tox -e bench
"""

import argparse
import dataclasses
import gc
import random
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from nova import objects
from nova.scheduler import filters, host_manager
from nova.scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecsFilter
from oslo_config import cfg

from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter

SIZES = [(1_000, 20), (10_000, 20), (1_000, 200), (50_000, 20), (50_000, 200)]
LAYOUTS = ["shared", "random"]

_VALUES = {
    "disk": ["nvme", "ssd", "nvme, ssd", "sata"],
    "tier": ["gold", "silver", "gold, silver"],
    "cpu": ["intel-8380", "intel-6330", "amd-7763"],
    "net": ["10", "25", "100"],
    "licence": ["none", "windows", "none, windows"],
    "rack": [f"rack-{number}" for number in range(50)],
}
_EXTRA_SPECS = {
    "disk": "<or> nvme <or> ssd",
    "tier": "gold",
    "aggregate_instance_extra_specs:cpu": "<in> intel",
    "net": ">= 25",
    "licence": "s!= oracle",
}


class Nothing(filters.BaseHostFilter):  # type: ignore[misc]  # Nova has no types
    """A filter that passes every host, as a floor."""

    run_filter_once_per_request = True

    def filter_all(self, hosts: list[Any], spec: Any) -> list[Any]:
        return hosts


class Ours(AggregateInstanceTypeFilter, filters.BaseHostFilter):  # type: ignore[misc]  # as above
    """steelyard's filter with Nova's base class."""


@dataclasses.dataclass(frozen=True)
class Row:
    layout: str
    hosts: int
    aggregates: int
    nova: float
    floor: float
    first: float
    flavor: float
    next: float

    def __str__(self) -> str:
        return (
            f"{self.layout:8}{self.hosts:7}{self.aggregates:6}"
            f"{self.nova:9.2f}{self.floor:8.3f}"
            + "".join(
                f"{taken:8.3f}{self.nova / taken:6.0f}x{taken / self.floor:6.1f}"
                for taken in (self.first, self.flavor, self.next)
            )
        )


HEADER = (
    "                       Nova   floor   first  Nova/ first/  flavor  Nova/flavor/    next  "
    "Nova/  next/\n"
    "layout   hosts  aggr     µs      µs      µs  first  floor      µs flavor  floor      µs   "
    "next  floor"
)


def inputs(hosts: int, aggregates: int, layout: str) -> tuple[list[Any], Any]:
    chance = random.Random(f"{hosts} {aggregates} {layout}")
    objects.register_all()
    made = [
        objects.Aggregate(
            id=number,
            name=f"aggregate-{number}",
            metadata={key: chance.choice(values) for key, values in _VALUES.items()},
        )
        for number in range(aggregates)
    ]
    states = []
    for number in range(hosts):
        state = host_manager.HostState(f"host-{number}", f"node-{number}", str(uuid.uuid4()))
        if layout == "random":
            state.aggregates = chance.sample(made, 3)
        else:
            state.aggregates = [made[(number + step) % aggregates] for step in (0, 7, 13)]
        states.append(state)
    flavor = objects.Flavor(extra_specs=dict(_EXTRA_SPECS))
    return states, objects.RequestSpec(flavor=flavor, scheduler_hints={})


def measure(hosts: int, aggregates: int, layout: str, repeats: int) -> Row:
    states, spec = inputs(hosts, aggregates, layout)
    handler = filters.HostFilterHandler()
    answers = []

    def timed(plugin: Any) -> float:
        start = time.perf_counter()
        found = handler.get_filtered_objects([plugin], states, spec)
        taken = time.perf_counter() - start
        answers.append([state.host for state in found])
        return taken / hosts * 1e6

    def best(runs: Iterator[float]) -> float:
        return min(runs)

    other = objects.RequestSpec(flavor=objects.Flavor(extra_specs={}), scheduler_hints={})

    def ours(*requests: Any) -> Ours:
        """Return a new filter that has answered these requests."""
        plugin = Ours(cfg.ConfigOpts())
        for request in requests:
            handler.get_filtered_objects([plugin], states, request)
        return plugin

    gc.freeze()  # so that the collector does not scan the inputs
    theirs = AggregateInstanceExtraSpecsFilter()
    nova = best(timed(theirs) for _ in range(max(repeats // 4, 1)))
    first = best(timed(plugin) for plugin in [ours() for _ in range(repeats)])
    flavor = best(timed(ours(other)) for _ in range(repeats))
    kept = ours(spec)
    following = best(timed(kept) for _ in range(repeats))
    assert all(answer == answers[0] for answer in answers), "the filters do not agree"
    floor = best(timed(Nothing()) for _ in range(repeats))
    return Row(layout, hosts, aggregates, nova, floor, first, flavor, following)


def run(sizes: list[tuple[int, int]], repeats: int, show: Callable[[str], None]) -> list[Row]:
    show(HEADER)
    rows = []
    for layout in LAYOUTS:
        for hosts, aggregates in sizes:
            rows.append(measure(hosts, aggregates, layout, repeats))
            show(str(rows[-1]))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    run(SIZES, parser.parse_args().repeats, lambda line: print(line, flush=True))  # noqa: T201
