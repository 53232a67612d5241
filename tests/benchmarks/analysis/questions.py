"""Time of the questions about a whole cloud, compared with loading its file.

The floor is ``json.load`` of the cloud file. "Load" is what a command does to read it; the other
columns come on top of it: ``check``, ``capacity`` and ``compare`` of all flavors, ``whatif`` with a
rack that goes out, and the page of one decision, with its size. As in the commands, the garbage
collection is paused.
"""

import argparse
import dataclasses
import json
import tempfile
import time
from collections.abc import Callable
from typing import TypeVar

from oslo_config import cfg

from steelyard.analysis.capacity import HostRooms
from steelyard.analysis.checks import check
from steelyard.analysis.comparison import compare
from steelyard.analysis.novas_rules import OwnRules
from steelyard.analysis.whatif.baseline import Baseline
from steelyard.analysis.whatif.consequences import consequences
from steelyard.cli.inputs import clouds
from steelyard.cloud import Cloud, garbage
from steelyard.cloud.changes import TakeOutAggregate
from steelyard.cloud.files import saving
from steelyard.cloud.host_state import by_kind, host_states
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.page import render, view_of
from steelyard.scheduler import FilterScheduler, NoValidHost
from support.scheduler.big_clouds import big_cloud

# Hosts, servers, flavors, aggregates, kinds of hosts in each rack.
SIZES = [
    (1_000, 10_000, 60, 200, None),
    (10_000, 100_000, 60, 200, 30),
    (10_000, 100_000, 60, 200, None),
    (10_000, 100_000, 60, 2_000, None),
    (100_000, 100_000, 60, 2_000, None),
]
QUESTIONS = ("check", "capacity", "compare", "whatif", "page")
HEADER = (
    f"{'hosts':>8}{'servers':>9}{'kinds':>8}{'sets':>7}{'floor, s':>10}{'load, s':>15}"
    + "".join(f"{question + ', s':>16}" for question in (*QUESTIONS, "page, MB")).removesuffix(
        ", s"
    )
)

ValueT = TypeVar("ValueT")


@dataclasses.dataclass(frozen=True)
class Row:
    hosts: int
    servers: int
    kinds: int
    sets: int
    """The number of different sets of aggregates that hosts are in."""
    floor: float
    load: float
    seconds: tuple[float, ...]
    """The time of each question."""
    page: int
    """The size of the page in bytes."""

    def __str__(self) -> str:
        return (
            f"{self.hosts:8}{self.servers:9}{self.kinds:8}{self.sets:7}{self.floor:10.2f}"
            + "".join(
                f"{each:9.2f}{each / self.floor:5.1f}x" for each in (self.load, *self.seconds)
            )
            + f"{self.page / 1e6:10.2f}"
        )


def timed(action: Callable[[], ValueT]) -> tuple[float, ValueT]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def read(path: str) -> object:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def rooms(cloud: Cloud) -> int:
    counted = HostRooms(FilterScheduler(cloud, configured()))
    return sum(len(counted.of(flavor).rooms) for flavor in cloud.flavors)


def page(cloud: Cloud) -> bytes:
    scheduler = FilterScheduler(cloud, configured())
    try:
        (decision,) = scheduler.select(scheduler.request(next(iter(cloud.flavors)))).decisions
    except NoValidHost as error:
        decision = error.decision
    return render(view_of(decision, scheduler)).encode()


def configured() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return conf


def out_of_service(cloud: Cloud) -> int:
    """Return how many servers must move if the first rack goes out."""
    rack = next(name for name in cloud.aggregates if name.startswith("rack-"))
    after = TakeOutAggregate(rack).applied(cloud)
    found = consequences(Baseline(cloud, configured()), after)
    return len(found.displaced) + len(found.stranded)


@garbage.paused()
def measure(hosts: int, servers: int, flavors: int, aggregates: int, kinds: int | None) -> Row:
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/cloud.json"
        saving.create(path, big_cloud(hosts, servers, flavors, aggregates, kinds=kinds))
        floor, _ = timed(lambda: read(path))
        load, cloud = timed(lambda: clouds.read(path))
    checked, _ = timed(lambda: check(cloud, configured()))
    counted, found = timed(lambda: rooms(cloud))
    assert found == hosts * flavors
    ours = AggregateInstanceTypeFilter(configured())
    compared, comparison = timed(lambda: compare(cloud, ours, OwnRules()))
    assert sum(each.pairs for each in comparison.judgements) == hosts * flavors
    tried, leaving = timed(lambda: out_of_service(cloud))
    assert leaving > 0
    shown, html = timed(lambda: page(cloud))
    seconds = (checked, counted, compared, tried, shown)
    states = host_states(cloud)
    sets = {tuple(aggregate.name for aggregate in state.aggregates) for state in states}
    return Row(hosts, servers, len(by_kind(states)), len(sets), floor, load, seconds, len(html))


def run(
    sizes: list[tuple[int, int, int, int, int | None]], show: Callable[[str], None]
) -> list[Row]:
    show(HEADER)
    rows = []
    for size in sizes:
        rows.append(measure(*size))
        show(str(rows[-1]))
    return rows


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    run(SIZES, lambda line: print(line, flush=True))  # noqa: T201
