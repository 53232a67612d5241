"""``steelyard why`` in a real Nova with a real Placement.

Each test seeds causes, and a server that fails because of them. The answer must name them. The
server boots when everything that the answer names is mended, and not before.
"""

import json
from typing import Any
from unittest import mock

from support.nova import clouds  # before the rest of Nova, which says why

# isort: split
from nova import exception
from nova.virt import fake

from steelyard.cli.cloud import why
from steelyard.nova.requests import sent_requests
from steelyard.nova.rules import InstalledRules
from support.nova.seeded import Mend, Seeded

FORCED = {"force_metadata_check": "True"}
NO_CANDIDATES = "No valid host was found. "


class TestSeededCauses(Seeded, clouds.SharedCloud):
    # The proof

    def fail(self, **more: Any) -> dict[str, Any]:
        """Boot the wanted server, and return it in its error."""
        server = self.booted(**more)
        assert server["status"] == "ERROR", server
        return server

    def why(self, *argv: str) -> tuple[int, dict[str, Any], str]:
        """Run the command; return its exit status, the JSON and the error output."""
        status, out, err = self.run_why(*argv, "-f", "json")
        assert out, err
        return status, json.loads(out), err

    def answer(self, server: dict[str, Any], stage: str) -> dict[str, Any]:
        status, found, said = self.why(server["id"])
        assert (status, found["summary"]["stage"]) == (0, stage), (found, said)
        assert found["summary"]["server"] == server["name"]
        return found

    def assert_mended_by(self, *mends: Mend) -> None:
        """Assert that the server boots with all these mendings, and with none left out."""
        for kept in range(len(mends)):
            others = [each for place, each in enumerate(mends) if place != kept]
            for each in others:
                each.do()
            assert self.booted()["status"] == "ERROR", kept
            for each in others:
                each.undo()
        for each in mends:
            each.do()
        assert self.booted()["status"] == "ACTIVE"

    def assert_repair(self, found: dict[str, Any], *expected: tuple[str, str]) -> None:
        """Assert the kinds and texts of the repair, in any order."""
        shown = sorted((each["kind"], each["demand"]) for each in found["repair"])
        assert shown == sorted(expected), found
        summary, demands = found["summary"], 12  # more than any request here has
        assert summary["requests_to_placement"] <= demands + 2 * len(expected) + 2

    def assert_causes(self, found: dict[str, Any], *expected: tuple[str, str, int]) -> None:
        shown = sorted((each["filter"], each["cause"], each["hosts"]) for each in found["causes"])
        assert shown == sorted(expected), found

    # Placement

    def test_missing_trait(self) -> None:
        self._create_trait("CUSTOM_GPU")
        self.wanted["trait:CUSTOM_GPU"] = "required"
        server = self.fail()
        assert server["fault"]["message"] == NO_CANDIDATES
        found = self.answer(server, "placement")
        self.assert_repair(found, ("trait", "trait CUSTOM_GPU required"))
        (member,) = found["repair"]
        assert (member["providers_alone"], member["providers_without"]) == (0, 3)
        assert "extra spec 'trait:CUSTOM_GPU'" in member["from"]
        assert member["source"] == "read from the server's record"
        self.assert_mended_by(
            Mend(
                lambda: self.add_trait("host1", "CUSTOM_GPU"),
                lambda: self.remove_trait("host1", "CUSTOM_GPU"),
            )
        )

    def test_trait_unknown_to_placement(self) -> None:
        self.wanted["trait:CUSTOM_NEVER_MADE"] = "required"
        found = self.answer(self.fail(), "placement")
        self.assert_repair(found, ("trait", "trait CUSTOM_NEVER_MADE required"))
        (member,) = found["repair"]
        assert "CUSTOM_NEVER_MADE" in member["refusal"]
        self.assert_mended_by(
            Mend(lambda: self.add_trait("host1", "CUSTOM_NEVER_MADE"), lambda: None)
        )

    def test_forbidden_trait(self) -> None:
        for host in self.hosts:
            self.add_trait(host, "CUSTOM_OLD")
        self.wanted["trait:CUSTOM_OLD"] = "forbidden"
        found = self.answer(self.fail(), "placement")
        self.assert_repair(found, ("trait", "trait CUSTOM_OLD forbidden"))
        self.assert_mended_by(
            Mend(
                lambda: self.remove_trait("host1", "CUSTOM_OLD"),
                lambda: self.add_trait("host1", "CUSTOM_OLD"),
            )
        )

    def test_too_few_vcpus(self) -> None:
        mend = self.exhaust("VCPU", *self.hosts)
        found = self.answer(self.fail(), "placement")
        self.assert_repair(found, ("resource", "1 vCPU"))
        self.assert_mended_by(mend)

    def test_too_little_ram(self) -> None:
        mend = self.exhaust("MEMORY_MB", *self.hosts)
        found = self.answer(self.fail(), "placement")
        self.assert_repair(found, ("resource", "512 MiB of RAM"))
        self.assert_mended_by(mend)

    def test_too_little_disk(self) -> None:
        mend = self.exhaust("DISK_GB", *self.hosts)
        found = self.answer(self.fail(), "placement")
        self.assert_repair(found, ("resource", "20 GiB of disk"))
        self.assert_mended_by(mend)

    def test_more_than_one_server_may_use(self) -> None:
        for host in self.hosts:
            self.change_inventory(host, "DISK_GB", max_unit=10)
        found = self.answer(self.fail(), "placement")
        self.assert_repair(found, ("resource", "20 GiB of disk"))
        self.assert_mended_by(
            Mend(
                lambda: self.change_inventory("host1", "DISK_GB", max_unit=1028),
                lambda: self.change_inventory("host1", "DISK_GB", max_unit=10),
            )
        )

    def test_wrong_zone(self) -> None:
        self.aggregate("host3", availability_zone="north")
        self.exhaust("MEMORY_MB", "host3")
        self.wanted["availability_zone"] = "north"
        found = self.answer(self.fail(), "placement")
        self.assert_repair(found, ("member_of", "availability zone 'north'"))
        (member,) = found["repair"]
        assert (member["providers_alone"], member["providers_without"]) == (1, 2)
        self.assert_mended_by(
            Mend(lambda: self.wanted.pop("availability_zone"), lambda: None),
        )

    def test_disabled_computes(self) -> None:
        for host in self.hosts:
            self.set_service(host, status="disabled")
        found = self.answer(self.fail(), "placement")
        self.assert_repair(found, ("trait", "trait COMPUTE_STATUS_DISABLED forbidden"))
        self.assert_mended_by(
            Mend(
                lambda: self.set_service("host1", status="enabled"),
                lambda: self.set_service("host1", status="disabled"),
            )
        )

    def test_tenant_without_aggregate(self) -> None:
        self.flags(
            limit_tenants_to_placement_aggregate=True,
            placement_aggregate_required_for_tenants=True,
            group="scheduler",
        )
        self.novas_options = {
            "limit_tenants_to_placement_aggregate": "True",
            "placement_aggregate_required_for_tenants": "True",
        }
        server = self.fail()
        found = self.answer(server, "placement")
        assert server["tenant_id"] in found["summary"]["answer"]
        assert found["repair"] == []
        project = server["tenant_id"]
        self.assert_mended_by(
            Mend(lambda: self.aggregate("host1", filter_tenant_id=project), lambda: None)
        )

    def test_tenant_whose_hosts_are_full(self) -> None:
        self.flags(limit_tenants_to_placement_aggregate=True, group="scheduler")
        self.novas_options = {"limit_tenants_to_placement_aggregate": "True"}
        project = self.booted()["tenant_id"]
        self.aggregate("host1", filter_tenant_id=project)
        self.exhaust("DISK_GB", "host1")
        found = self.answer(self.fail(), "placement")
        (member,) = found["repair"]
        assert (member["kind"], member["providers_without"]) == ("member_of", 2)
        assert project in member["demand"]
        self.assert_mended_by(
            Mend(lambda: self.aggregate("host2", filter_tenant_id=project), lambda: None)
        )

    def test_two_independent_causes(self) -> None:
        ram = self.exhaust("MEMORY_MB", *self.hosts)
        self._create_trait("CUSTOM_GPU")
        self.wanted["trait:CUSTOM_GPU"] = "required"
        found = self.answer(self.fail(), "placement")
        self.assert_repair(
            found, ("resource", "512 MiB of RAM"), ("trait", "trait CUSTOM_GPU required")
        )
        trait = Mend(
            lambda: self.add_trait("host1", "CUSTOM_GPU"),
            lambda: self.remove_trait("host1", "CUSTOM_GPU"),
        )
        self.assert_mended_by(ram, trait)

    # Filters

    def test_down_computes(self) -> None:
        for host in self.hosts:
            self.set_service(host, forced_down=True)
        found = self.answer(self.fail(), "filters")
        self.assert_causes(found, ("ComputeFilter", "the host is out of service", 3))
        self.assert_mended_by(
            Mend(
                lambda: self.set_service("host1", forced_down=False),
                lambda: self.set_service("host1", forced_down=True),
            )
        )

    def test_forced_aggregates(self) -> None:
        for host in self.hosts:
            self.aggregate(host, gpu="1", **FORCED)
        found = self.answer(self.fail(), "filters")
        assert {each["filter"] for each in found["causes"]} == {"AggregateInstanceTypeFilter"}
        assert all("'gpu'" in each["cause"] for each in found["causes"]), found
        self.assert_mended_by(self.asking_for(gpu="1"))

    def test_misspelt_key(self) -> None:
        for host in self.hosts:
            self.aggregate(host, ssd="nvme")
        self.wanted["sdd"] = "nvme"
        found = self.answer(self.fail(), "filters")
        (cause,) = found["causes"]
        assert cause["hosts"] == 3
        assert "did you mean 'ssd'?" in cause["possible_typos"][0]

        def spell(wrong: str, right: str) -> None:
            self.wanted[right] = self.wanted.pop(wrong)

        self.assert_mended_by(Mend(lambda: spell("sdd", "ssd"), lambda: spell("ssd", "sdd")))

    def test_exhausted_anti_affinity(self) -> None:
        group = self.make_group(self.api, "apart", "anti-affinity")
        self.wanted["group"] = group
        placed = [self.booted() for _ in self.hosts]
        assert [each["status"] for each in placed] == ["ACTIVE"] * 3
        found = self.answer(self.fail(), "filters")
        self.assert_causes(
            found,
            (
                "ServerGroupAntiAffinityFilter",
                "server group 'apart' has 1 server here; the limit is 1",
                3,
            ),
        )
        self.assert_mended_by(Mend(lambda: self.delete(placed[0]["id"]), lambda: None))

    def test_full_host_of_affinity_group(self) -> None:
        group = self.make_group(self.api, "together", "affinity")
        self.wanted["group"] = group
        host = clouds.host_of(self.booted())
        assert host
        mend = self.exhaust("MEMORY_MB", host)
        found = self.answer(self.fail(), "filters")
        self.assert_causes(
            found, ("ServerGroupAffinityFilter", f"server group 'together' is on '{host}'", 2)
        )
        self.assert_repair(found, ("resource", "512 MiB of RAM"))
        said = f"host '{host}' of the group does not offer: 512 MiB of RAM"
        assert found["summary"]["answer"].endswith(said), found["summary"]
        self.assert_mended_by(mend)

    def test_image_for_another_architecture(self) -> None:
        image = self.glance.create(
            None,
            {
                "name": "arm",
                "disk_format": "raw",
                "container_format": "raw",
                "status": "active",
                "size": 1,
                "min_ram": 0,
                "min_disk": 0,
                "properties": {"architecture": "aarch64"},
            },
        )
        self.wanted["imageRef"] = image["id"]
        found = self.answer(self.fail(), "filters")
        self.assert_causes(
            found,
            (
                "ImagePropertiesFilter",
                "the image has hw_architecture 'aarch64', the host has 'x86_64' and is assumed to "
                "support no other",
                3,
            ),
        )
        self.assert_mended_by(Mend(lambda: self.wanted.pop("imageRef"), lambda: None))

    def test_cause_in_placement_and_cause_in_filters(self) -> None:
        ram = self.exhaust("MEMORY_MB", *self.hosts)
        for host in self.hosts:
            self.set_service(host, forced_down=True)
        found = self.answer(self.fail(), "placement")
        self.assert_repair(found, ("resource", "512 MiB of RAM"))
        self.assert_causes(found, ("ComputeFilter", "the host is out of service", 3))
        assert "out of service" in found["summary"]["answer"]
        service = Mend(
            lambda: self.set_service("host1", forced_down=False),
            lambda: self.set_service("host1", forced_down=True),
        )
        self.assert_mended_by(ram, service)

    # Otherwise

    def test_failed_build(self) -> None:
        refused = exception.InstanceFaultRollback(exception.NovaException("no power"))
        with mock.patch.object(fake.FakeDriver, "spawn", side_effect=refused):
            server = self.fail()
        found = self.answer(server, "build")
        assert found["summary"]["failed_at"]
        assert server["fault"]["message"] in found["summary"]["answer"]
        assert any(each["host"] for each in found["events"]), found["events"]

    def test_nothing_is_wrong_any_more(self) -> None:
        for host in self.hosts:
            self.set_service(host, status="disabled")
        server = self.fail()
        for host in self.hosts:
            self.set_service(host, status="enabled")
        status, found, _ = self.why(server["id"])
        assert (status, found["summary"]["stage"]) == (1, "fits-now")
        assert found["repair"] == found["causes"] == []
        assert "second" in found["summary"]["answer"]

    def test_hypothetical_request(self) -> None:
        self.wanted["trait:CUSTOM_GPU"] = "required"
        self._create_trait("CUSTOM_GPU")
        flavor = self.flavor(512, {"trait:CUSTOM_GPU": "required"})
        (name,) = (each["name"] for each in self.api.get_flavors() if each["id"] == flavor)
        status, found, _ = self.why("--flavor", name)
        assert (status, found["summary"]["server"]) == (0, None)
        self.assert_repair(found, ("trait", "trait CUSTOM_GPU required"))
        self.add_trait("host2", "CUSTOM_GPU")
        status, found, _ = self.why("--flavor", name)
        assert (status, found["summary"]["stage"]) == (1, "fits-now")
        assert "'host2'" in found["summary"]["answer"]


def test_command_uses_the_installed_nova() -> None:
    found = why._installed_nova()
    assert found.requests is sent_requests
    assert isinstance(found.rules, InstalledRules)
