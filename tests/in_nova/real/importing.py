"""``steelyard cloud import`` from a real Nova and a real Placement, over HTTP.

Both are served on the loopback, with a small Keystone beside them that knows two users and has the
catalogue. The tokens that it gives are what the other two take for who is asking.
"""

import contextlib
import io
import json
import pathlib
import socket
import socketserver
import tempfile
import threading
import warnings
import wsgiref.simple_server
from collections.abc import Callable, Iterable
from typing import Any

from real import clouds  # before the rest of Nova, as its functional tests want

# isort: split
import fixtures
from keystoneauth1 import fixture as keystone
from nova import context
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client
from oslo_config import cfg
from placement import deploy

from steelyard import cli
from steelyard import conf as options
from steelyard.filters.capacity import CapacityFilter
from steelyard.scheduler import Cloud, FilterScheduler, Flavor
from steelyard.scheduler.host_state import Request, host_states

OTHER_PROJECT = "7f0c1a3e5b2d4c6f8091a2b3c4d5e6f7"
ROLES = {"admin": ["reader", "member", "admin"], "member": ["reader", "member"]}
PASSWORD = "quod licet Iovi"
CLASSES = {"VCPU": "vcpus", "MEMORY_MB": "ram_mb", "DISK_GB": "disk_gb"}

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class Served:
    """Three services behind one port, each under its name."""

    def __init__(self, compute: App, placement: App) -> None:
        self._apps = {"identity": self._identity, "compute": compute, "placement": placement}
        self.catalogue = {"compute": "compute/v2.1", "placement": "placement"}
        self.asked: list[str] = []
        self.httpd = Server(("127.0.0.1", 0), Quiet)
        self.httpd.set_app(self)
        self.url = f"http://127.0.0.1:{self.httpd.server_port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        # The selector of serve_forever would stop everything else in a Nova that has eventlet.
        with contextlib.suppress(OSError):
            while True:
                self.httpd.process_request(*self.httpd.get_request())

    def stop(self) -> None:
        self.httpd.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self.httpd.server_close()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.asked.append(f"{environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}")
        name, _, rest = environ["PATH_INFO"].removeprefix("/").partition("/")
        user, _, project = environ.get("HTTP_X_AUTH_TOKEN", "").partition(":")
        if project:
            environ["HTTP_X_AUTH_USER"] = user
            environ["HTTP_X_AUTH_PROJECT_ID"] = project
            environ["HTTP_X_ROLES"] = ",".join(ROLES[user])
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = f"/{name}", f"/{rest}"
        return self._apps[name](environ, start_response)

    def _identity(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "GET":
            found = {"version": keystone.V3Discovery(f"{self.url}/identity/v3")}
            status, token, answer = "200 OK", "", found
        else:
            status, token, answer = self._token(environ)
        headers = [("Content-Type", "application/json"), ("X-Subject-Token", token)]
        start_response(status, headers)
        return [json.dumps(answer).encode()]

    def _token(self, environ: dict[str, Any]) -> tuple[str, str, Any]:
        auth = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))["auth"]
        user = auth["identity"]["password"]["user"]
        if user["password"] != PASSWORD:
            refused = {"message": "Not to you.", "code": 401, "title": "Unauthorized"}
            return "401 Unauthorized", "", {"error": refused}
        project = auth["scope"]["project"]["id"]
        token = keystone.V3Token(user_id=user["name"], project_id=project)
        for service, path in self.catalogue.items():
            token.add_service(service).add_standard_endpoints(
                public=f"{self.url}/{path}", region="here"
            )
        return "201 Created", f"{user['name']}:{project}", dict(token)


class Imports(clouds.Cloud):
    enabled_filter = "ServerGroupAntiAffinityFilter"

    def setUp(self) -> None:
        super().setUp()
        self.served = Served(
            self.api_fixture.app(), deploy.loadapp(self.placement.fixture.conf_fixture.conf)
        )
        self.addCleanup(self.served.stop)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.clouds(admin={}, member={"username": "member", "project_id": OTHER_PROJECT})
        self.other = client.TestOpenStackClient(
            "member",
            self.api_fixture.api.base_url,
            project_id=OTHER_PROJECT,
            roles=ROLES["member"],
        )
        self.other.microversion = "2.64"

    def clouds(self, **described: dict[str, str]) -> None:
        """Writes a clouds.yaml whose clouds differ in who asks."""
        usual = {
            "auth_url": f"{self.served.url}/identity/v3",
            "username": "admin",
            "password": PASSWORD,
            "project_id": nova_fixtures.PROJECT_ID,
            "user_domain_id": "default",
        }
        found = {
            name: {"auth": usual | more, "region_name": "here"} for name, more in described.items()
        }
        path = self.directory / "clouds.yaml"
        path.write_text(json.dumps({"clouds": found}))
        self.useFixture(fixtures.EnvironmentVariable("OS_CLIENT_CONFIG_FILE", str(path)))

    def run_import(self, cloud: str, *more: str) -> tuple[int, str]:
        """The exit status, and what is said, of an import that replaces what is there."""
        argv = ["cloud", "import", "--os-cloud", cloud, "--output", str(self.path), "--replace"]
        with contextlib.redirect_stderr(io.StringIO()) as said, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an old Nova, in this process too, has many
            status = cli.main([*argv, *more])
        return status, said.getvalue()

    @property
    def path(self) -> pathlib.Path:
        return self.directory / "cloud.yaml"

    def imported(self, cloud: str = "admin") -> tuple[Cloud, str]:
        status, said = self.run_import(cloud)
        self.assertEqual(0, status, said)
        return Cloud.load(self.path), said

    def provider(self, host: str) -> str:
        found: str = self._get_provider_uuid_by_host(host)
        return found

    def of_provider(self, host: str, kind: str) -> Any:
        url = f"/resource_providers/{self.provider(host)}/{kind}"
        return self.placement.get(url, version="1.14").body

    def assert_free_as_in_placement(self, cloud: Cloud) -> None:
        """What is left of each resource on each host, by our own capacity filter's measure."""
        for state in host_states(cloud):
            inventories = self.of_provider(state.host, "inventories")["inventories"]
            usages = self.of_provider(state.host, "usages")["usages"]
            for name, supply in CapacityFilter()._capacity.of(state):
                there = inventories[name]
                limit = (there["total"] - there["reserved"]) * there["allocation_ratio"]
                self.assertEqual(limit - usages[name], supply.left, (state.host, name))

    def hosts_with_room(self, cloud: Cloud, flavor: Flavor) -> set[str]:
        room = CapacityFilter()
        return {
            state.host
            for state in host_states(cloud)
            if room.host_passes(state, Request(flavor)) and not state.out_of_service
        }

    def providers_with_room(self, flavor: Flavor) -> set[str]:
        """The same, asked of Placement."""
        own = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.memory_mb, "DISK_GB": flavor.root_gb}
        stated = {
            key.removeprefix("resources:"): int(value)
            for key, value in flavor.extra_specs.items()
            if key.startswith("resources:")
        }
        resources = {**own, **stated}
        query = ",".join(f"{name}:{amount}" for name, amount in resources.items() if amount)
        url = f"/allocation_candidates?resources={query}&required=!COMPUTE_STATUS_DISABLED"
        found = self.placement.get(url, version="1.22").body["provider_summaries"]
        return {host for host in self.hosts if self.provider(host) in found}

    def make_group(self, api: Any, name: str, policy: str, **rules: int) -> str:
        body = {"name": name, "policy": policy} | ({"rules": rules} if rules else {})
        made: str = api.post_server_groups(body)["id"]
        return made

    def set_service(self, host: str, **body: Any) -> None:
        (service,) = self.api.get_services(host=host, binary="nova-compute")
        self.api.api_put(f"os-services/{service['id']}", body)

    def test_what_the_apis_say_is_in_the_file(self) -> None:
        self.aggregate("host1", ssd="nvme", availability_zone="north")
        self.aggregate("host2")
        self.api.post_aggregate_action(self.aggregates["host1"], {"add_host": {"host": "host3"}})
        self._set_provider_traits(
            self.provider("host1"), [*self._traits("host1"), "HW_CPU_X86_AVX2"]
        )
        group = self.make_group(self.api, "web", "anti-affinity", max_server_per_host=2)
        self.make_private_flavor("secret")
        first = self.boot(host="host1", group=group, ssd="<in> nvme")
        second = self.boot(host="host2", memory_mb=2048)
        self.set_service("host2", status="disabled", disabled_reason="a new disk")
        self.set_service("host3", forced_down=True)

        cloud, said = self.imported()

        self.assertEqual(["host1", "host2", "host3"], list(cloud.hosts))
        for host in cloud.hosts.values():
            self.assertEqual(self.provider(host.name), host.uuid)
            self.assertEqual(set(self._traits(host.name)), host.traits)
        self.assertIn("HW_CPU_X86_AVX2", cloud.hosts["host1"].traits)
        self.assert_free_as_in_placement(cloud)
        self.assertEqual(
            ["", "disabled: a new disk", "down"],
            [host.out_of_service for host in cloud.hosts.values()],
        )
        made = cloud.aggregates["of-host1"]
        self.assertEqual(("host1", "host3"), made.hosts)
        self.assertEqual({"ssd": "nvme", "availability_zone": "north"}, dict(made.metadata))
        self.assertEqual({first["id"], second["id"]}, set(cloud.servers))
        placed = cloud.servers[first["id"]]
        self.assertEqual(("host1", "web"), (placed.host, placed.group))
        self.assertEqual({"ssd": "<in> nvme"}, dict(placed.flavor.extra_specs))
        self.assertEqual((1, 1024), (placed.flavor.vcpus, placed.flavor.memory_mb))
        self.assertEqual({"max_server_per_host": 2}, dict(cloud.server_group("web").rules))
        self.assertEqual(group, cloud.server_group("web").uuid)
        listed = {"secret"} | {flavor["name"] for flavor in self.api.get_flavors()}
        self.assertEqual(listed, set(cloud.flavors))
        self.assertEqual(
            f"{self.path}: 3 hosts, 2 aggregates, {len(listed)} flavors, 1 server group, 2 "
            f"servers\n",
            said,
        )

    def make_private_flavor(self, name: str) -> None:
        flavor = {"id": name, "name": name, "vcpus": 1, "ram": 512, "disk": 1}
        self.api.post_flavor({"flavor": flavor | {"os-flavor-access:is_public": False}})

    def _traits(self, host: str) -> list[str]:
        found: list[str] = self.of_provider(host, "traits")["traits"]
        return found

    def test_lists_of_many_pages_are_read_to_their_end(self) -> None:
        for number in range(5):
            self.make_group(self.api, f"g{number}", "affinity")
        servers = {self.boot()["id"] for _ in range(5)}
        whole, _ = self.imported()
        self.flags(max_limit=2, group="api")
        self.served.asked.clear()
        paged, _ = self.imported()
        self.assertEqual(servers, set(paged.servers))
        self.assertEqual(5, len(paged.server_groups))
        self.assertGreater(len(paged.flavors), 5)
        for section in ("hosts", "flavors", "server_groups", "servers"):
            self.assertEqual(getattr(whole, section), getattr(paged, section))
        pages = [asked for asked in self.served.asked if "/servers/detail" in asked]
        self.assertEqual(4, len(pages), pages)

    def test_no_server_flavor_or_aggregate_is_asked_for_alone(self) -> None:
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
        self.assertEqual(few, len(asked()))

    def test_what_is_free_is_free_in_the_cloud(self) -> None:
        self.boot(host="host1", memory_mb=6000)
        self.boot(host="host2", memory_mb=3000)
        self.set_service("host3", status="disabled")
        self._put_on_the_side("host2", {"VCPU": 2, "DISK_GB": 100})
        cloud, _ = self.imported()
        self.assertEqual({"vcpus": 2, "disk_gb": 100}, dict(cloud.hosts["host2"].used))
        self.assert_free_as_in_placement(cloud)
        for memory_mb in (1, 1680, 1681, 4680, 4681, 9000):
            flavor = Flavor("f", 1, memory_mb, 1)
            self.assertEqual(
                self.providers_with_room(flavor), self.hosts_with_room(cloud, flavor), memory_mb
            )

    def _put_on_the_side(self, host: str, resources: dict[str, int]) -> None:
        """What no server of Nova's uses."""
        body = {
            "allocations": {self.provider(host): {"resources": resources}},
            "project_id": "somebody",
            "user_id": "else",
            "consumer_generation": None,
        }
        url = "/allocations/10000000-0000-4000-8000-000000000001"
        answer = self.placement.put(url, body, version="1.28")
        self.assertEqual(204, answer.status)

    def test_what_extra_specs_say_of_resources_is_asked_for(self) -> None:
        made = self.placement.put("/resource_classes/CUSTOM_CARD", {}, version="1.7")
        self.assertEqual(201, made.status)
        there = self.of_provider("host2", "inventories")
        there["inventories"]["CUSTOM_CARD"] = {"total": 2, "max_unit": 2}
        url = f"/resource_providers/{self.provider('host2')}/inventories"
        self.assertEqual(200, self.placement.put(url, there, version="1.14").status)
        asked = {"resources:VCPU": "0", "resources:MEMORY_MB": "512", "resources:CUSTOM_CARD": "1"}
        for fit in ({"host2"}, {"host2"}, set()):
            cloud, _ = self.imported()
            self.assert_free_as_in_placement(cloud)
            flavor = Flavor("card", 4, 1024, 1, asked)
            self.assertEqual(fit, self.providers_with_room(flavor))
            self.assertEqual(fit, self.hosts_with_room(cloud, flavor))
            if fit:
                made = self._create_flavor(memory_mb=1024, vcpu=4, disk=1, extra_spec=asked)
                server = self._build_server(flavor_id=made, networks="none")
                booted = self.settled(self.api.post_server({"server": server})["id"])
                self.assertEqual("host2", clouds.host_of(booted))

    def test_where_the_scheduler_of_the_file_puts_a_server_nova_can_boot_it(self) -> None:
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
        self.assertEqual(["host3"], [server.host for server in selection.servers])
        server = self.boot(host="host3", memory_mb=2048, ssd="nvme")
        self.assertEqual(("ACTIVE", "host3"), (server["status"], clouds.host_of(server)))

    def test_nodes_of_one_compute_service_are_hosts(self) -> None:
        manager = self.computes["host3"].manager
        manager.driver._set_nodes(["host3", "metal1", "metal2"])
        manager.update_available_resource(context.get_admin_context())
        self.aggregate("host3", baremetal="true")
        flavor = self._create_flavor(memory_mb=1024, vcpu=1)
        body = self._build_server(flavor_id=flavor, networks="none")
        made = self.api.post_server({"server": body | {"hypervisor_hostname": "metal2"}})
        self.assertEqual("ACTIVE", self.settled(made["id"])["status"])
        cloud, _ = self.imported()
        self.assertEqual(["host1", "host2", "host3", "metal1", "metal2"], list(cloud.hosts))
        self.assertEqual(("host3", "metal1", "metal2"), cloud.aggregates["of-host3"].hosts)
        self.assertEqual("metal2", cloud.servers[made["id"]].host)
        self.assert_free_as_in_placement(cloud)

    def test_servers_on_no_host_and_names_that_are_there_twice(self) -> None:
        self.flags(shelved_offload_time=0)
        lost = self.boot(memory_mb=40_000)
        self.assertEqual("ERROR", lost["status"])
        shelved = self.boot()
        self.api.post_server_action(shelved["id"], {"shelve": {}})
        self._wait_for_state_change(shelved, "SHELVED_OFFLOADED")
        twins = [self.boot(), self.boot()]
        for twin in twins:
            self.api.put_server(twin["id"], {"server": {"name": "twin"}})
        cloud, said = self.imported()
        self.assertEqual(
            sorted(f"twin ({twin['id']})" for twin in twins),
            [server.name for server in cloud.servers.values()],
        )
        self.assertIn(
            "steelyard: not in the file: 2 servers on no host, being built, shelved or in error\n",
            said,
        )

    def test_a_flavor_that_has_changed_since_is_in_the_file_twice(self) -> None:
        flavor = self._create_flavor(memory_mb=1024, vcpu=2, id="f1", name="small")
        server = self._create_server(flavor_id=flavor, networks="none")
        self.api.delete_flavor("f1")
        self._create_flavor(memory_mb=4096, vcpu=4, id="f2", name="small")
        cloud, said = self.imported()
        self.assertEqual(4096, cloud.flavor("small").memory_mb)
        kept = cloud.servers[server["id"]].flavor
        self.assertEqual(("small, as servers have it", 1024), (kept.name, kept.memory_mb))
        self.assertIn("added to the file: 1 flavor, such as 'small, as servers have it'", said)
        self.assert_free_as_in_placement(cloud)

    def test_a_root_disk_on_a_volume_is_not_the_hosts(self) -> None:
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
        self.assertEqual("ACTIVE", booted["status"])
        cloud, _ = self.imported()
        kept = cloud.servers[booted["id"]].flavor
        self.assertEqual(5, kept.root_gb)
        self.assertTrue(kept.name.endswith(", from volume"))
        self.assertEqual(25, cloud.flavor(kept.name.removesuffix(", from volume")).root_gb)
        self.assert_free_as_in_placement(cloud)

    def test_what_a_file_cannot_say_is_remarked_on_once(self) -> None:
        for number, host in enumerate(self.hosts[:2]):
            there = self.of_provider(host, "inventories")
            there["inventories"]["VGPU"] = {"total": 4, "max_unit": 4}
            url = f"/resource_providers/{self.provider(host)}/inventories"
            self.assertEqual(200, self.placement.put(url, there, version="1.14").status)
            child = {
                "name": f"gpu{number}",
                "uuid": f"20000000-0000-4000-8000-00000000000{number}",
                "parent_provider_uuid": self.provider(host),
            }
            made = self.placement.post("/resource_providers", child, version="1.20")
            self.assertEqual(200, made.status)
        cloud, said = self.imported()
        self.assertIn("not in the file: the nested resource providers of 2 hosts, with what", said)
        self.assertEqual(2, len(said.splitlines()), said)
        self.assertEqual({"VGPU": 4}, cloud.hosts["host1"].resources)
        self.assertEqual({}, cloud.hosts["host3"].resources)

    def test_who_may_not_see_hosts_is_told_which_role_may(self) -> None:
        status, said = self.run_import("member")
        self.assertEqual(2, status)
        self.assertFalse(self.path.exists())
        self.assertIn("steelyard: these credentials do not see hosts", said)
        self.assertIn("the role admin", said)
        self.assertIn("os_compute_api:os-hypervisors:list-detail", said)
        self.assertEqual(1, len(said.splitlines()), said)

    def test_who_may_see_less_is_told_what_is_missing(self) -> None:
        self.policy.set_rules({"os_compute_api:os-hypervisors:list-detail": ""}, overwrite=False)
        self.policy.set_rules({"os_compute_api:os-extended-server-attributes": ""}, overwrite=False)
        self.aggregate("host1", ssd="nvme")
        self.make_private_flavor("secret")
        self.make_group(self.api, "theirs", "affinity")
        self.make_group(self.other, "ours", "affinity")
        theirs = self.boot(host="host1")
        ours = self.other.post_server(
            {"server": self._build_server(flavor_id="1", networks="none")}
        )
        self.settled(ours["id"])
        whole, _ = self.imported()
        self.assertEqual({theirs["id"], ours["id"]}, set(whole.servers))
        self.assertEqual({"ours", "theirs"}, set(whole.server_groups))

        cloud, said = self.imported("member")
        self.assertEqual({ours["id"]}, set(cloud.servers))
        self.assertEqual({"ours"}, set(cloud.server_groups))
        self.assertFalse(cloud.aggregates)
        self.assertEqual({"secret"}, set(whole.flavors) - set(cloud.flavors))
        for missing in (
            "no aggregates are in the file",
            "private flavors are not in the file",
            "server groups of other projects are not in the file",
            "servers of other projects are not in the file: what they use counts as used",
            "Placement does not show its resource providers; it does to the role admin",
        ):
            self.assertIn(f"steelyard: {missing}", said)
        # Totals and use are Nova's own; what the other server uses still counts.
        self.assertEqual(8192, cloud.hosts["host1"].ram_mb)
        used = {state.host: state.ram_mb_used for state in host_states(cloud)}
        self.assertEqual(
            {
                host: state.ram_mb_used + state.ram_mb_reserved
                for host, state in zip(used, host_states(whole), strict=True)
            },
            used,
        )

    def test_who_is_no_admin_is_told_so_where_no_flavor_is_public(self) -> None:
        self.policy.set_rules({"os_compute_api:os-hypervisors:list-detail": ""}, overwrite=False)
        for flavor in self.api.get_flavors():
            self.api.delete_flavor(flavor["id"])
        for name in ("shared", "secret"):
            self.make_private_flavor(name)
        access = {"addTenantAccess": {"tenant": OTHER_PROJECT}}
        self.api.api_post("flavors/shared/action", access)
        self.make_group(self.api, "theirs", "affinity")
        whole, said = self.imported()
        self.assertEqual({"shared", "secret"}, set(whole.flavors))
        self.assertEqual({"theirs"}, set(whole.server_groups))
        self.assertEqual(1, len(said.splitlines()), said)
        cloud, said = self.imported("member")
        self.assertEqual({"shared"}, set(cloud.flavors))
        self.assertIn(
            "steelyard: private flavors are not in the file, unless they are shared", said
        )
        self.assertIn("steelyard: server groups of other projects are not in the file", said)

    def test_providers_that_are_no_hosts_are_counted(self) -> None:
        storage = {"name": "nfs", "uuid": "30000000-0000-4000-8000-000000000000"}
        made = self.placement.post("/resource_providers", storage, version="1.20")
        self.assertEqual(200, made.status)
        _, said = self.imported()
        remark, _ = said.splitlines()
        self.assertIn("1 resource provider in Placement, such as 30000000-0000-4000-8000", remark)

    def test_without_servers_of_others_what_is_free_stays_right(self) -> None:
        self.boot(host="host1", memory_mb=3000)
        self.policy.set_rules(
            {"os_compute_api:servers:detail:get_all_tenants": "!"}, overwrite=False
        )
        self.other.post_server({"server": self._build_server(flavor_id="1", networks="none")})
        cloud, said = self.imported()
        self.assertIn("os_compute_api:servers:detail:get_all_tenants", said)
        self.assertEqual(1, len(cloud.servers))
        self.assert_free_as_in_placement(cloud)

    def test_an_endpoint_without_a_version(self) -> None:
        whole, _ = self.imported()
        self.served.catalogue["compute"] = "compute"
        found, _ = self.imported()
        self.assertEqual(whole.hosts, found.hosts)

    def test_a_catalogue_without_a_placement(self) -> None:
        del self.served.catalogue["placement"]
        cloud, said = self.imported()
        self.assertIn("steelyard: Placement is not in the catalogue of services", said)
        self.assertEqual({8192}, {host.ram_mb for host in cloud.hosts.values()})
        self.assertEqual({frozenset()}, {host.traits for host in cloud.hosts.values()})

    def test_failures_are_one_line(self) -> None:
        self.clouds(
            stranger={"password": "guessed"},
            nowhere={"auth_url": "http://127.0.0.1:9/v3"},
            admin={},
        )
        for cloud, words in (
            ("stranger", "Not to you."),
            ("nowhere", "http://127.0.0.1:9/v3"),
            ("unknown", "Cloud unknown was not found"),
        ):
            status, said = self.run_import(cloud)
            self.assertEqual(2, status)
            self.assertIn(words, said)
            lines = [line for line in said.splitlines() if not line.startswith("WARNING: ")]
            self.assertEqual(1, len(lines), said)
        del self.served.catalogue["compute"]
        status, said = self.run_import("admin")
        self.assertEqual(2, status)
        self.assertIn("the catalogue of its services has no compute", said)
        self.assertFalse(self.path.exists())
