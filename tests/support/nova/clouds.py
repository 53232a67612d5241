"""A real Nova with a real Placement, in one process: API, conductor, scheduler, fake computes.

Only configuration differs from Nova's own functional tests. Import this module before the rest of
Nova: releases before 34 let eventlet patch the standard library here.
"""

import logging
import re
import sys
import time
from collections.abc import Callable
from typing import Any, ClassVar, Self
from unittest import mock

import fixtures
import testtools
from nova import conf
from nova.tests.functional import integrated_helpers

# isort: split
from futurist import _thread  # imports eventlet, which Nova must import first

from support.nova.kept_connections import kept_connections

CONF = conf.CONF

NOVAS_FILTERS = ["ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter"]
_SETTLED = ("ACTIVE", "ERROR", "SHUTOFF", "VERIFY_RESIZE", "SHELVED_OFFLOADED")

NOVAS_COUNTERPART = "AggregateInstanceExtraSpecsFilter"

# Nova matches each extra spec with more patterns than Python caches by default.
re._MAXCACHE = 10_000  # type: ignore[attr-defined]


class _LogLines(fixtures.Fixture):
    """The lines that steelyard logs.

    The log of Nova's own fixture is incomplete while threads write to it.
    """

    def _setUp(self) -> None:
        self.lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.lines.append(record.getMessage())  # type: ignore[method-assign]
        logger = logging.getLogger("steelyard")
        logger.addHandler(handler)
        self.addCleanup(logger.removeHandler, handler)
        # Nova's fixture sets the lowest level, and writing all its lines takes time.
        for each, level in ((logging.root, logging.WARNING), (logger, logging.INFO)):
            self.addCleanup(each.setLevel, each.level)
            each.setLevel(level)


class UnderPytest:
    """A mixin that lets pytest run test cases of Nova, whose attributes it needs to the end."""

    def _clear_attrs(self) -> None:
        """Keep the attributes, which Nova would delete."""


class Cloud(UnderPytest, integrated_helpers.ProviderUsageBaseTestCase):  # type: ignore[misc]  # Nova has no types
    """A cloud of three hosts, with one more filter enabled than Nova has by default.

    Each test has a cloud of its own.
    """

    compute_driver = "fake.MediumFakeDriver"
    available_filters = ["nova.scheduler.filters.all_filters", "steelyard.nova.all_filters"]
    enabled_filter = "AggregateInstanceTypeFilter"
    hosts: tuple[str, ...] = ("host1", "host2", "host3")

    def setUp(self) -> None:
        self.start()
        self.aggregates: dict[str, int] = {}
        self.prepare()

    def start(self) -> None:
        """Start Nova and the hosts."""
        patch = kept_connections()
        patch.start()
        self.addCleanup(patch.stop)
        self.configure()
        super().setUp()
        # In Nova's tests, each idle thread polls for work a hundred times a second.
        _thread.ThreadWorker.MAX_IDLE_FOR = 0.2  # Nova sets 0.01
        self.log_lines = self.useFixture(_LogLines()).lines
        self.flavors: dict[str, str] = {}
        for host in self.hosts:
            self._start_compute(host)

    def configure(self) -> None:
        """Set the options that Nova reads when it starts."""
        # pip puts it into the environment; Nova's fixtures expect a source tree.
        paste = f"{sys.prefix}/etc/nova/api-paste.ini"
        CONF.set_override("api_paste_config", paste, group="wsgi")
        CONF.set_override("available_filters", self.available_filters, group="filter_scheduler")
        CONF.set_override(
            "enabled_filters", [*NOVAS_FILTERS, self.enabled_filter], group="filter_scheduler"
        )
        # No host counts as down, even if the machine stalls.
        CONF.set_override("service_down_time", 3600)
        # A cloud that tests share may have many servers.
        for resource in ("instances", "cores", "ram"):
            CONF.set_override(resource, -1, group="quota")

    def prepare(self) -> None:
        """Create the resources of a test in the running cloud; a hook."""

    def aggregate(self, host: str, **metadata: str) -> None:
        """Put the host into an aggregate of its own, or change that aggregate's metadata."""
        if host not in self.aggregates:
            made = self.api.post_aggregate({"aggregate": {"name": f"of-{host}"}})
            self.aggregates[host] = made["id"]
            self.api.post_aggregate_action(made["id"], {"add_host": {"host": host}})
        if metadata:
            self.api.post_aggregate_action(
                self.aggregates[host], {"set_metadata": {"metadata": metadata}}
            )

    def flavor(self, memory_mb: int, extra_specs: dict[str, Any]) -> str:
        """Return the id of the flavor with this memory and these extra specs; create it if needed."""
        key = repr((memory_mb, sorted(extra_specs.items())))
        if key not in self.flavors:
            self.flavors[key] = self._create_flavor(
                memory_mb=memory_mb, vcpu=1, extra_spec=extra_specs
            )
        return self.flavors[key]

    def boot(
        self,
        *,
        host: str | None = None,
        group: str | None = None,
        memory_mb: int = 1024,
        **extra_specs: Any,
    ) -> dict[str, Any]:
        """Create a server of a flavor with these extra specs; return it when it is active or failed."""
        return self.settled(self.asked_for(host, group, memory_mb, extra_specs)["id"])

    def boot_at_once(self, count: int, *, group: str) -> list[dict[str, Any]]:
        """Create servers in one request, and return them."""
        reservation = self.asked_for(
            None, group, 1024, {}, min_count=count, return_reservation_id=True
        )["reservation_id"]
        servers = self.api.get_servers(search_opts={"reservation_id": reservation})
        assert count == len(servers)
        return [self.settled(server["id"]) for server in servers]

    def asked_for(
        self,
        host: str | None,
        group: str | None,
        memory_mb: int,
        extra_specs: dict[str, str],
        **more: Any,
    ) -> dict[str, Any]:
        """Request servers, and return the body of the response."""
        server = self._build_server(
            flavor_id=self.flavor(memory_mb, extra_specs), networks="none", host=host
        )
        body = {"server": {**server, **more}}
        if group is not None:
            body["os:scheduler_hints"] = {"group": group}
        answer: dict[str, Any] = self.api.post_server(body)
        return answer

    def settled(self, server_id: str) -> dict[str, Any]:
        """Wait until the server has no pending task, and return it."""
        server: dict[str, Any] = {}

        def is_settled() -> bool:
            server.update(self.api.get_server(server_id))
            # Nova writes the fault of a failed server last.
            written = server["status"] != "ERROR" or "fault" in server
            settled = server["status"] in _SETTLED and server["OS-EXT-STS:task_state"] is None
            return settled and written

        wait_until(is_settled, server)
        return server

    def fail_host(self, host: str) -> None:
        """Stop the host and force it down; do not use this in a shared cloud."""
        service = self.api.get_services(binary="nova-compute", host=host)[0]["id"]
        self.computes[host].stop()
        self.api.put_service_force_down(service, True)

    def hosts_that_take(self, **extra_specs: Any) -> set[str]:
        """Return the hosts on which a server of a flavor with these extra specs can be booted."""
        taking = set()
        # The servers start at the same time.
        asked = [(host, self.asked_for(host, None, 16, extra_specs)["id"]) for host in self.hosts]
        for host, server_id in asked:
            server = self.settled(server_id)
            if server["status"] == "ACTIVE":
                assert host_of(server) == host
                taking.add(host)
            else:
                assert "No valid host was found" in server["fault"]["message"]
        return taking

    def delete(self, server_id: str) -> None:
        """Delete the server, and wait until it is deleted."""
        self.api.delete_server(server_id)
        found = {"all_tenants": 1, "uuid": server_id}
        wait_until(lambda: not self.api.get_servers(detail=False, search_opts=found))


class SharedCloud(Cloud):
    """A cloud that the tests of a class share.

    Each test starts without servers, groups and aggregates. The flavors stay.
    """

    keeps_servers = False
    """Whether servers stay, in a class whose tests do not depend on what is free."""
    _running: ClassVar[Self]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        running = cls("setUp")  # a test case that keeps the fixtures, and never runs as a test
        try:
            running.start()
        except BaseException:
            running._stop()
            raise
        cls._running = running

    @classmethod
    def tearDownClass(cls) -> None:
        cls._running._stop()
        super().tearDownClass()

    def _stop(self) -> None:
        while self._cleanups:
            function, arguments, keywords = self._cleanups.pop()
            function(*arguments, **keywords)
        mock.patch.stopall()

    def setUp(self) -> None:
        testtools.TestCase.setUp(self)  # Nova's own would start another cloud
        running = {
            name: value
            for name, value in vars(self._running).items()
            if not name.startswith("_") or name == "_service_fixture_count"
        }
        self.__dict__.update(running)
        self.log_lines.clear()
        self.aggregates = {}
        self.addCleanup(self.clean)
        self.prepare()

    def addCleanup(self, *args: Any, **kwargs: Any) -> None:
        """Add a cleanup, without oslotest's, which would stop the mocks of the shared cloud."""
        testtools.TestCase.addCleanup(self, *args, **kwargs)

    def flags(self, **options: Any) -> None:
        """Override options until the test ends."""
        group = options.pop("group", None)
        for name, value in options.items():
            before = CONF[group][name] if group else CONF[name]
            self.addCleanup(CONF.set_override, name, before, group)
            CONF.set_override(name, value, group)

    def clean(self) -> None:
        """Delete all servers, groups and aggregates of the test."""
        if self.keeps_servers:
            self._delete_aggregates()
            return
        for server in self.api.get_servers(detail=False, search_opts={"all_tenants": 1}):
            self.delete(server["id"])
        for host in self.hosts:
            # Nova frees the resources after the API no longer lists the server.
            provider = self._get_provider_uuid_by_host(host)
            wait_until(lambda: not any(self._get_provider_usages(provider).values()))  # noqa: B023
        self._run_periodics()  # until then, a host counts the migration of a deleted server
        for group in self.api.api_get("/os-server-groups?all_projects=True").body["server_groups"]:
            self.api.delete_server_group(group["id"])
        self._delete_aggregates()

    def _delete_aggregates(self) -> None:
        for aggregate in self.aggregates.values():
            for host in self.api.api_get(f"/os-aggregates/{aggregate}").body["aggregate"]["hosts"]:
                self.api.post_aggregate_action(aggregate, {"remove_host": {"host": host}})
            self.api.delete_aggregate(aggregate)


def wait_until(condition: Callable[[], bool], about: object = None) -> None:
    """Wait until the condition holds; fail with ``about`` after 60 seconds."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, about
        time.sleep(0.1)


def host_of(server: dict[str, Any]) -> str | None:
    """Return the name of the server's host."""
    found: str | None = server["OS-EXT-SRV-ATTR:host"]
    return found
