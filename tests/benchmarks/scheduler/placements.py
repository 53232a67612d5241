"""Placements of servers one after another, compared with Nova's handlers, in one run.

Both place servers of some flavors, each as if the ones before it were there. Every host is
considered each time. Nova runs the handlers of its filters and weighers over the same hosts and
calls ``consume_from_request`` of the chosen one. Its filters are the one for extra specs and those
for server groups; capacity, which Placement checks for Nova, is checked by steelyard only. The
weighers are those of RAM, CPU and disk and, for requests with a group, both soft ones.

"kinds" is the number of kinds of hosts at the start; "racks" is a soft anti-affinity group over
racks and rooms, for which Nova has no counterpart and spreads over hosts. "first" is the first
placement of each flavor, in which every kind is examined. Rates are placements per second.

Pin it to one core: taskset -c 0 tox -e bench
"""

import argparse
import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

from nova import objects
from nova.scheduler import filters as nova_filters
from nova.scheduler import host_manager, weights
from nova.scheduler.filters import affinity_filter, aggregate_instance_extra_specs
from nova.scheduler.weights import affinity, cpu, disk, ram
from oslo_config import cfg

from steelyard import conf as options
from steelyard.cloud import Cloud
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import FilterScheduler, NoValidHost
from support.scheduler.big_clouds import big_cloud

objects.register_all()

GROUP = ServerGroup("spread", Policy.SOFT_ANTI_AFFINITY)
FLAVORS = 4
# The number of hosts, of kinds (None: all differ), and whether servers are in the group.
CASES: list[tuple[int, int | None, bool]] = [
    (hosts, kinds, has_group)
    for has_group in (False, True)
    for hosts, kinds in (
        (1_000, 100),
        (10_000, 100),
        (10_000, 3_000),
        (10_000, None),
        (100_000, 3_000),
        (100_000, None),
    )
]
MOST_SERVERS = 100_000


@dataclasses.dataclass(frozen=True)
class Row:
    hosts: int
    kinds: int
    has_group: bool
    nova: float
    first: float
    ours: float

    def __str__(self) -> str:
        return (
            f"{self.hosts:7} {self.kinds:7} {'racks' if self.has_group else '':>6} | "
            f"{self.nova:8.1f} {self.ours:8.0f} {self.ours / self.nova:7.0f}x | "
            f"{1000 * self.first:8.0f} ms"
        )


HEADER = f"{'hosts':>7} {'kinds':>7} {'':>6} | {'Nova':>8} {'ours':>8} {'ratio':>8} | {'first':>8}"


def scheduler(cloud: Cloud, *, racks: bool) -> FilterScheduler:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    if racks:
        conf.set_override("failure_domains", ["rack", "room"], options.GROUP)
    return FilterScheduler(cloud, conf)


class NovaScheduler:
    """Nova's filters and weighers over the hosts of a cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self._filters = [
            aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter(),
            affinity_filter.ServerGroupAffinityFilter(),
            affinity_filter.ServerGroupAntiAffinityFilter(),
        ]
        self._weighers = [
            ram.RAMWeigher(),
            cpu.CPUWeigher(),
            disk.DiskWeigher(),
            affinity.ServerGroupSoftAffinityWeigher(),
            affinity.ServerGroupSoftAntiAffinityWeigher(),
        ]
        self._filter_handler = nova_filters.HostFilterHandler()
        self._weight_handler = weights.HostWeightHandler()
        of_host: dict[str, list[Any]] = {name: [] for name in cloud.hosts}
        for number, each in enumerate(cloud.aggregates.values()):
            made = objects.Aggregate(
                id=number, name=each.name, hosts=list(each.hosts), metadata=dict(each.metadata)
            )
            for host in each.hosts:
                of_host[host].append(made)
        self._hosts = [host_state(cloud, name, of_host[name]) for name in cloud.hosts]
        by_name = {state.host: state for state in self._hosts}
        for server in cloud.servers.values():
            state, flavor = by_name[server.host], server.flavor
            state.instances[server.uuid] = None
            state.free_ram_mb -= flavor.memory_mb
            state.free_disk_mb -= flavor.root_gb * 1024
            state.vcpus_used += flavor.vcpus

    def place(self, flavor: Any, group: Any, uuid: str) -> None:
        """Place a server of the flavor, in the group if it is not None."""
        spec = objects.RequestSpec(
            instance_uuid=uuid,
            flavor=objects.Flavor(
                memory_mb=flavor.memory_mb,
                vcpus=flavor.vcpus,
                root_gb=flavor.root_gb,
                ephemeral_gb=0,
                swap=0,
                extra_specs=dict(flavor.extra_specs),
            ),
            instance_group=group,
            numa_topology=None,
            pci_requests=None,
            requested_resources=[],
            scheduler_hints={},
            image=None,
        )
        passed = self._filter_handler.get_filtered_objects(self._filters, self._hosts, spec)
        best = self._weight_handler.get_weighed_objects(self._weighers, passed, spec)[0].obj
        best.consume_from_request(spec)
        best.instances[uuid] = None
        if group is not None:
            group.members.append(uuid)
            group.hosts.append(best.host)


def host_state(cloud: Cloud, name: str, aggregates: list[Any]) -> Any:
    host = cloud.hosts[name]
    state = host_manager.HostState(name, name, name)
    state.aggregates = aggregates
    state.total_usable_ram_mb = state.free_ram_mb = host.ram_mb
    state.free_disk_mb = host.disk_gb * 1024
    state.vcpus_total, state.vcpus_used = host.vcpus, 0
    state.cpu_allocation_ratio = 4.0
    return state


def fitting_flavors(cloud: Cloud) -> list[Any]:
    """Return the first flavors that fit a host."""
    made, found = scheduler(cloud, racks=False), []
    for flavor in cloud.flavors.values():
        with contextlib.suppress(NoValidHost):
            made.select(made.request(flavor.name))
            found.append(flavor)
        if len(found) == FLAVORS:
            break
    return found


def rate(place: Callable[[int], None], count: int) -> float:
    """Return how many placements there are in a second."""
    start = time.perf_counter()
    for number in range(count):
        place(number)
    return count / (time.perf_counter() - start)


def measure(hosts: int, kinds: int | None, count: int, nova_count: int, *, racks: bool) -> Row:
    # With kinds, the cloud has two racks: hosts in different racks are of different kinds.
    shape = {} if kinds is None else {"kinds": kinds // 2, "aggregates": 4}
    servers = min(10 * hosts, MOST_SERVERS)
    cloud = big_cloud(hosts, servers, groups=0, **shape).with_server_group(GROUP)
    made, theirs = scheduler(cloud, racks=racks), NovaScheduler(cloud)
    flavors = fitting_flavors(cloud)
    group = GROUP.name if racks else None

    def place(number: int) -> None:
        request = made.request(flavors[number % FLAVORS].name, group)
        made.commit(made.select(request))

    nova_group = None
    if racks:
        nova_group = objects.InstanceGroup(
            policies=[GROUP.policy.value], policy=GROUP.policy.value, members=[], hosts=[]
        )

    def place_in_nova(number: int) -> None:
        theirs.place(flavors[number % FLAVORS], nova_group, f"uuid-{number}")

    first = 1 / rate(place, FLAVORS)
    return Row(
        hosts, kinds or hosts, racks, rate(place_in_nova, nova_count), first, rate(place, count)
    )


def run(
    cases: Sequence[tuple[int, int | None, bool]],
    count: int,
    nova_count: int,
    show: Callable[[str], None],
) -> list[Row]:
    """Measure all cases and show a table of them."""
    show(HEADER)
    rows = []
    for hosts, kinds, racks in cases:
        rows.append(measure(hosts, kinds, count, nova_count, racks=racks))
        show(str(rows[-1]))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--placements", type=int, default=1_000)
    run(CASES, parser.parse_args().placements, 8, print)
