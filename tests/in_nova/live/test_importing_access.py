"""``steelyard cloud import`` with limited access to a real Nova and a real Placement."""

from support.nova import clouds  # must be imported before the rest of Nova

# isort: split
from steelyard.cloud.host_state import host_states
from support.nova.imports import OTHER_PROJECT, Imports


class TestAccess(Imports, clouds.SharedCloud):
    def test_import_without_access_to_hosts_names_needed_role(self) -> None:
        status, said = self.run_import("member")
        assert status == 2
        assert not self.path.exists()
        assert "steelyard: cannot list hosts" in said
        assert "the role admin" in said
        assert "os_compute_api:os-hypervisors:list-detail" in said
        assert len(said.splitlines()) == 1, said

    def test_import_as_member_reports_missing_data(self) -> None:
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
        assert {theirs["id"], ours["id"]} == set(whole.servers)
        assert {"ours", "theirs"} == set(whole.server_groups)

        cloud, said = self.imported("member")
        assert {ours["id"]} == set(cloud.servers)
        assert {"ours"} == set(cloud.server_groups)
        assert not cloud.aggregates
        assert {"secret"} == set(whole.flavors) - set(cloud.flavors)
        for missing in (
            "the file has no aggregates",
            "the file has no private flavors",
            "the file has no server groups of other projects",
            "the file has no servers of other projects; the amounts that they use count as used",
            "Placement shows its resource providers only to the role admin",
        ):
            assert f"steelyard: {missing}" in said
        # Totals and used amounts are Nova's, so those of the other server still count.
        assert cloud.hosts["host1"].ram_mb == 8192
        used = {state.host: state.ram_mb_used for state in host_states(cloud)}
        assert {
            host: state.ram_mb_used + state.ram_mb_reserved
            for host, state in zip(used, host_states(whole), strict=True)
        } == used

    def test_free_amounts_are_right_without_servers_of_other_projects(self) -> None:
        self.boot(host="host1", memory_mb=3000)
        self.policy.set_rules(
            {"os_compute_api:servers:detail:get_all_tenants": "!"}, overwrite=False
        )
        body = self._build_server(flavor_id="1", networks="none")
        self.settled(self.other.post_server({"server": body})["id"])
        cloud, said = self.imported()
        assert "os_compute_api:servers:detail:get_all_tenants" in said
        assert len(cloud.servers) == 1
        self.assert_free_as_in_placement(cloud)

    def test_import_accepts_unversioned_endpoint(self) -> None:
        whole, _ = self.imported()
        self.served.catalogue["compute"] = "compute"
        found, _ = self.imported()
        assert whole.hosts == found.hosts

    def test_import_without_placement_in_catalogue_reports_it(self) -> None:
        del self.served.catalogue["placement"]
        cloud, said = self.imported()
        assert "steelyard: Placement is not in the service catalog" in said
        assert {8192} == {host.ram_mb for host in cloud.hosts.values()}
        assert {frozenset()} == {host.traits for host in cloud.hosts.values()}

    def test_failures_are_reported_in_one_line(self) -> None:
        self.clouds(
            stranger={"password": "guessed"},
            nowhere={"auth_url": "http://127.0.0.1:9/v3"},
            admin={},
        )
        for cloud, words in (
            ("stranger", "Not to you."),
            ("nowhere", "http://127.0.0.1:9/v3"),
            ("unknown", "clouds.yaml has no cloud 'unknown'"),
        ):
            status, said = self.run_import(cloud)
            assert status == 2
            assert words in said
            lines = [line for line in said.splitlines() if not line.startswith("WARNING: ")]
            assert len(lines) == 1, said
        del self.served.catalogue["compute"]
        status, said = self.run_import("admin")
        assert status == 2
        assert "the service catalog lists no compute service" in said
        assert not self.path.exists()


class TestNoPublicFlavor(Imports):
    def test_import_as_member_without_public_flavors_reports_missing_data(self) -> None:
        self.policy.set_rules({"os_compute_api:os-hypervisors:list-detail": ""}, overwrite=False)
        for flavor in self.api.get_flavors():
            self.api.delete_flavor(flavor["id"])
        for name in ("shared", "secret"):
            self.make_private_flavor(name)
        access = {"addTenantAccess": {"tenant": OTHER_PROJECT}}
        self.api.api_post("flavors/shared/action", access)
        self.make_group(self.api, "theirs", "affinity")
        whole, said = self.imported()
        assert {"shared", "secret"} == set(whole.flavors)
        assert {"theirs"} == set(whole.server_groups)
        assert len(said.splitlines()) == 1, said
        cloud, said = self.imported("member")
        assert {"shared"} == set(cloud.flavors)
        assert "steelyard: the file has no private flavors, except those that are shared" in said
        assert "steelyard: the file has no server groups of other projects" in said
