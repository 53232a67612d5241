"""``steelyard cloud import`` from a real Nova and a real Placement."""

from unittest import mock

from support.nova import clouds  # before the rest of Nova, which says why

# isort: split
from nova import context
from nova.api.openstack import api_version_request
from nova.tests import fixtures as nova_fixtures
from oslo_config import cfg

from steelyard import conf as options
from steelyard.analysis.selecting import trees_of
from steelyard.cloud import Flavor
from steelyard.cloud.values import CPUInfo
from steelyard.scheduler import FilterScheduler
from steelyard.traits import CandidatesRequest, Inventory, ResourceProvider
from support.nova.imports import Imports

UNKNOWN_SERVER = "40000000-0000-4000-8000-000000000000"


class TestImport(Imports, clouds.SharedCloud):
    def test_import_writes_data_of_both_apis(self) -> None:
        self.aggregate("host1", ssd="nvme", availability_zone="north")
        self.aggregate("host2")
        self.api.post_aggregate_action(self.aggregates["host1"], {"add_host": {"host": "host3"}})
        self._set_provider_traits(
            self.provider("host1"), [*self.traits("host1"), "HW_CPU_X86_AVX2"]
        )
        group = self.make_group(self.api, "web", "anti-affinity", max_server_per_host=2)
        self.make_private_flavor("secret")
        first = self.boot(host="host1", group=group, ssd="<in> nvme")
        second = self.boot(host="host2", memory_mb=2048)
        self.set_service("host2", status="disabled", disabled_reason="a new disk")
        self.set_service("host3", forced_down=True)

        cloud, said = self.imported()

        assert list(cloud.hosts) == ["host1", "host2", "host3"]
        for host in cloud.hosts.values():
            assert self.provider(host.name) == host.uuid
            assert set(self.traits(host.name)) == host.traits
        assert "HW_CPU_X86_AVX2" in cloud.hosts["host1"].traits
        self.assert_free_as_in_placement(cloud)
        assert [host.out_of_service for host in cloud.hosts.values()] == [
            "",
            "disabled: a new disk",
            "down",
        ]
        made = cloud.aggregates["of-host1"]
        assert made.hosts == ("host1", "host3")
        assert dict(made.metadata) == {"ssd": "nvme", "availability_zone": "north"}
        assert {first["id"], second["id"]} == set(cloud.servers)
        placed = cloud.servers[first["id"]]
        assert (placed.host, placed.group) == ("host1", "web")
        assert dict(placed.flavor.extra_specs) == {"ssd": "<in> nvme"}
        assert (placed.flavor.vcpus, placed.flavor.memory_mb) == (1, 1024)
        assert dict(cloud.server_group("web").rules) == {"max_server_per_host": 2}
        assert group == cloud.server_group("web").uuid
        listed = {"secret"} | {flavor["name"] for flavor in self.api.get_flavors()}
        assert listed == set(cloud.flavors)
        assert (
            f"steelyard: {self.path}: 3 hosts, 2 aggregates, {len(listed)} flavors, "
            f"1 server group, 2 servers\n" == said
        )

    def test_import_writes_owner_and_request_of_servers(self) -> None:
        self.aggregate("host1", availability_zone="north")
        body = self._build_server(networks="none", az="north")
        hints = {"different_host": [UNKNOWN_SERVER], "rack": "a"}
        made = self.api.post_server({"server": body, "os:scheduler_hints": hints})
        booted = self.settled(made["id"])
        assert booted["status"] == "ACTIVE"
        cloud, said = self.imported()
        server = cloud.servers[made["id"]]
        assert (server.project, server.user) == (booted["tenant_id"], booted["user_id"])
        newest = api_version_request.max_api_version()
        shown = {
            "2.96": ("pinned availability zones", server.availability_zone == "north"),
            "2.98": ("image properties", bool(server.image_properties)),
            "2.100": (
                "scheduler hints",
                server.scheduler_hints
                == {
                    "different_host": (UNKNOWN_SERVER,),
                    "rack": ("a",),
                },
            ),
        }
        for microversion, (what, is_there) in shown.items():
            is_shown = newest >= api_version_request.APIVersionRequest(microversion)
            assert is_there == is_shown, what
            assert (what not in said) == is_shown, what

    def test_import_from_an_older_nova_names_what_it_does_not_show(self) -> None:
        server = self.boot()
        older = mock.patch.object(api_version_request, "_MAX_API_VERSION", "2.96")
        with older:
            cloud, said = self.imported()
        assert (
            "steelyard: not in the file: data of servers that only a newer Nova shows: image "
            "properties (microversion 2.98), scheduler hints (microversion 2.100)\n" in said
        )
        assert cloud.servers[server["id"]].project

    def test_import_writes_hypervisor_and_cpu(self) -> None:
        cloud, _ = self.imported()
        host = cloud.hosts["host1"]
        (seen,) = self.api.api_get("/os-hypervisors/detail?hypervisor_hostname_pattern=host1").body[
            "hypervisors"
        ]
        assert host.hypervisor_type == seen["hypervisor_type"] == "fake"
        assert host.hypervisor_version == seen["hypervisor_version"]
        assert host.cpu_info == CPUInfo(
            "x86_64",
            "Intel",
            "Nehalem",
            frozenset({"pge", "clflush"}),
            {"cores": 1, "threads": 1, "sockets": 4},
        )

    def test_import_reads_all_pages(self) -> None:
        for number in range(3):
            self.make_group(self.api, f"g{number}", "affinity")
        servers = {self.boot()["id"] for _ in range(3)}
        whole, _ = self.imported()
        self.flags(max_limit=2, group="api")
        self.served.asked.clear()
        paged, _ = self.imported()
        assert servers == set(paged.servers)
        assert len(paged.server_groups) == 3
        assert len(paged.flavors) > 5
        for section in ("hosts", "flavors", "server_groups", "servers"):
            assert getattr(whole, section) == getattr(paged, section)
        pages = [asked for asked in self.served.asked if "/servers/detail" in asked]
        assert len(pages) == 3, pages

    def test_import_sends_one_request_per_aggregate_and_none_per_server_or_flavor(self) -> None:
        def asked() -> list[str]:
            self.served.asked.clear()
            self.imported()
            return [path for path in self.served.asked if not path.startswith("/identity")]

        self.aggregate("host1", ssd="nvme")
        self.boot()
        few = len(asked())
        self.aggregate("host2", ssd="nvme")
        for _ in range(3):
            self.boot(ssd="nvme")
        assert few + 1 == len(asked())

    def test_free_amounts_equal_those_of_live_cloud(self) -> None:
        self.boot(host="host1", memory_mb=6000)
        self.boot(host="host2", memory_mb=3000)
        self.set_service("host3", status="disabled")
        self.put_on_the_side("host2", {"VCPU": 2, "DISK_GB": 100})
        cloud, _ = self.imported()
        assert dict(cloud.hosts["host2"].used) == {"vcpus": 2, "disk_gb": 100}
        self.assert_free_as_in_placement(cloud)
        for memory_mb in (1, 1680, 1681, 4680, 4681, 9000):
            flavor = Flavor("f", 1, memory_mb, 1)
            assert self.providers_with_room(flavor) == self.hosts_with_room(cloud, flavor), (
                memory_mb
            )

    def test_nova_boots_server_on_host_selected_from_file(self) -> None:
        self.aggregate("host1", ssd="sata")
        self.aggregate("host2", ssd="nvme")
        self.aggregate("host3", ssd="nvme")
        self.boot(host="host2", memory_mb=7000, ssd="nvme")
        flavor = self._create_flavor(memory_mb=2048, vcpu=1, extra_spec={"ssd": "nvme"})
        cloud, _ = self.imported()
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        options.register(conf)
        scheduler = FilterScheduler(cloud, conf)
        (name,) = (each["name"] for each in self.api.get_flavors() if each["id"] == flavor)
        selection = scheduler.select(scheduler.request(name))
        assert [server.host for server in selection.servers] == ["host3"]
        server = self.boot(host="host3", memory_mb=2048, ssd="nvme")
        assert (server["status"], clouds.host_of(server)) == ("ACTIVE", "host3")

    def test_servers_without_host_are_left_out_and_duplicate_names_kept_apart(self) -> None:
        self.flags(shelved_offload_time=0)
        lost = self.boot(memory_mb=40_000)
        assert lost["status"] == "ERROR"
        shelved = self.boot()
        self.api.post_server_action(shelved["id"], {"shelve": {}})
        self._wait_for_state_change(shelved, "SHELVED_OFFLOADED")
        twins = [self.boot(), self.boot()]
        for twin in twins:
            self.api.put_server(twin["id"], {"server": {"name": "twin"}})
        cloud, said = self.imported()
        assert sorted(f"twin ({twin['id']})" for twin in twins) == [
            server.name for server in cloud.servers.values()
        ]
        assert (
            "steelyard: not in the file: 2 servers on no host, being built, shelved or in error\n"
            in said
        )

    def test_changed_flavor_is_written_in_both_versions(self) -> None:
        flavor = self._create_flavor(memory_mb=1024, vcpu=2, id="f1", name="small")
        server = self._create_server(flavor_id=flavor, networks="none")
        self.api.delete_flavor("f1")
        self._create_flavor(memory_mb=4096, vcpu=4, id="f2", name="small")
        self.addCleanup(self.api.delete_flavor, "f2")
        cloud, said = self.imported()
        assert cloud.flavor("small").memory_mb == 4096
        kept = cloud.servers[server["id"]].flavor
        assert (kept.name, kept.memory_mb) == ("small, as servers have it", 1024)
        assert "added to the file: 1 flavor, such as 'small, as servers have it'" in said
        self.assert_free_as_in_placement(cloud)

    def test_root_disk_on_volume_uses_no_host_disk(self) -> None:
        flavor = self._create_flavor(memory_mb=512, vcpu=1, disk=20, ephemeral=3, swap=1500)
        server = self._build_server(flavor_id=flavor, image_uuid="", networks="none")
        server["block_device_mapping_v2"] = [
            {
                "boot_index": 0,
                "uuid": nova_fixtures.CinderFixture.IMAGE_BACKED_VOL,
                "source_type": "volume",
                "destination_type": "volume",
            }
        ]
        booted = self.settled(self.api.post_server({"server": server})["id"])
        assert booted["status"] == "ACTIVE"
        cloud, _ = self.imported()
        kept = cloud.servers[booted["id"]].flavor
        assert kept.root_gb == 5
        assert kept.name.endswith(", from volume")
        assert cloud.flavor(kept.name.removesuffix(", from volume")).root_gb == 25
        self.assert_free_as_in_placement(cloud)

    def test_providers_without_host_are_counted(self) -> None:
        storage = {"name": "nfs", "uuid": "30000000-0000-4000-8000-000000000000"}
        made = self.placement.post("/resource_providers", storage, version="1.20")
        assert made.status == 200
        url = f"/resource_providers/{storage['uuid']}"
        self.addCleanup(self.placement.delete, url)
        _, said = self.imported()
        remark, _ = said.splitlines()
        assert "1 resource provider in Placement, such as 30000000-0000-4000-8000" in remark


class TestImportOfOwnCloud(Imports):
    """Tests that change the cloud in ways that cannot be undone."""

    def test_each_node_of_a_compute_service_is_a_host(self) -> None:
        manager = self.computes["host3"].manager
        manager.driver._set_nodes(["host3", "metal1", "metal2"])
        manager.update_available_resource(context.get_admin_context())
        self.aggregate("host3", baremetal="true")
        flavor = self._create_flavor(memory_mb=1024, vcpu=1)
        body = self._build_server(flavor_id=flavor, networks="none")
        made = self.api.post_server({"server": body | {"hypervisor_hostname": "metal2"}})
        assert self.settled(made["id"])["status"] == "ACTIVE"
        cloud, _ = self.imported()
        assert list(cloud.hosts) == ["host1", "host2", "host3", "metal1", "metal2"]
        assert cloud.aggregates["of-host3"].hosts == ("host3", "metal1", "metal2")
        assert cloud.servers[made["id"]].host == "metal2"
        self.assert_free_as_in_placement(cloud)

    def test_import_writes_provider_trees(self) -> None:
        self.aggregate("host1", ssd="nvme")
        root = self.provider("host1")
        (aggregate,) = self.of_provider("host1", "aggregates")["aggregates"]
        numa = "20000000-0000-4000-8000-000000000001"
        card = "20000000-0000-4000-8000-000000000002"
        for uuid, name, parent in ((numa, "numa0", root), (card, "card", numa)):
            child = {"name": name, "uuid": uuid, "parent_provider_uuid": parent}
            assert self.placement.post("/resource_providers", child, version="1.20").status == 200
        limits = {"reserved": 1, "min_unit": 2, "max_unit": 4, "step_size": 2}
        inventory = {"total": 8, "allocation_ratio": 2.0, **limits}
        there = {"resource_provider_generation": 0, "inventories": {"VGPU": inventory}}
        url = f"/resource_providers/{card}/inventories"
        assert self.placement.put(url, there, version="1.14").status == 200
        self._create_trait("CUSTOM_CARD")
        self._set_provider_traits(card, ["CUSTOM_CARD"])
        consumer = {
            "allocations": {card: {"resources": {"VGPU": 2}}},
            "project_id": "someone",
            "user_id": "else",
            "consumer_generation": None,
        }
        url = "/allocations/10000000-0000-4000-8000-000000000002"
        assert self.placement.put(url, consumer, version="1.28").status == 204

        cloud, said = self.imported()

        host = cloud.hosts["host1"]
        assert host.placement_aggregates == {aggregate}
        assert cloud.aggregates["of-host1"].uuid == aggregate
        assert host.providers == (
            ResourceProvider(
                card,
                "card",
                numa,
                {"VGPU": Inventory(8, used=2, allocation_ratio=2.0, **limits)},
                {"CUSTOM_CARD"},
            ),
            ResourceProvider(numa, "numa0"),
        )
        assert cloud.hosts["host2"].providers == ()
        assert "filters do not read the nested resource providers of 1 host" in said
        trees = trees_of(cloud)
        for query in (
            "resources=VCPU:1",
            "resources=VCPU:1,VGPU:2",
            "resources=VCPU:1,VGPU:3",
            "resources=VCPU:1,VGPU:6",
            "resources=VCPU:99999",
            f"resources=VCPU:1&member_of={aggregate}",
            "resources=VGPU:2&required=CUSTOM_CARD",
        ):
            answer = self.placement.get(f"/allocation_candidates?{query}", version="1.29").body
            offered = {each["root_provider_uuid"] for each in answer["provider_summaries"].values()}
            found = CandidatesRequest.parse(query).roots(trees)
            assert {each.uuid for each in found} == offered, query

    def test_omitted_data_has_one_remark(self) -> None:
        for number, host in enumerate(self.hosts[:2]):
            there = self.of_provider(host, "inventories")
            there["inventories"]["VGPU"] = {"total": 4, "max_unit": 4}
            url = f"/resource_providers/{self.provider(host)}/inventories"
            assert self.placement.put(url, there, version="1.14").status == 200
            child = {
                "name": f"gpu{number}",
                "uuid": f"20000000-0000-4000-8000-00000000000{number}",
                "parent_provider_uuid": self.provider(host),
            }
            made = self.placement.post("/resource_providers", child, version="1.20")
            assert made.status == 200
        cloud, said = self.imported()
        assert "filters do not read the nested resource providers of 2 hosts; flavors" in said
        assert len(said.splitlines()) == 2, said
        assert cloud.hosts["host1"].resources == {"VGPU": 4}
        assert cloud.hosts["host3"].resources == {}

    def test_extra_specs_with_resources_select_the_same_hosts(self) -> None:
        made = self.placement.put("/resource_classes/CUSTOM_CARD", {}, version="1.7")
        assert made.status == 201
        there = self.of_provider("host2", "inventories")
        there["inventories"]["CUSTOM_CARD"] = {"total": 2, "max_unit": 2}
        url = f"/resource_providers/{self.provider('host2')}/inventories"
        assert self.placement.put(url, there, version="1.14").status == 200
        asked = {"resources:VCPU": "0", "resources:MEMORY_MB": "512", "resources:CUSTOM_CARD": "1"}
        for fit in ({"host2"}, {"host2"}, set()):
            cloud, _ = self.imported()
            self.assert_free_as_in_placement(cloud)
            flavor = Flavor("card", 4, 1024, 1, asked)
            assert fit == self.providers_with_room(flavor)
            assert fit == self.hosts_with_room(cloud, flavor)
            if fit:
                made = self._create_flavor(memory_mb=1024, vcpu=4, disk=1, extra_spec=asked)
                server = self._build_server(flavor_id=made, networks="none")
                booted = self.settled(self.api.post_server({"server": server})["id"])
                assert clouds.host_of(booted) == "host2"
