"""Every use case of AggregateInstanceTypeFilter, through Nova's HTTP API."""

from real import clouds

FORCED = {"force_metadata_check": "True"}


class UseCases(clouds.Cloud):
    def test_introduction(self) -> None:
        self.aggregate("host1", key="1", force_metadata_check="False")
        self.aggregate("host2")
        self.aggregate("host3", other="1", force_metadata_check="False")
        self.assertEqual({"host2", "host3"}, self.hosts_that_take(key="~"))
        self.assertEqual({"host1", "host2", "host3"}, self.hosts_that_take(key="<or> * <or> ~"))
        self.assertEqual({"host1"}, self.hosts_that_take(key="*"))
        self.assertEqual({"host1", "host2", "host3"}, self.hosts_that_take())

    def test_use_case_1_any_value(self) -> None:
        self.aggregate("host1", key="1")
        self.aggregate("host2", key="2")
        self.assertEqual({"host1", "host2"}, self.hosts_that_take(key="*"))

    def test_use_case_2_a_value_or_none(self) -> None:
        self.aggregate("host1", key="1")
        self.aggregate("host2", key="2")
        self.aggregate("host3")
        self.assertEqual({"host1", "host3"}, self.hosts_that_take(key="<or> 1 <or> ~"))

    def test_use_case_3_never_with_the_key(self) -> None:
        self.aggregate("host1", key="1")
        self.assertEqual({"host2", "host3"}, self.hosts_that_take(key="!"))

    def test_use_case_4_forced(self) -> None:
        self.aggregate("host1", key="1", **FORCED)
        self.aggregate("host2", key="1")
        self.assertEqual({"host1", "host2"}, self.hosts_that_take(key="1"))
        self.assertEqual(set(), self.hosts_that_take(key="2"))
        self.assertEqual({"host2", "host3"}, self.hosts_that_take())

    def test_use_case_5_sentinels_in_forced_aggregates(self) -> None:
        self.aggregate("host1", key="*", **FORCED)
        self.aggregate("host2", key="*")
        self.aggregate("host3", key="!", **FORCED)
        self.assertEqual({"host1"}, self.hosts_that_take(key="1"))
        self.assertEqual({"host1"}, self.hosts_that_take(key="2"))
        self.assertEqual({"host2", "host3"}, self.hosts_that_take())
        self.assertEqual(set(), self.hosts_that_take(key="*", key2="2"))

    def test_use_case_6_junctions_in_forced_aggregates(self) -> None:
        self.aggregate("host1", key="<or> 1 <or> 2", **FORCED)
        self.aggregate("host2", key="<or> 1 <or> 2")
        for value in ("1", "2", "<or> 2 <or> 3", "<or> 1 <or> 2"):
            self.assertEqual({"host1"}, self.hosts_that_take(key=value), value)
        self.assertEqual({"host2", "host3"}, self.hosts_that_take())

    def test_use_case_7_namespaced_keys(self) -> None:
        self.aggregate("host1", **{"hw:cpu_policy": "shared"})
        self.aggregate("host2", **{"hw:cpu_policy": "dedicated"})
        self.assertEqual({"host1", "host3"}, self.hosts_that_take(**{"hw:cpu_policy": "shared"}))

    def test_use_case_7_namespaced_keys_of_forced_aggregates(self) -> None:
        self.aggregate("host1", **{"hw:cpu_policy": "shared"} | FORCED)
        self.assertEqual({"host2", "host3"}, self.hosts_that_take())
        self.assertIn("host1", self.hosts_that_take(**{"hw:cpu_policy": "shared"}))


class Lives(clouds.Cloud):
    """What happens to servers afterwards."""

    def test_metadata_changed_at_run_time_takes_effect_on_the_next_request(self) -> None:
        self.aggregate("host1", ssd="sata")
        self.assertEqual("ERROR", self.boot(host="host1", ssd="nvme")["status"])
        self.aggregate("host1", ssd="nvme")
        self.assertEqual("ACTIVE", self.boot(host="host1", ssd="nvme")["status"])
        self.aggregate("host1", ssd="sata")
        self.assertEqual("ERROR", self.boot(host="host1", ssd="nvme")["status"])

    def test_a_rebuild_succeeds_on_a_host_that_would_be_rejected_now(self) -> None:
        self.aggregate("host1", ssd="nvme")
        server = self.boot(ssd="nvme")
        self.assertEqual("host1", clouds.host_of(server))
        self.aggregate("host1", ssd="sata")
        self.assertEqual("ERROR", self.boot(ssd="nvme")["status"])
        another_image = "a2459075-d96c-40d5-893e-577ff92e721c"
        self.api.post_server_action(server["id"], {"rebuild": {"imageRef": another_image}})
        rebuilt = self.settled(server["id"])
        self.assertEqual("ACTIVE", rebuilt["status"])
        self.assertEqual(another_image, rebuilt["image"]["id"])
        self.assertEqual("host1", clouds.host_of(rebuilt))

    def test_a_resize_goes_where_the_new_flavor_may_go(self) -> None:
        self.aggregate("host1", ssd="sata")
        self.aggregate("host2", ssd="nvme")
        server = self.boot(ssd="sata")
        flavor = self._create_flavor(extra_spec={"ssd": "nvme"})
        self.api.post_server_action(server["id"], {"resize": {"flavorRef": flavor}})
        resized = self.settled(server["id"])
        self.assertEqual("VERIFY_RESIZE", resized["status"])
        self.assertEqual("host2", clouds.host_of(resized))

    def test_a_migration_goes_where_the_flavor_may_go(self) -> None:
        self.aggregate("host1", ssd="nvme")
        self.aggregate("host2", ssd="sata")
        self.aggregate("host3", ssd="nvme")
        server = self.boot(ssd="nvme")
        before = clouds.host_of(server)
        self.api.post_server_action(server["id"], {"migrate": None})
        moved = self.settled(server["id"])
        self.assertEqual("VERIFY_RESIZE", moved["status"])
        self.assertEqual({"host1", "host3"}, {before, clouds.host_of(moved)})

    def test_a_live_migration_goes_where_the_flavor_may_go(self) -> None:
        self.aggregate("host1", ssd="nvme")
        self.aggregate("host2", ssd="sata")
        self.aggregate("host3", ssd="nvme")
        server = self.boot(host="host1", ssd="nvme")
        self.assertEqual("host3", clouds.host_of(self._live_migrate(server)))

    def test_an_unshelved_server_goes_where_its_flavor_may_go(self) -> None:
        self.aggregate("host1", ssd="nvme")
        self.aggregate("host2", ssd="nvme")
        self.aggregate("host3", ssd="sata")
        server = self.boot(host="host1", ssd="nvme")
        self._shelve_server(server)
        self.aggregate("host1", ssd="sata")
        unshelved = self._unshelve_server(server)
        self.assertEqual("host2", clouds.host_of(unshelved))

    def test_an_evacuated_server_goes_where_its_flavor_may_go(self) -> None:
        self.aggregate("host1", ssd="nvme")
        self.aggregate("host2", ssd="sata")
        self.aggregate("host3", ssd="nvme")
        server = self.boot(host="host1", ssd="nvme")
        self.computes["host1"].stop()
        service = self.api.get_services(binary="nova-compute", host="host1")[0]["id"]
        self.api.put_service_force_down(service, True)
        self._evacuate_server(server, expected_host="host3")


class NotANumber(clouds.Cloud):
    """A value that is no number, under a flavor's numeric operator: here, simply no match."""

    expected = "ACTIVE"

    def test_another_host_fits(self) -> None:
        self.aggregate("host1", cores="many")
        self.aggregate("host2", cores="16")
        self.aggregate("host3", cores="4")
        server = self.boot(cores=">= 8")
        self.assertEqual(self.expected, server["status"])
        self.assertEqual("host2" if self.expected == "ACTIVE" else None, clouds.host_of(server))


class NotANumberForNova(NotANumber):
    """The same with Nova's own filter: the request is aborted."""

    enabled_filter = clouds.NOVAS_COUNTERPART
    available_filters = ["nova.scheduler.filters.all_filters"]
    expected = "ERROR"


class TriedWithoutRisk(clouds.Cloud):
    def setUp(self) -> None:
        super().setUp()
        clouds.CONF.set_override("enforce", False, group="steelyard")

    def test_nothing_is_rejected_and_the_log_says_what_would_be(self) -> None:
        self.aggregate("host1", ssd="sata")
        server = self.boot(host="host1", ssd="nvme")
        self.assertEqual("ACTIVE", server["status"], server.get("fault"))
        self.assertIn(
            "AggregateInstanceTypeFilter would reject 1 of 1 hosts for server "
            f"{server['id']}: 1 by key 'ssd': flavor wants 'nvme', aggregate 'of-host1' offers 'sata'",
            self.said,
        )


class Reasons(clouds.Cloud):
    def test_the_log_sums_up_why_no_host_is_left(self) -> None:
        self.aggregate("host1", ssd="sata")
        server = self.boot(ssd="nvme")
        self.assertEqual("ERROR", server["status"])
        self.assertIn(
            f"AggregateInstanceTypeFilter rejects 3 of 3 hosts for server {server['id']}: "
            "2 by key 'ssd': flavor wants 'nvme', no aggregate of the host has the key; "
            "1 by key 'ssd': flavor wants 'nvme', aggregate 'of-host1' offers 'sata'",
            self.said,
        )
