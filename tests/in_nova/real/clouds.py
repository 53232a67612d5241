"""A real Nova with a real Placement, in one process: API, conductor, scheduler, fake computes.

Only configuration differs from Nova's own functional tests. Run these modules with
``python -m testtools.run``; pytest's runner and testtools' tear-down do not get along.
"""

import logging
import sys
import time
from typing import Any

import fixtures
from nova import conf
from nova.tests.functional import integrated_helpers

CONF = conf.CONF

NOVAS_FILTERS = ["ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter"]
_SETTLED = ("ACTIVE", "ERROR", "SHUTOFF", "VERIFY_RESIZE", "SHELVED_OFFLOADED")

NOVAS_COUNTERPART = "AggregateInstanceExtraSpecsFilter"


class _Said(fixtures.Fixture):
    """What steelyard logs. The log of Nova's own fixture is not whole while threads write to it."""

    def _setUp(self) -> None:
        self.lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.lines.append(record.getMessage())  # type: ignore[method-assign]
        logger = logging.getLogger("steelyard")
        logger.addHandler(handler)
        self.addCleanup(logger.removeHandler, handler)


class Cloud(integrated_helpers.ProviderUsageBaseTestCase):  # type: ignore[misc]  # Nova has no types
    """A cloud of three hosts, with one more filter enabled than Nova has by default."""

    compute_driver = "fake.MediumFakeDriver"
    available_filters = ["nova.scheduler.filters.all_filters", "steelyard.nova.all_filters"]
    enabled_filter = "AggregateInstanceTypeFilter"
    hosts: tuple[str, ...] = ("host1", "host2", "host3")

    def setUp(self) -> None:
        # pip puts it into the environment; Nova's fixtures expect a source tree.
        paste = f"{sys.prefix}/etc/nova/api-paste.ini"
        CONF.set_override("api_paste_config", paste, group="wsgi")
        CONF.set_override("available_filters", self.available_filters, group="filter_scheduler")
        CONF.set_override(
            "enabled_filters", [*NOVAS_FILTERS, self.enabled_filter], group="filter_scheduler"
        )
        # However long the machine that runs this stands still, no host is taken to be dead.
        CONF.set_override("service_down_time", 3600)
        super().setUp()
        self.said = self.useFixture(_Said()).lines
        for host in self.hosts:
            self._start_compute(host)
        self.aggregates: dict[str, int] = {}

    def aggregate(self, host: str, **metadata: str) -> None:
        """Puts the host into an aggregate of its own, or changes that aggregate's metadata."""
        if host not in self.aggregates:
            made = self.api.post_aggregate({"aggregate": {"name": f"of-{host}"}})
            self.aggregates[host] = made["id"]
            self.api.post_aggregate_action(made["id"], {"add_host": {"host": host}})
        if metadata:
            self.api.post_aggregate_action(
                self.aggregates[host], {"set_metadata": {"metadata": metadata}}
            )

    def boot(
        self,
        *,
        host: str | None = None,
        group: str | None = None,
        memory_mb: int = 1024,
        **extra_specs: Any,
    ) -> dict[str, Any]:
        """A server of a flavor with these extra specs, as it is once Nova has decided."""
        return self.settled(self.asked_for(host, group, memory_mb, extra_specs)["id"])

    def boot_at_once(self, count: int, *, group: str) -> list[dict[str, Any]]:
        """So many servers, created in one request."""
        reservation = self.asked_for(
            None, group, 1024, {}, min_count=count, return_reservation_id=True
        )["reservation_id"]
        servers = self.api.get_servers(search_opts={"reservation_id": reservation})
        self.assertEqual(count, len(servers))
        return [self.settled(server["id"]) for server in servers]

    def asked_for(
        self,
        host: str | None,
        group: str | None,
        memory_mb: int,
        extra_specs: dict[str, str],
        **more: Any,
    ) -> dict[str, Any]:
        """What the API answers to a request for servers."""
        flavor = self._create_flavor(memory_mb=memory_mb, vcpu=1, extra_spec=extra_specs)
        server = self._build_server(flavor_id=flavor, networks="none", host=host)
        body = {"server": {**server, **more}}
        if group is not None:
            body["os:scheduler_hints"] = {"group": group}
        answer: dict[str, Any] = self.api.post_server(body)
        return answer

    def settled(self, server_id: str) -> dict[str, Any]:
        """The server when nothing is under way with it any more."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            server: dict[str, Any] = self.api.get_server(server_id)
            if server["status"] in _SETTLED and server["OS-EXT-STS:task_state"] is None:
                return server
            time.sleep(0.02)
        raise AssertionError(f"server {server_id} has not settled: {server}")

    def hosts_that_take(self, **extra_specs: Any) -> set[str]:
        """The hosts on which a server of a flavor with these extra specs can be booted."""
        taking = set()
        for host in self.hosts:
            server = self.boot(host=host, **extra_specs)
            if server["status"] == "ACTIVE":
                assert host_of(server) == host
                taking.add(host)
            else:
                assert "No valid host was found" in server["fault"]["message"]
            self._delete_server(server)
        return taking


def host_of(server: dict[str, Any]) -> str | None:
    found: str | None = server["OS-EXT-SRV-ATTR:host"]
    return found
