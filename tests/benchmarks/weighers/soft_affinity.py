"""The soft-affinity weighers compared with Nova's, in one run.

Hosts have 10 to 30 instances each and are in 3 of 20 aggregates with 6 metadata keys each. Groups
have G members, most of them on the hosts. "weigh_objects" is the soft-affinity weigher alone.
"Step" is the whole weighing step of Nova's handler with both weighers; its floor is the handler
with two weighers that do nothing. "Racks" is steelyard's step with failure domains of two levels,
and with half as many members again on hosts that are not candidates. Times are the best of several,
in µs per host.

Pin it to one core: taskset -c 0 tox -e bench
"""

import argparse
import dataclasses
import gc
import random
import time
import uuid
from collections.abc import Callable
from typing import Any

from nova import objects
from nova.scheduler import host_manager, weights
from nova.scheduler.weights import affinity
from oslo_config import cfg

import steelyard.nova
from steelyard import conf as options

objects.register_all()

HOSTS = 10_000
GROUPS = [10, 1_000, 10_000]


class Nothing(weights.BaseHostWeigher):  # type: ignore[misc]  # Nova has no types
    """A weigher that gives every host the same weight, as a floor."""

    def weigh_objects(self, weighed_hosts: list[Any], spec: Any) -> list[float]:
        return [0.0] * len(weighed_hosts)

    def _weigh_object(self, host: Any, spec: Any) -> float:
        return 0.0


def ours(*failure_domains: str) -> list[Any]:
    """Return steelyard's two weighers."""
    conf = cfg.ConfigOpts()
    options.register(conf)
    conf.set_override("failure_domains", list(failure_domains), group=options.GROUP)
    return [
        steelyard.nova.ServerGroupSoftAffinityWeigher(conf),
        steelyard.nova.ServerGroupSoftAntiAffinityWeigher(conf),
    ]


def places(number: int) -> dict[str, str]:
    """Return metadata of an aggregate: the first eight are racks in two rooms."""
    if number < 8:
        return {"rack": f"rack {number}", "room": f"room {number % 2}"}
    return {"cpu": "intel", "disk": "nvme"}


def inputs(hosts: int, size: int) -> tuple[list[Any], Any, Any]:
    chance = random.Random(1)
    made = [
        objects.Aggregate(
            id=number,
            name=f"aggregate {number}",
            hosts=[],
            metadata={f"key{key}": "value" for key in range(4)} | places(number),
        )
        for number in range(20)
    ]
    states = []
    for number in range(hosts):
        state = host_manager.HostState(f"host-{number}", f"node-{number}", str(number))
        state.aggregates = [made[number % 8], made[8 + number % 6], made[14 + number % 6]]
        state.instances = {
            str(uuid.UUID(int=chance.getrandbits(128))): None for _ in range(chance.randint(10, 30))
        }
        states.append(state)
    for number, aggregate in enumerate(made[:8]):
        aggregate.hosts = [f"host-{host}" for host in range(number, 2 * hosts, 8)]
    running = [uuid for state in states for uuid in state.instances]
    members = chance.sample(running, min(size, len(running)))
    joined = set(members)
    where = [state.host for state in states if state.instances.keys() & joined]
    elsewhere = range(hosts, hosts + min(size // 2, hosts))
    unseen = [str(uuid.uuid4()) for _ in elsewhere]
    return (
        states,
        request(members, where),
        request(members + unseen, where + [f"host-{number}" for number in elsewhere]),
    )


def request(members: list[str], hosts: list[str]) -> Any:
    group = objects.InstanceGroup(policy="soft-affinity", members=members, hosts=hosts)
    return objects.RequestSpec(instance_group=group, instance_uuid=str(uuid.uuid4()))


@dataclasses.dataclass(frozen=True)
class Row:
    members: int
    nova: float
    ours: float
    step_nova: float
    step_floor: float
    step_ours: float
    step_racks: float

    def __str__(self) -> str:
        return (
            f"{self.members:8} | {self.nova:8.2f} {self.ours:6.2f} {self.nova / self.ours:6.1f}x | "
            f"{self.step_nova:8.2f} {self.step_floor:6.2f} {self.step_ours:6.2f} "
            f"{self.step_ours / self.step_floor:6.2f} x floor | "
            f"{self.step_racks:6.2f} {self.step_racks / self.step_ours:6.2f} x plain"
        )


HEADER = (
    f"{'members':>8} | {'Nova':>8} {'ours':>6} {'ratio':>7} | {'Nova':>8} {'floor':>6} {'ours':>6} "
    f"{'':>14} | {'racks':>6}"
)


def measure(hosts: int, size: int, repeats: int) -> Row:
    states, spec, spec_with_unseen = inputs(hosts, size)
    handler = weights.HostWeightHandler()
    theirs = [
        affinity.ServerGroupSoftAffinityWeigher(),
        affinity.ServerGroupSoftAntiAffinityWeigher(),
    ]
    plain, racks = ours(), ours("rack", "room")

    def best(work: Callable[[], Any], times: int = repeats) -> float:
        taken = []
        for _ in range(times):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
        return min(taken) / hosts * 1e6

    weighed = [weights.WeighedHost(state, 0.0) for state in states]
    assert theirs[0].weigh_objects(weighed, spec) == plain[0].weigh_objects(weighed, spec)
    gc.freeze()  # so that the collector does not scan the inputs
    few = max(repeats // 4, 1)
    return Row(
        size,
        best(lambda: theirs[0].weigh_objects(weighed, spec), few),
        best(lambda: plain[0].weigh_objects(weighed, spec)),
        best(lambda: handler.get_weighed_objects(theirs, states, spec), few),
        best(lambda: handler.get_weighed_objects([Nothing(), Nothing()], states, spec)),
        best(lambda: handler.get_weighed_objects(plain, states, spec)),
        best(lambda: handler.get_weighed_objects(racks, states, spec_with_unseen)),
    )


def run(hosts: int, sizes: list[int], repeats: int, show: Callable[[str], None]) -> list[Row]:
    show(f"soft affinity, {hosts} hosts: weigh_objects | the whole step | the step with racks")
    show(HEADER)
    rows = []
    for size in sizes:
        rows.append(measure(hosts, size, repeats))
        show(str(rows[-1]))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    run(HOSTS, GROUPS, parser.parse_args().repeats, lambda line: print(line, flush=True))  # noqa: T201
