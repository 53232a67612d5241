"""A real Nova and a real Placement, served over HTTP, and ``steelyard cloud import`` from them.

Both are served on the loopback interface, with a small Keystone that has two users and the
catalogue. Its tokens contain the user and the project.
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

from support.nova import clouds  # before the rest of Nova; see there

# isort: split
import fixtures
from keystoneauth1 import fixture as keystone
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client
from placement import deploy

from steelyard import cli
from steelyard.cloud import Cloud, Flavor
from steelyard.cloud.host_state import Request, host_states
from steelyard.filters.capacity import CapacityFilter

OTHER_PROJECT = "7f0c1a3e5b2d4c6f8091a2b3c4d5e6f7"
ROLES = {"admin": ["reader", "member", "admin"], "member": ["reader", "member"]}
PASSWORD = "quod licet Iovi"

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
        self.apps = {"identity": self._identity, "compute": compute, "placement": placement}
        self.catalogue = {"compute": "compute/v2.1", "placement": "placement"}
        self.asked: list[str] = []
        self.httpd = Server(("127.0.0.1", 0), Quiet)
        self.httpd.set_app(self)
        self.url = f"http://127.0.0.1:{self.httpd.server_port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        # With eventlet, the selector of serve_forever would block all other green threads.
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
        return self.apps[name](environ, start_response)

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
    """A cloud that is served over HTTP, to import from."""

    enabled_filter = "ServerGroupAntiAffinityFilter"

    def prepare(self) -> None:
        super().prepare()
        # The fixture removes the rules of a test at its end.
        self.policy = self.useFixture(nova_fixtures.RealPolicyFixture())
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
        """Write a clouds.yaml with clouds for different users."""
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
        """Run an import that replaces the file; return its exit status and error output."""
        argv = ["cloud", "import", "--os-cloud", cloud, "--output", str(self.path), "--replace"]
        with contextlib.redirect_stderr(io.StringIO()) as err, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an old Nova, in the same process, has many
            status = cli.main([*argv, *more])
        return status, err.getvalue()

    @property
    def path(self) -> pathlib.Path:
        return self.directory / "cloud.yaml"

    def imported(self, cloud: str = "admin") -> tuple[Cloud, str]:
        status, err = self.run_import(cloud)
        assert status == 0, err
        return Cloud.load(self.path), err

    def provider(self, host: str) -> str:
        found: str = self._get_provider_uuid_by_host(host)
        return found

    def of_provider(self, host: str, kind: str) -> Any:
        url = f"/resource_providers/{self.provider(host)}/{kind}"
        return self.placement.get(url, version="1.14").body

    def assert_free_as_in_placement(self, cloud: Cloud) -> None:
        """Assert that the capacity filter and Placement agree on the free capacity of each host."""
        for state in host_states(cloud):
            inventories = self.of_provider(state.host, "inventories")["inventories"]
            usages = self.of_provider(state.host, "usages")["usages"]
            for name, supply in CapacityFilter()._capacity.of(state):
                there = inventories[name]
                limit = (there["total"] - there["reserved"]) * there["allocation_ratio"]
                assert limit - usages[name] == supply.left, (state.host, name)

    def hosts_with_room(self, cloud: Cloud, flavor: Flavor) -> set[str]:
        room = CapacityFilter()
        return {
            state.host
            for state in host_states(cloud)
            if room.host_passes(state, Request(flavor)) and not state.out_of_service
        }

    def providers_with_room(self, flavor: Flavor) -> set[str]:
        """Return the hosts with room for the flavor according to Placement."""
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
        url = f"os-services/{service['id']}"
        self.api.api_put(url, body)
        before = {"status": "enabled", "forced_down": False}
        self.addCleanup(self.api.api_put, url, before)

    def make_private_flavor(self, name: str) -> None:
        flavor = {"id": name, "name": name, "vcpus": 1, "ram": 512, "disk": 1}
        self.api.post_flavor({"flavor": flavor | {"os-flavor-access:is_public": False}})
        self.addCleanup(self.api.delete_flavor, name)

    def traits(self, host: str) -> list[str]:
        found: list[str] = self.of_provider(host, "traits")["traits"]
        return found

    def put_on_the_side(self, host: str, resources: dict[str, int]) -> None:
        """Allocate resources of the host to a consumer that is not a server."""
        body = {
            "allocations": {self.provider(host): {"resources": resources}},
            "project_id": "someone",
            "user_id": "else",
            "consumer_generation": None,
        }
        url = "/allocations/10000000-0000-4000-8000-000000000001"
        answer = self.placement.put(url, body, version="1.28")
        assert answer.status == 204
        self.addCleanup(self.placement.delete, url)
