"""How long a real scheduler takes to select a host among a thousand, with Nova's filter and ours.

A real Nova with a real Placement, in one process. One compute service runs; the other hosts are
copies of its records, in Nova's databases and in Placement: their services would only take time
from the scheduler. Every host is in 3 of 20 aggregates. What ``select_destinations`` takes is
measured, as the conductor calls it, with the two filters by turns. Run it with
``python -m testtools.run``; STEELYARD_BENCH_HOSTS asks for fewer hosts.
"""

import os
import random
import statistics
import sys
import time
from typing import Any

from real import clouds  # before the rest of Nova, as its functional tests want

# isort: split
from nova import context, objects
from oslo_utils import uuidutils

HOSTS = int(os.environ.get("STEELYARD_BENCH_HOSTS", "1000"))
REQUESTS = 15
EXTRA_SPECS: dict[str, Any] = {
    "disk": "<or> nvme <or> ssd",
    "tier": "<or> gold <or> silver",
    "licence": "s!= x",
}
_OF_THE_RECORD = ("id", "created_at", "updated_at", "deleted", "deleted_at", "service_id")


class SelectDestinations(clouds.Cloud):
    hosts = ("host0",)

    def setUp(self) -> None:
        clouds.CONF.set_override("service_down_time", 10**7)  # for the services that do not run
        super().setUp()
        self.admin = context.get_admin_context()
        self.everywhere = ["host0", *(f"host{number}" for number in range(1, HOSTS))]

    def test_it(self) -> None:
        self.aggregate("host0", disk="ssd", tier="gold", licence="none")
        server = self.boot(**EXTRA_SPECS)  # before there are hosts that would not build it
        assert server["status"] == "ACTIVE"
        self.copy_host0()
        self.fill_aggregates()
        candidates = self.placement.get("/allocation_candidates?resources=VCPU:1", version="1.29")
        assert len(candidates.body["provider_summaries"]) == HOSTS
        manager = self.scheduler_service.manager.host_manager
        ours = manager.enabled_filters
        (novas,) = manager._choose_host_filters([clouds.NOVAS_COUNTERPART])
        contenders = {"Nova": novas, "steelyard": ours[-1]}
        taken: dict[str, list[float]] = {name: [] for name in contenders}
        filtering = {name: timed(contender) for name, contender in contenders.items()}
        # By turns, so that what slows the cloud down with time slows both.
        for _ in range(REQUESTS):
            for name, contender in contenders.items():
                manager.enabled_filters = [*ours[:-1], contender]
                taken[name].append(self.time_of_a_request(server["id"]))
        for name in contenders:
            sys.stdout.write(
                f"select_destinations, {HOSTS} hosts, with the filter of {name}: "
                f"{statistics.median(taken[name]):.1f} ms, "
                f"of which in the filter {statistics.median(filtering[name]):.2f} ms\n"
            )

    def copy_host0(self) -> None:
        """Hosts like the first one, for the scheduler and for Placement."""
        node = objects.ComputeNode.get_first_node_by_host_for_old_compat(self.admin, "host0")
        service = objects.Service.get_by_compute_host(self.admin, "host0")
        cell = objects.HostMapping.get_by_host(self.admin, "host0").cell_mapping
        said = {
            field: getattr(node, field)
            for field in node.fields
            if field not in _OF_THE_RECORD and node.obj_attr_is_set(field)
        }
        provider = f"/resource_providers/{node.uuid}"
        about = {
            what: self.placement.get(f"{provider}/{what}", version="1.6").body
            for what in ("inventories", "traits")
        }
        for host in self.everywhere[1:]:
            copy = objects.Service(
                self.admin, host=host, binary=service.binary, topic=service.topic, uuid=_uuid()
            )
            copy.create()
            copy.report_count = 1
            copy.save()
            objects.HostMapping(self.admin, host=host, cell_mapping=cell).create()
            uuid = _uuid()
            own = {"uuid": uuid, "host": host, "hypervisor_hostname": host}
            objects.ComputeNode(self.admin, **said | own).create()
            self.copy_provider(uuid, host, about)

    def copy_provider(self, uuid: str, name: str, about: dict[str, dict[str, Any]]) -> None:
        made = self.placement.post("/resource_providers", {"name": name, "uuid": uuid})
        assert made.status == 201, made.body
        for generation, (what, body) in enumerate(about.items()):
            body["resource_provider_generation"] = generation
            url = f"/resource_providers/{uuid}/{what}"
            put = self.placement.put(url, body, version="1.6")
            assert put.status == 200, put.body

    def fill_aggregates(self) -> None:
        """Writes the aggregates to the database: the API takes half a second for each host."""
        chance = random.Random(1)
        made = []
        for number in range(20):
            metadata = {
                "disk": chance.choice(["nvme", "ssd", "nvme, ssd"]),
                "tier": chance.choice(["gold", "silver"]),
                "licence": chance.choice(["none", "windows"]),
                "rack": str(number),
            }
            aggregate = objects.Aggregate(self.admin, name=f"a{number}", metadata=metadata)
            aggregate.create()
            aggregate.hosts = []
            made.append(aggregate)
        for number, host in enumerate(self.everywhere):
            for step in (0, 7, 13):
                made[(number + step) % len(made)].add_host(host)
        self.scheduler_service.manager.host_manager.update_aggregates(made)

    def time_of_a_request(self, like: str) -> float:
        """What selecting a host takes, in ms, for one more server like this one."""
        spec = objects.RequestSpec.get_by_instance_uuid(self.admin, like)
        spec.instance_uuid = _uuid()
        spec.requested_resources = []  # what the conductor sets, and the database does not keep
        spec.request_level_params = objects.RequestLevelParams()
        start = time.perf_counter()
        ((selected, *_),) = self.scheduler_service.manager.select_destinations(
            self.admin,
            spec_obj=spec,
            instance_uuids=[spec.instance_uuid],
            return_objects=True,
            return_alternates=True,
        )
        taken = (time.perf_counter() - start) * 1000
        assert selected.service_host in self.everywhere
        self.placement.delete(f"/allocations/{spec.instance_uuid}")
        return taken


def timed(contender: Any) -> list[float]:
    """What the filter takes, in ms, each time from now on."""
    taken: list[float] = []
    filtering = contender.filter_all

    def filter_all(hosts: Any, spec: Any) -> list[Any]:
        start = time.perf_counter()
        found = list(filtering(hosts, spec))
        taken.append((time.perf_counter() - start) * 1000)
        return found

    contender.filter_all = filter_all
    return taken


def _uuid() -> str:
    made: str = uuidutils.generate_uuid()
    return made
