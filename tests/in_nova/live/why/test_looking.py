"""Servers that were not placed, read from a real Nova."""

from unittest import mock

from support.nova import clouds  # must be imported before the rest of Nova

# isort: split
import pytest
from nova import exception
from nova.api.openstack import api_version_request
from nova.conductor import api as conductor
from nova.tests import fixtures as nova_fixtures
from nova.virt import fake

from steelyard import errors
from steelyard.cloud.wanted import Source
from support.nova.looks import Looks

AUTO_DISK_CONFIG_IMAGE = "70a599e0-31e7-49b7-b260-868f441e862b"
UNKNOWN_SERVER = "40000000-0000-4000-8000-000000000000"
NEVER_SHOWN = ["a host that the request", "networks of the request", "PCI devices of ports"]


def shows(microversion: str) -> bool:
    """Return whether the installed Nova supports the microversion."""
    newest = api_version_request.max_api_version()
    return bool(newest >= api_version_request.APIVersionRequest(microversion))


SHOWS_HINTS, SHOWS_PROPERTIES = shows("2.100"), shows("2.98")
# Nova 31 shows all that it recorded of an image, Nova 34 only the properties that it knows.
SHOWS_WHOLE_IMAGE = SHOWS_PROPERTIES and not shows("2.101")
HIDDEN = [] if SHOWS_HINTS else ["scheduler hints: needs microversion 2.100"]
"""The beginnings of messages about data that only a newer Nova shows."""


class TestLook(Looks, clouds.SharedCloud):
    def test_look_reads_server_that_placement_has_no_candidates_for(self) -> None:
        self.aggregate("host1", availability_zone="north")
        self.set_service("host2", status="disabled", disabled_reason="a new disk")
        body = self._build_server(networks="none", az="north", name="lost")
        flavor = self.flavor(40_000, {"trait:CUSTOM_X": "forbidden"})
        hints = {"different_host": [UNKNOWN_SERVER], "rack": "a"}
        body = {"server": body | {"flavorRef": flavor}, "os:scheduler_hints": hints}
        server = self.settled(self.api.post_server(body)["id"])

        facts = self.looked("lost")

        by_uuid = self.looked(server["id"])
        assert (facts.record, facts.wanted) == (by_uuid.record, by_uuid.wanted)
        record, wanted = facts.record, facts.wanted
        assert record is not None
        assert (record.uuid, record.name, record.status) == (server["id"], "lost", "ERROR")
        assert record.fault == "No valid host was found."
        assert record.failed_at == server["fault"]["created"]
        assert (record.host, record.last_action) == ("", "create")
        action, event = record.events
        assert (action.action, action.event, action.result) == ("create", "", "Error")
        assert event.event == "conductor_schedule_and_build_instances"
        assert (event.result, event.detail) == ("Error", "No valid host was found.")
        assert dict(wanted.flavor.extra_specs) == {"trait:CUSTOM_X": "forbidden"}
        assert (wanted.flavor.vcpus, wanted.flavor.memory_mb, wanted.flavor.root_gb) == (
            1,
            40_000,
            20,
        )
        assert wanted.project == server["tenant_id"]
        assert wanted.availability_zone == "north"
        if SHOWS_HINTS:
            assert wanted.scheduler_hints == {"different_host": (UNKNOWN_SERVER,), "rack": ("a",)}
        assert wanted.image_properties["architecture"] == "x86_64"
        assert (wanted.disk_format, wanted.count, wanted.host) == ("raw", 1, "")
        recorded = ["availability_zone", "count", "flavor", "from_volume", "project"]
        recorded += ["scheduler_hints"] if SHOWS_HINTS else []
        observed = Source.RECORD if SHOWS_WHOLE_IMAGE else Source.NOW
        assert wanted.sources == {
            **dict.fromkeys(recorded, Source.RECORD),
            "image_properties": Source.RECORD if SHOWS_PROPERTIES else Source.NOW,
            **dict.fromkeys(("disk_format", "image traits"), observed),
        }
        assert facts.hosts is not None
        assert [(each.name, each.uuid, each.out_of_service) for each in facts.hosts] == [
            ("host1", self.provider("host1"), ""),
            ("host2", self.provider("host2"), "disabled: a new disk"),
            ("host3", self.provider("host3"), ""),
        ]
        assert {(each.hypervisor_type, each.architecture) for each in facts.hosts} == {
            ("fake", "x86_64")
        }
        assert facts.aggregates is not None
        (aggregate,) = facts.aggregates
        (uuid,) = self.of_provider("host1", "aggregates")["aggregates"]
        assert (aggregate.name, aggregate.uuid, aggregate.hosts) == (
            "of-host1",
            uuid,
            ("host1",),
        )
        assert aggregate.metadata == {"availability_zone": "north"}
        for message, start in zip(facts.not_known, HIDDEN + NEVER_SHOWN, strict=True):
            assert message.startswith(start)

    def test_look_reads_group_of_server_that_filters_reject_everywhere(self) -> None:
        group = self.make_group(self.api, "web", "anti-affinity", max_server_per_host=1)
        booted = [self.boot(group=group) for _ in self.hosts]
        members = {each["id"]: clouds.host_of(each) for each in booted}
        assert set(members.values()) == set(self.hosts)
        server = self.boot(group=group)

        facts = self.looked(server["id"])

        assert facts.record is not None
        assert facts.record.fault == (
            "No valid host was found. There are not enough hosts available."
        )
        found = facts.wanted.group
        assert found is not None
        assert (found.name, found.uuid, found.policy) == ("web", group, "anti-affinity")
        assert found.rules == {"max_server_per_host": 1}
        assert found.members == set(members)
        assert found.hosts == set(self.hosts)
        assert facts.server_hosts == members
        assert facts.wanted.sources["group"] is Source.NOW

    def test_look_counts_servers_of_one_request(self) -> None:
        group = self.make_group(self.api, "web", "anti-affinity")
        first, *others = self.boot_at_once(4, group=group)
        alone = self.boot(group=group)
        assert {each["status"] for each in (first, *others)} == {"ERROR"}
        facts = self.looked(first["id"])
        assert facts.wanted.count == 4
        assert facts.wanted.group is not None
        assert facts.wanted.group.members == {alone["id"]}
        siblings = {each["id"]: "" for each in others}
        assert facts.server_hosts == {alone["id"]: clouds.host_of(alone)} | siblings
        assert self.looked(alone["id"]).wanted.count == 1

    def test_look_reads_events_of_failed_builds(self) -> None:
        broken = exception.ComputeResourcesUnavailable(reason="no more disk")
        with mock.patch.object(fake.FakeDriver, "spawn", side_effect=broken):
            server = self.boot()
        facts = self.looked(server["id"])
        assert facts.record is not None
        assert "Exceeded maximum number of retries" in facts.record.fault
        failed = [each for each in facts.record.events if each.event.startswith("compute_")]
        assert {each.host for each in failed} == set(self.hosts)
        assert [each.at for each in facts.record.events[1:]] == sorted(
            each.at for each in facts.record.events[1:]
        )

    def test_look_reads_server_that_is_stuck_in_build(self) -> None:
        group = self.make_group(self.api, "web", "affinity")
        never = mock.patch.object(conductor.ComputeTaskAPI, "schedule_and_build_instances")
        with never:
            server = self.asked_for(None, group, 1024, {"ssd": "nvme"})
        facts = self.looked(server["id"])
        assert facts.record is not None
        assert (facts.record.status, facts.record.fault, facts.record.failed_at) == (
            "BUILD",
            "",
            "",
        )
        assert dict(facts.wanted.flavor.extra_specs) == {"ssd": "nvme"}
        assert facts.wanted.group is not None
        assert facts.wanted.group.members == set()

    def test_look_reads_hosts_of_servers_in_hints(self) -> None:
        near = self.boot(host="host2")
        body = {"server": self._build_server(networks="none", flavor_id=self.flavor(40_000, {}))}
        hints = {"same_host": [near["id"], UNKNOWN_SERVER]}
        made = self.api.post_server(body | {"os:scheduler_hints": hints})
        server = self.settled(made["id"])
        facts = self.looked(server["id"])
        found = {near["id"]: "host2", UNKNOWN_SERVER: ""}
        assert facts.server_hosts == (found if SHOWS_HINTS else {})
        assert facts.wanted.group is None
        assert len(facts.not_known) == len(HIDDEN + NEVER_SHOWN)

    def test_look_reads_image_of_boot_volume(self) -> None:
        server = self._build_server(
            flavor_id=self.flavor(40_000, {}), image_uuid="", networks="none"
        )
        server["block_device_mapping_v2"] = [
            {
                "boot_index": 0,
                "uuid": nova_fixtures.CinderFixture.IMAGE_WITH_TRAITS_BACKED_VOL,
                "source_type": "volume",
                "destination_type": "volume",
            }
        ]
        lost = self.settled(self.api.post_server({"server": server})["id"])
        wanted = self.looked(lost["id"]).wanted
        assert wanted.from_volume
        assert wanted.flavor.root_gb == 10  # the ephemeral disk
        assert wanted.image_properties == {"trait:HW_CPU_X86_SGX": "required"}
        assert wanted.sources["image_properties"] is Source.NOW
        assert wanted.sources["image traits"] is Source.NOW

    def test_look_finds_server_by_exact_name(self) -> None:
        lost = [self.lost(name=name)["id"] for name in ("a.b", "a.b", "axb", "A.B", "web-1")]
        for name, uuid in (("axb", lost[2]), ("A.B", lost[3])):
            record = self.looked(name).record
            assert record is not None
            assert record.uuid == uuid
        with pytest.raises(errors.BadRequest, match=r"2 servers are named 'a\.b': ") as raised:
            self.looked("a.b")
        for uuid in lost[:2]:
            assert f"{uuid} (ERROR in project " in str(raised.value)
        with pytest.raises(errors.NotFound, match=r"^no server 'web1' .*did you mean 'web-1'\?$"):
            self.looked("web1")
        with pytest.raises(errors.NotFound, match=f"^no server '{UNKNOWN_SERVER}'"):
            self.looked(UNKNOWN_SERVER)

    def test_look_reads_request_from_options(self) -> None:
        self.aggregate("host2", availability_zone="north")
        group = self.make_group(self.api, "web", "anti-affinity")
        member = self.boot(host="host1", group=group)
        flavor = self._create_flavor(
            name="big", memory_mb=4096, vcpu=2, disk=20, ephemeral=0, extra_spec={"ssd": "nvme"}
        )
        self.addCleanup(self.api.delete_flavor, flavor)
        facts = self.looked(
            flavor="big",
            image=AUTO_DISK_CONFIG_IMAGE,
            availability_zone="north",
            host="host2",
            group="web",
            project="shop",
        )
        wanted = facts.wanted
        assert facts.record is None
        assert (wanted.flavor.name, wanted.flavor.vcpus, wanted.flavor.memory_mb) == (
            "big",
            2,
            4096,
        )
        assert dict(wanted.flavor.extra_specs) == {"ssd": "nvme"}
        assert wanted.image_properties["auto_disk_config"] == "True"
        assert (wanted.availability_zone, wanted.host) == ("north", "host2")
        assert (wanted.project, wanted.count) == ("shop", 1)
        assert wanted.group is not None
        assert wanted.group.members == {member["id"]}
        assert wanted.group.hosts == {"host1"}
        assert wanted.sources["host"] is Source.OPTION
        assert wanted.sources["flavor"] is Source.NOW
        assert list(facts.not_known) == []
        same = self.looked(flavor=flavor, group=group)
        assert (same.wanted.flavor, same.wanted.group) == (wanted.flavor, wanted.group)
        assert list(same.not_known) == ["project of the request: supply it with --project"]

    def test_option_that_names_nothing_is_not_found(self) -> None:
        self.make_group(self.api, "web", "affinity")
        name = self.api.get_flavors()[0]["name"]
        unknown = UNKNOWN_SERVER
        for options, message in (
            ({"flavor": "m1.tinny"}, r"^no flavor 'm1\.tinny'; did you mean 'm1\.tiny' or"),
            ({"flavor": name, "group": "webb"}, "^no server group 'webb'; did you mean 'web'"),
            ({"flavor": name, "group": unknown}, f"^no server group '{unknown}' that these"),
            ({"flavor": name, "image": "fakeimage12345"}, "^no image 'fakeimage12345'"),
            ({"flavor": name, "image": unknown}, f"^no image '{unknown}' that these"),
            ({"flavor": name, "host": "hosts1"}, "^no host 'hosts1'; did you mean 'host1'"),
            (
                {"flavor": name, "availability_zone": "noVa"},
                "^no availability zone 'noVa'; did you mean 'nova'",
            ),
        ):
            with pytest.raises(errors.NotFound, match=message):
                self.looked(**options)
        with pytest.raises(errors.BadRequest, match="name a server, or a flavor with --flavor"):
            self.looked(image="x")

    def test_option_that_names_several_things_lists_them(self) -> None:
        groups = [self.make_group(self.api, "twin", policy) for policy in ("affinity", "affinity")]
        for options, uuids in (
            ({"group": "twin"}, groups),
            ({"image": "fakeimage123456"}, [self.glance.image1["id"], self.glance.image2["id"]]),
        ):
            with pytest.raises(errors.BadRequest, match="are named") as raised:
                self.looked(flavor="m1.tiny", **options)
            for uuid in uuids:
                assert uuid in str(raised.value)

    def test_options_supply_what_nova_does_not_show(self) -> None:
        server = self.lost()
        facts = self.looked(
            server["id"],
            host="host3",
            availability_zone="nova",
            image=AUTO_DISK_CONFIG_IMAGE,
            flavor="m1.tiny",
        )
        wanted = facts.wanted
        assert (wanted.host, wanted.availability_zone) == ("host3", "nova")
        assert wanted.flavor.name == "m1.tiny"
        assert wanted.image_properties["auto_disk_config"] == "True"
        for field in ("host", "availability_zone"):
            assert wanted.sources[field] is Source.OPTION
        for field in ("flavor", "image_properties", "image traits"):
            assert wanted.sources[field] is Source.NOW
        assert wanted.sources["project"] is Source.RECORD
        assert len(facts.not_known) == 2 + len(HIDDEN)

    def test_look_with_unversioned_endpoints(self) -> None:
        server = self.lost()
        known = self.looked(server["id"]).wanted
        self.served.catalogue |= {"compute": "compute", "image": "image", "block-storage": "volume"}
        assert self.looked(server["id"]).wanted == known

    def test_look_without_image_and_volume_services_names_them(self) -> None:
        server = self.lost()
        for service in ("image", "block-storage"):
            del self.served.catalogue[service]
        facts = self.looked(server["id"])
        assert bool(facts.wanted.image_properties) == SHOWS_PROPERTIES
        named = "Glance is not in the service catalog" in facts.not_known[0]
        assert named != SHOWS_WHOLE_IMAGE

    def test_look_at_deleted_image_keeps_recorded_properties(self) -> None:
        image = self._create_image(metadata={"hw_vif_model": "virtio"})
        server = self._build_server(
            flavor_id=self.flavor(40_000, {}), image_uuid=image["id"], networks="none"
        )
        lost = self.settled(self.api.post_server({"server": server})["id"])
        self.glance.delete(None, image["id"])
        facts = self.looked(lost["id"])
        recorded = "virtio" if SHOWS_PROPERTIES else None
        assert facts.wanted.image_properties.get("hw_vif_model") == recorded
        assert (facts.wanted.disk_format == "") != SHOWS_WHOLE_IMAGE
        what = f"traits and disk format of image {image['id']}: "
        assert facts.not_known[0].startswith(what) != SHOWS_WHOLE_IMAGE

    def test_member_sees_own_server_and_is_told_what_is_hidden(self) -> None:
        self.aggregate("host1", ssd="nvme")
        server = self._build_server(flavor_id=self.flavor(40_000, {}), networks="none", name="own")
        lost = self.settled(self.other.post_server({"server": server})["id"])
        whole = self.looked("own")
        facts = self.looked("own", "member")
        assert facts.record is not None
        assert whole.record is not None
        assert (facts.record.uuid, facts.record.fault) == (lost["id"], whole.record.fault)
        assert facts.wanted.flavor == whole.wanted.flavor
        assert (facts.hosts, facts.aggregates) == (None, None)
        assert [message.partition(":")[0] for message in facts.not_known] == [
            "hosts",
            "aggregates",
            "hosts of the events",
            "details of failed events",
            "servers that were requested together with this one",
            *(message.partition(":")[0] for message in HIDDEN),
            "a host that the request named or forced",
            "networks of the request, and the bandwidth and packet rates that their ports require "
            "(QoS)",
            "PCI devices of ports, and the aggregates of routed networks",
        ]
        theirs = self.lost(name="theirs")
        for wanted in ("theirs", theirs["id"]):
            with pytest.raises(errors.NotFound, match="that these credentials show"):
                self.looked(wanted, "member")

    def test_older_nova_is_told_by_microversion(self) -> None:
        self.aggregate("host1", availability_zone="north")
        body = self._build_server(
            networks="none", az="north", flavor_id=self.flavor(40_000, {"ssd": "nvme"})
        )
        group = self.make_group(self.api, "web", "anti-affinity")
        body = {"server": body, "os:scheduler_hints": {"group": group}}
        server = self.settled(self.api.post_server(body)["id"])
        newest = self.looked(server["id"]).wanted
        for supported, hidden in (
            ("2.96", ["scheduler hints"]),
            ("2.79", ["scheduler hints"]),
            ("2.64", ["scheduler hints", "server group"]),
        ):
            older = mock.patch.object(api_version_request, "_MAX_API_VERSION", supported)
            with older:
                facts = self.looked(server["id"])
            assert facts.nova_microversion == supported
            assert facts.wanted.flavor == newest.flavor
            assert facts.wanted.availability_zone == "north"
            assert facts.wanted.image_properties.items() >= newest.image_properties.items()
            assert [message.partition(":")[0] for message in facts.not_known[:-3]] == hidden
            assert (facts.wanted.group is None) == ("server group" in hidden)
            assert facts.group_known == ("server group" not in hidden)
            assert facts.hosts == self.looked(server["id"]).hosts
