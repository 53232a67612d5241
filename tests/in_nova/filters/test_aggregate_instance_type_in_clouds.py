"""The use cases of AggregateInstanceTypeFilter, through Nova's HTTP API."""

import os
import pathlib
import signal
import sys

import fixtures

from support.nova import clouds
from support.repository import EXAMPLES

FORCED = {"force_metadata_check": "True"}


class TestUseCases(clouds.SharedCloud):
    keeps_servers = True

    def test_introduction_extra_spec_selects_aggregates(self) -> None:
        self.aggregate("host1", key="1", force_metadata_check="False")
        self.aggregate("host2")
        self.aggregate("host3", other="1", force_metadata_check="False")
        assert {"host2", "host3"} == self.hosts_that_take(key="~")
        assert {"host1", "host2", "host3"} == self.hosts_that_take(key="<or> * <or> ~")
        assert {"host1"} == self.hosts_that_take(key="*")
        assert {"host1", "host2", "host3"} == self.hosts_that_take()

    def test_use_case_1_any_value(self) -> None:
        self.aggregate("host1", key="1")
        self.aggregate("host2", key="2")
        assert {"host1", "host2"} == self.hosts_that_take(key="*")

    def test_use_case_2_a_value_or_none(self) -> None:
        self.aggregate("host1", key="1")
        self.aggregate("host2", key="2")
        self.aggregate("host3")
        assert {"host1", "host3"} == self.hosts_that_take(key="<or> 1 <or> ~")

    def test_use_case_3_never_with_the_key(self) -> None:
        self.aggregate("host1", key="1")
        assert {"host2", "host3"} == self.hosts_that_take(key="!")

    def test_use_case_4_forced(self) -> None:
        self.aggregate("host1", key="1", **FORCED)
        self.aggregate("host2", key="1")
        assert {"host1", "host2"} == self.hosts_that_take(key="1")
        assert set() == self.hosts_that_take(key="2")
        assert {"host2", "host3"} == self.hosts_that_take()

    def test_use_case_5_sentinels_in_forced_aggregates(self) -> None:
        self.aggregate("host1", key="*", **FORCED)
        self.aggregate("host2", key="*")
        self.aggregate("host3", key="!", **FORCED)
        assert {"host1"} == self.hosts_that_take(key="1")
        assert {"host1"} == self.hosts_that_take(key="2")
        assert {"host2", "host3"} == self.hosts_that_take()
        assert set() == self.hosts_that_take(key="*", key2="2")

    def test_use_case_6_junctions_in_forced_aggregates(self) -> None:
        self.aggregate("host1", key="<or> 1 <or> 2", **FORCED)
        self.aggregate("host2", key="<or> 1 <or> 2")
        for value in ("1", "2", "<or> 2 <or> 3", "<or> 1 <or> 2"):
            assert {"host1"} == self.hosts_that_take(key=value), value
        assert {"host2", "host3"} == self.hosts_that_take()

    def test_use_case_7_namespaced_keys(self) -> None:
        self.aggregate("host1", **{"hw:cpu_policy": "shared"})
        self.aggregate("host2", **{"hw:cpu_policy": "dedicated"})
        assert {"host1", "host3"} == self.hosts_that_take(**{"hw:cpu_policy": "shared"})

    def test_use_case_7_namespaced_keys_of_forced_aggregates(self) -> None:
        self.aggregate("host1", **{"hw:cpu_policy": "shared"} | FORCED)
        assert {"host2", "host3"} == self.hosts_that_take()
        assert "host1" in self.hosts_that_take(**{"hw:cpu_policy": "shared"})


class TestLives(clouds.SharedCloud):
    """The life of servers after their creation, and the log."""

    def test_metadata_changed_at_run_time_takes_effect_on_the_next_request(self) -> None:
        self.aggregate("host1", ssd="sata")
        assert self.boot(host="host1", ssd="nvme")["status"] == "ERROR"
        self.aggregate("host1", ssd="nvme")
        assert self.boot(host="host1", ssd="nvme")["status"] == "ACTIVE"
        self.aggregate("host1", ssd="sata")
        assert self.boot(host="host1", ssd="nvme")["status"] == "ERROR"

    def test_rebuild_succeeds_on_a_host_that_the_filter_now_rejects(self) -> None:
        self.aggregate("host1", ssd="nvme")
        server = self.boot(ssd="nvme")
        assert clouds.host_of(server) == "host1"
        self.aggregate("host1", ssd="sata")
        assert self.boot(ssd="nvme")["status"] == "ERROR"
        another_image = "a2459075-d96c-40d5-893e-577ff92e721c"
        self.api.post_server_action(server["id"], {"rebuild": {"imageRef": another_image}})
        rebuilt = self.settled(server["id"])
        assert rebuilt["status"] == "ACTIVE"
        assert another_image == rebuilt["image"]["id"]
        assert clouds.host_of(rebuilt) == "host1"

    def test_resize_selects_a_host_that_fits_the_new_flavor(self) -> None:
        self.aggregate("host1", ssd="sata")
        self.aggregate("host2", ssd="nvme")
        server = self.boot(ssd="sata")
        flavor = self._create_flavor(extra_spec={"ssd": "nvme"})
        self.api.post_server_action(server["id"], {"resize": {"flavorRef": flavor}})
        resized = self.settled(server["id"])
        assert resized["status"] == "VERIFY_RESIZE"
        assert clouds.host_of(resized) == "host2"

    def test_migration_selects_a_host_that_fits_the_flavor(self) -> None:
        self.aggregate("host1", ssd="nvme")
        self.aggregate("host2", ssd="sata")
        self.aggregate("host3", ssd="nvme")
        server = self.boot(ssd="nvme")
        before = clouds.host_of(server)
        self.api.post_server_action(server["id"], {"migrate": None})
        moved = self.settled(server["id"])
        assert moved["status"] == "VERIFY_RESIZE"
        assert {"host1", "host3"} == {before, clouds.host_of(moved)}

    def test_live_migration_selects_a_host_that_fits_the_flavor(self) -> None:
        self.aggregate("host1", ssd="nvme")
        self.aggregate("host2", ssd="sata")
        self.aggregate("host3", ssd="nvme")
        server = self.boot(host="host1", ssd="nvme")
        assert clouds.host_of(self._live_migrate(server)) == "host3"

    def test_unshelve_selects_a_host_that_fits_the_flavor(self) -> None:
        self.aggregate("host1", ssd="nvme")
        self.aggregate("host2", ssd="nvme")
        self.aggregate("host3", ssd="sata")
        server = self.boot(host="host1", ssd="nvme")
        self._shelve_server(server)
        self.aggregate("host1", ssd="sata")
        unshelved = self._unshelve_server(server)
        assert clouds.host_of(unshelved) == "host2"

    def test_value_that_is_not_a_number_rejects_only_its_host(self) -> None:
        metadata_with_text(self)
        server = self.boot(cores=">= 8")
        assert (server["status"], clouds.host_of(server)) == ("ACTIVE", "host2")

    def test_filter_on_trial_rejects_no_host_and_logs_rejections(self) -> None:
        self.flags(trial_filters=[self.enabled_filter], group="steelyard")
        self.aggregate("host1", ssd="sata")
        server = self.boot(host="host1", ssd="nvme")
        assert server["status"] == "ACTIVE", server.get("fault")
        assert (
            "AggregateInstanceTypeFilter would reject 1 of 1 hosts for server "
            f"{server['id']}: 1 by key 'ssd': flavor wants 'nvme', aggregate 'of-host1' offers 'sata'"
            in self.log_lines
        )

    def test_filter_that_leaves_no_host_logs_a_summary(self) -> None:
        self.aggregate("host1", ssd="sata")
        server = self.boot(ssd="nvme")
        assert server["status"] == "ERROR"
        assert (
            f"AggregateInstanceTypeFilter rejects 3 of 3 hosts for server {server['id']}: "
            "2 by key 'ssd': flavor wants 'nvme', no aggregate of the host has the key; "
            "1 by key 'ssd': flavor wants 'nvme', aggregate 'of-host1' offers 'sata'"
            in self.log_lines
        )


class TestEvacuation(clouds.Cloud):
    def test_evacuation_selects_a_host_that_fits_the_flavor(self) -> None:
        self.aggregate("host1", ssd="nvme")
        self.aggregate("host2", ssd="sata")
        self.aggregate("host3", ssd="nvme")
        server = self.boot(host="host1", ssd="nvme")
        self.fail_host("host1")
        self._evacuate_server(server, expected_host="host3")


class TestNotANumberInNova(clouds.Cloud):
    """A cloud with Nova's own filter."""

    enabled_filter = clouds.NOVAS_COUNTERPART
    available_filters = ["nova.scheduler.filters.all_filters"]

    def test_value_that_is_not_a_number_aborts_novas_request(self) -> None:
        metadata_with_text(self)
        server = self.boot(cores=">= 8")
        assert (server["status"], clouds.host_of(server)) == ("ERROR", None)


def metadata_with_text(cloud: clouds.Cloud) -> None:
    """Set a key to 'many' on one host, and to numbers on the others."""
    cloud.aggregate("host1", cores="many")
    cloud.aggregate("host2", cores="16")
    cloud.aggregate("host3", cores="4")


class TestOnTrialUntilSighup(clouds.Cloud):
    """A cloud with the filter of the guide, on trial until SIGHUP."""

    enabled_filter = "ServerCountFilter"
    available_filters = ["nova.scheduler.filters.all_filters", "steelyard.nova.ServerCountFilter"]

    def setUp(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch("sys.path", [str(EXAMPLES / "plugins/acme"), *sys.path])
        )
        # stevedore caches the plugins that were installed at its first call.
        cache = "stevedore.extension.ExtensionManager.ENTRY_POINT_CACHE"
        self.useFixture(fixtures.MonkeyPatch(cache, {}))
        self.file = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "nova.conf"
        super().setUp()
        self.addCleanup(signal.signal, signal.SIGHUP, signal.getsignal(signal.SIGHUP))
        # oslo.service does this in nova-scheduler, which is not a process in these tests.
        signal.signal(signal.SIGHUP, lambda *_: clouds.CONF.mutate_config_files())
        self.read_again((EXAMPLES / "acme-nova.conf").read_text())

    def read_again(self, text: str) -> None:
        self.file.write_text(text)
        clouds.CONF.default_config_files = [str(self.file)]
        os.kill(os.getpid(), signal.SIGHUP)

    def test_filter_of_another_distribution_rejects_after_its_trial(self) -> None:
        for _ in range(2):
            assert self.boot(host="host1")["status"] == "ACTIVE"
        assert self.log_of_filter() == []
        server = self.boot(host="host1")
        assert server["status"] == "ACTIVE", server.get("fault")
        report = f"1 of 1 hosts for server {server['id']}: 1 by has 2 of at most 2 servers"
        assert f"ServerCountFilter would reject {report}" == self.log_of_filter()[-1]

        self.read_again("[steelyard]\ntrial_filters = ServerCountFiltr\n")
        assert self.boot(host="host1")["status"] == "ACTIVE"
        assert "no filter 'ServerCountFiltr'; did you mean 'ServerCountFilter'?" in "\n".join(
            self.log_lines
        )

        self.read_again("[steelyard]\ntrial_filters =\n")
        refused = self.boot(host="host1")
        assert refused["status"] == "ERROR"
        report = f"1 of 1 hosts for server {refused['id']}: 1 by has 4 of at most 2 servers"
        assert f"ServerCountFilter rejects {report}" == self.log_of_filter()[-1]

    def log_of_filter(self) -> list[str]:
        return [line for line in self.log_lines if line.startswith("ServerCountFilter")]
