"""The additions of Nova's request filters."""

import importlib.metadata
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from steelyard.analysis.why.rebuilding.releases import NovaInUse, Release
from steelyard.analysis.why.rebuilding.request_filters import (
    InAggregates,
    RequestFilters,
    RootTrait,
)
from steelyard.analysis.why.rebuilding.stated import RequestFails, Stated
from steelyard.analysis.why.switches import Switches
from steelyard.cloud import Aggregate, Flavor
from steelyard.cloud.wanted import Source
from support.analysis.wanted_servers import wanted_server

DISABLED = "!COMPUTE_STATUS_DISABLED"
NORTH, SOUTH, TENANT = (f"5e08ea53-c4c6-448e-9334-ac4953de3cf{digit}" for digit in "abc")
AGGREGATES = [
    Aggregate("north", {"availability_zone": "north", "trait:CUSTOM_A": "required"}, (), NORTH),
    Aggregate("south", {"availability_zone": "south", "trait:CUSTOM_B": "forbidden"}, (), SOUTH),
    Aggregate("tenant", {"filter_tenant_id2": "p1", "filter_tenant_id": "p2"}, (), TENANT),
]
RELEASE_2024_1 = "2.96"
RELEASE_2026_1 = "2.103"
RELEASE_2026_2 = "2.104"


class Added:
    """The additions for one server, and the notes on them."""

    def __init__(
        self,
        extra_specs: Mapping[str, str] | None = None,
        microversion: str = RELEASE_2026_1,
        aggregates: list[Aggregate] | None = AGGREGATES,
        required: frozenset[str] = frozenset(),
        *,
        wanted: Mapping[str, Any] | None = None,
        switches: Mapping[str, Any] | None = None,
    ) -> None:
        flavor = Flavor("m1", 4, 2048, 20, extra_specs or {})
        stated = Stated(wanted_server(flavor, **(wanted or {})))
        options = {"assumed": False, **(switches or {})}
        self.nova = NovaInUse(Release.of(microversion), Switches(**options))
        filters = RequestFilters(stated, aggregates, required, self.nova)
        self.additions = list(filters.additions())

    @property
    def traits(self) -> list[str]:
        """The traits, without the one that every request forbids."""
        found = [
            each.trait if each.required else f"!{each.trait}"
            for each in self.additions
            if isinstance(each, RootTrait)
        ]
        found.remove(DISABLED)
        return found

    @property
    def aggregates(self) -> list[tuple[set[str], bool]]:
        found = [each for each in self.additions if isinstance(each, InAggregates)]
        return [(set(each.uuids), each.wanted) for each in found]


def image(**properties: str) -> dict[str, Any]:
    return {"image_properties": properties}


def test_disabled_computes_are_left_out() -> None:
    (addition,) = Added().additions
    assert isinstance(addition, RootTrait)
    assert addition.origin.text == "Nova itself, to leave out disabled hosts"


def test_zone_requests_its_aggregates() -> None:
    added = Added(wanted={"availability_zone": "north"})
    assert added.aggregates == [({NORTH}, True)]
    assert added.additions[0].origin.text == "requested availability zone 'north'"


def test_zone_without_aggregates_requests_none() -> None:
    assert Added(wanted={"availability_zone": "nova"}).aggregates == []


def test_default_zone_requests_its_aggregates() -> None:
    switches = {"default_schedule_zone": "north"}
    added = Added(switches=switches)
    assert added.aggregates == [({NORTH}, True)]
    assert added.additions[0].origin.text == "[DEFAULT] default_schedule_zone"
    assert Added(wanted={"availability_zone": "south"}, switches=switches).aggregates == [
        ({SOUTH}, True)
    ]
    recorded = {"availability_zone": "", "sources": {"availability_zone": Source.RECORD}}
    assert Added(wanted=recorded, switches=switches).aggregates == []


def test_missing_default_zone_is_an_assumption_without_configuration() -> None:
    (note,) = Added(switches={"assumed": True}).nova.assumptions
    assert "[DEFAULT] default_schedule_zone" in note
    assert not Added().nova.assumptions
    named = Added(wanted={"availability_zone": "north"}, switches={"assumed": True})
    assert not named.nova.assumptions


@pytest.mark.parametrize(
    ("aggregates", "why"),
    [
        (None, "because aggregates cannot be read"),
        (
            [Aggregate("north", {"availability_zone": "north"}, ())],
            "because their UUIDs are not known",
        ),
    ],
)
def test_zone_with_unknown_aggregates_is_noted(
    aggregates: list[Aggregate] | None, why: str
) -> None:
    added = Added(aggregates=aggregates, wanted={"availability_zone": "north"})
    assert added.aggregates == []
    assert [*added.nova.assumptions] == [
        f"the aggregates of the availability zone 'north' are left out, {why}"
    ]


LIMITED = "limit_tenants_to_placement_aggregate"


@pytest.mark.parametrize("project", ["p1", "p2"])
def test_project_requests_its_aggregates(project: str) -> None:
    assert Added(wanted={"project": project}).aggregates == []
    assert Added(wanted={"project": project}, switches={LIMITED: True}).aggregates == [
        ({TENANT}, True)
    ]


def test_project_without_aggregates_fails_only_if_one_is_needed() -> None:
    assert Added(wanted={"project": "p3"}, switches={LIMITED: True}).aggregates == []
    needed = {LIMITED: True, "placement_aggregate_required_for_tenants": True}
    with pytest.raises(RequestFails, match="No hosts available for tenant"):
        Added(wanted={"project": "p3"}, switches=needed)


def test_unknown_project_is_noted() -> None:
    (note,) = Added(switches={LIMITED: True}).nova.assumptions
    assert note.startswith("the request needs no aggregate of its project")


def test_isolated_aggregates_are_left_out_unless_the_trait_is_required() -> None:
    switch = {"enable_isolated_aggregate_filtering": True}
    assert Added(switches=switch).aggregates == [({NORTH}, False)]
    assert Added(required=frozenset({"CUSTOM_A"}), switches=switch).aggregates == []
    assert Added().aggregates == []


def test_image_type_requires_its_trait() -> None:
    switch = {"query_placement_for_image_type_support": True}
    wanted = {"disk_format": "qcow2"}
    assert Added(wanted=wanted, switches=switch).traits == ["COMPUTE_IMAGE_TYPE_QCOW2"]
    assert Added(wanted=wanted).traits == []
    assert Added(wanted={**wanted, "from_volume": True}, switches=switch).traits == []
    assert [*Added(wanted={"disk_format": "odd one"}, switches=switch).nova.ignored] == [
        "Nova ignores disk format 'odd one' of the image, [scheduler] "
        "query_placement_for_image_type_support: no standard trait 'COMPUTE_IMAGE_TYPE_ODD ONE'"
    ]
    (note,) = Added(switches=switch).nova.assumptions
    assert note.startswith("no trait for the image's format is required")


PREFILTER = {"image_metadata_prefilter": True}


def test_image_metadata_requires_traits() -> None:
    properties = image(
        architecture="amd64", hw_vif_model="VirtualE1000", vmware_adaptertype="lsiLogic"
    )
    assert set(Added(wanted=properties, switches=PREFILTER).traits) == {
        "HW_ARCH_X86_64",
        "COMPUTE_NET_VIF_MODEL_E1000",
        "COMPUTE_STORAGE_BUS_SCSI",
    }
    assert Added(wanted=properties).traits == []


def test_image_metadata_with_one_unknown_trait_requires_none() -> None:
    properties = image(hw_disk_bus="virtio", hw_viommu_model="intel")
    added = Added(wanted=properties, switches=PREFILTER)
    assert added.traits == []
    assert [*added.nova.ignored] == [
        "Nova ignores image property 'hw_viommu_model': no standard trait 'COMPUTE_VIOMMU_INTEL'"
    ]


def _missing(name: str) -> None:
    raise importlib.metadata.PackageNotFoundError(name)


def test_image_metadata_without_the_list_of_traits_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "os_traits", None)
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["os-traits; extra == 'traits'"])
    monkeypatch.setattr(importlib.metadata, "distribution", _missing)
    added = Added(wanted=image(hw_disk_bus="virtio"), switches=PREFILTER)
    assert added.traits == []
    (note,) = added.nova.not_known
    assert note.startswith(
        "whether Nova requires the trait COMPUTE_STORAGE_BUS_VIRTIO (image property 'hw_disk_bus'):"
    )
    assert "the extra 'traits' is not installed" in note


@pytest.mark.parametrize(
    ("extra_specs", "wanted", "traits"),
    [
        ({"accel:device_profile": "gpu"}, {}, ["COMPUTE_ACCELERATORS"]),
        ({"hw:virtio_packed_ring": "yes"}, {}, ["COMPUTE_NET_VIRTIO_PACKED"]),
        ({}, image(hw_virtio_packed_ring="True"), ["COMPUTE_NET_VIRTIO_PACKED"]),
        ({"hw:virtio_packed_ring": "no"}, {}, []),
        (
            {"hw:ephemeral_encryption": "true", "hw:ephemeral_encryption_format": "luks"},
            {},
            ["COMPUTE_EPHEMERAL_ENCRYPTION", "COMPUTE_EPHEMERAL_ENCRYPTION_LUKS"],
        ),
        ({"hw:ephemeral_encryption_format": "luks"}, {}, []),
        ({}, image(hw_sound_model="virtio"), ["COMPUTE_SOUND_MODEL_VIRTIO"]),
        ({"hw:sound_model": "usb"}, {}, []),
        ({"hw:tpm_version": "2.0"}, {}, ["COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER"]),
        (
            {"hw:tpm_version": "2.0", "hw:tpm_secret_security": "host"},
            {},
            ["COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST"],
        ),
        ({"hw:tpm_secret_security": "host"}, {}, []),
    ],
)
def test_flavor_and_image_require_root_traits(
    extra_specs: dict[str, str], wanted: dict[str, Any], traits: list[str]
) -> None:
    assert Added(extra_specs, wanted=wanted).traits == traits


@pytest.mark.parametrize(
    ("extra_specs", "properties", "why"),
    [
        ({"hw:virtio_packed_ring": "1"}, {"hw_virtio_packed_ring": "0"}, "is '1', but image"),
        ({"hw:ephemeral_encryption": "1"}, {"hw_ephemeral_encryption": "0"}, "is '1', but image"),
        (
            {"hw:ephemeral_encryption": "1", "hw:ephemeral_encryption_format": "zip"},
            {},
            "expected one of 'plain', 'luks', 'luksv2'",
        ),
        ({"hw:sound_model": "piano"}, {}, "expected one of 'sb16'"),
        (
            {"hw:tpm_version": "2.0", "hw:tpm_secret_security": "none"},
            {},
            "TPM secret security 'none' is not supported",
        ),
    ],
)
def test_contradictions_fail(
    extra_specs: dict[str, str], properties: dict[str, str], why: str
) -> None:
    with pytest.raises(RequestFails, match=why):
        Added(extra_specs, wanted=image(**properties))


def test_older_releases_require_fewer_traits() -> None:
    specs = {"hw:tpm_version": "2.0", "hw:sound_model": "virtio"}
    assert Added(specs, RELEASE_2024_1).traits == []
    assert Added({"hw:virtio_packed_ring": "1"}, "2.79").traits == []
    assert Added({}, RELEASE_2026_2).traits == ["OWNER_NOVA"]


def test_resources_that_no_api_shows_are_noted() -> None:
    assert [*Added({"accel:device_profile": "gpu"}).nova.not_known] == [
        "the resources of the device profile 'gpu'"
    ]
    assert [
        *Added(switches={"query_placement_for_routed_network_aggregates": True}).nova.not_known
    ] == ["the aggregates of routed networks"]
