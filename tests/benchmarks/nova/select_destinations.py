"""The time of ``select_destinations`` with Nova's filter and with steelyard's, among 1000 hosts.

A real Nova and a real Placement run in one process. One compute service runs; the other hosts are
copies of its records in Nova's databases and in Placement, because their services would slow the
scheduler down. Every host is in 3 of 20 aggregates. The benchmark calls ``select_destinations`` as
the conductor does, with the two filters in turn. Run it with ``python -m testtools.run``;
STEELYARD_BENCH_HOSTS sets the number of hosts.
"""

import os
import statistics
import sys
import time
from typing import Any

from support.nova import clouds  # before the rest of Nova, as its functional tests require

# isort: split
from nova import objects
from oslo_utils import uuidutils

from support.nova.many_hosts import ManyHosts

HOSTS = int(os.environ.get("STEELYARD_BENCH_HOSTS", "1000"))
REQUESTS = 15
EXTRA_SPECS: dict[str, Any] = {
    "disk": "<or> nvme <or> ssd",
    "tier": "<or> gold <or> silver",
    "licence": "s!= x",
}


class SelectDestinations(ManyHosts):
    many = HOSTS

    def test_select_destinations_is_timed_with_both_filters(self) -> None:
        self.aggregate("host0", disk="ssd", tier="gold", licence="none")
        server = self.boot(**EXTRA_SPECS)  # the copied hosts cannot build servers
        assert server["status"] == "ACTIVE"
        self.copy_host0()
        made = self.fill_aggregates()
        self.scheduler_service.manager.host_manager.update_aggregates(made)
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
