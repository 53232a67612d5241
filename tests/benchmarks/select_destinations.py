"""How long a real scheduler takes to select a host among a thousand, with Nova's filter and ours.

A real Nova with a real Placement, in one process; every host is in 3 of 20 aggregates. Servers
are booted through the API, and what ``select_destinations`` takes is measured: the median over
the boots. Run it with ``python -m testtools.run``; STEELYARD_BENCH_HOSTS asks for fewer hosts.
"""

import os
import random
import statistics
import sys
import time
from typing import Any
from unittest import mock

from real import clouds  # before the rest of Nova, as its functional tests want

# isort: split
from nova import context, objects

HOSTS = int(os.environ.get("STEELYARD_BENCH_HOSTS", "1000"))
BOOTS = 7
EXTRA_SPECS = {"disk": "<or> nvme <or> ssd", "tier": "<or> gold <or> silver", "licence": "s!= x"}


class SelectDestinations(clouds.Cloud):
    """Boots servers among many hosts, first with one filter and then with the other."""

    hosts = tuple(f"host{number}" for number in range(HOSTS))

    def test_it(self) -> None:
        self.fill_aggregates()
        scheduler = self.scheduler_service.manager
        ours = scheduler.host_manager.enabled_filters
        (novas,) = scheduler.host_manager._choose_host_filters([clouds.NOVAS_COUNTERPART])
        medians = {}
        for name, filters in (("Nova", [*ours[:-1], novas]), ("steelyard", ours)):
            scheduler.host_manager.enabled_filters = filters
            medians[name] = self.median()
        ratio = medians["Nova"] / medians["steelyard"]
        sys.stdout.write(
            f"select_destinations, {HOSTS} hosts: with Nova's filter {medians['Nova']:.1f} ms, "
            f"with ours {medians['steelyard']:.1f} ms, {ratio:.2f} times faster\n"
        )

    def fill_aggregates(self) -> None:
        """Writes the aggregates to the database: the API takes half a second for each host."""
        chance = random.Random(1)
        admin = context.get_admin_context()
        made = []
        for number in range(20):
            metadata = {
                "disk": chance.choice(["nvme", "ssd", "nvme, ssd"]),
                "tier": chance.choice(["gold", "silver"]),
                "licence": chance.choice(["none", "windows"]),
                "rack": str(number),
            }
            aggregate = objects.Aggregate(admin, name=f"aggregate{number}", metadata=metadata)
            aggregate.create()
            aggregate.hosts = []
            made.append(aggregate)
        for number, host in enumerate(self.hosts):
            for step in (0, 7, 13):
                made[(number + step) % len(made)].add_host(host)
        self.scheduler_service.manager.host_manager.update_aggregates(made)

    def median(self) -> float:
        taken: list[float] = []
        # The work behind the RPC method, which the server has looked up when it started.
        kind = type(self.scheduler_service.manager)
        selecting = kind._select_destinations

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return selecting(*args, **kwargs)
            finally:
                taken.append((time.perf_counter() - start) * 1000)

        with mock.patch.object(kind, "_select_destinations", timed):
            for _ in range(BOOTS):
                server = self.boot(**EXTRA_SPECS)
                assert server["status"] == "ACTIVE"
                self._delete_server(server)
        return statistics.median(taken)
