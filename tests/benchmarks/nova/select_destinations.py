"""The time of ``select_destinations`` with Nova's filter and with steelyard's, among 1000 hosts.

A real Nova and a real Placement run in one process. One compute service runs; the other hosts are
copies of its records in Nova's databases and in Placement, because their services would slow the
scheduler down. Every host is in 3 of 20 aggregates. The benchmark calls ``select_destinations`` as
the conductor does, with the two filters in turn. Run it with ``python -m testtools.run``;
STEELYARD_BENCH_HOSTS sets the number of hosts.
"""

import os
import random
import statistics
import sys
import time
from typing import Any

from support.nova import clouds  # before the rest of Nova, as its functional tests require

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
        clouds.CONF.set_override("service_down_time", 10**7)  # the copied hosts have no services
        super().setUp()
        self.admin = context.get_admin_context()
        self.everywhere = ["host0", *(f"host{number}" for number in range(1, HOSTS))]

    def test_select_destinations_is_timed_with_both_filters(self) -> None:
        self.aggregate("host0", disk="ssd", tier="gold", licence="none")
        server = self.boot(**EXTRA_SPECS)  # the copied hosts cannot build servers
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
        # In turn, so that both are affected alike if the cloud slows down over time.
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
        """Create hosts like the first one, in Nova and in Placement."""
        node = objects.ComputeNode.get_first_node_by_host_for_old_compat(self.admin, "host0")
        service = objects.Service.get_by_compute_host(self.admin, "host0")
        cell = objects.HostMapping.get_by_host(self.admin, "host0").cell_mapping
        fields = {
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
            objects.ComputeNode(self.admin, **fields | own).create()
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
        """Write the aggregates to the database; the API would take half a second for each host."""
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
        """Return the time in ms of selecting a host for a server like this one."""
        spec = objects.RequestSpec.get_by_instance_uuid(self.admin, like)
        spec.instance_uuid = _uuid()
        spec.requested_resources = []  # set by the conductor and not stored
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
    """Return a list to which each call of the filter adds its time in ms."""
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
