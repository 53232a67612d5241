"""The request for a wanted server: its demands, their origins, and what ends it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from steelyard.analysis.why.building import Built, built
from steelyard.analysis.why.facts import Facts, KnownHost
from steelyard.analysis.why.switches import Switches
from steelyard.cloud import Aggregate, Flavor
from steelyard.cloud.wanted import Source
from steelyard.groups import Policy, ServerGroup
from support.analysis.wanted_servers import wanted_server

AGGREGATE = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
OTHER = "7f3b3f2e-44c6-4b8e-9334-ac4953de3cfb"
ROOT = "0a8ea53f-c4c6-448e-9334-ac4953de3cfc"
RELEASE_2024_1 = "2.96"
RELEASE_2025_1 = "2.100"
RELEASE_2026_2 = "2.104"


def request_of(
    extra_specs: Mapping[str, str] | None = None,
    switches: Switches | None = None,
    microversion: str = "",
    aggregates: list[Aggregate] | None = None,
    hosts: list[KnownHost] | None = None,
    **wanted: Any,
) -> Built:
    """Return the request for a server of a flavor with 4 vCPUs."""
    flavor = Flavor("m1", 4, 2048, 20, extra_specs or {})
    facts = Facts(
        wanted=wanted_server(flavor, **wanted),
        nova_microversion=microversion,
        aggregates=aggregates,
        hosts=hosts,
    )
    return built(facts, switches or Switches(assumed=False))


def texts(found: Built) -> list[str]:
    """Return the texts of all demands but the one that every request has."""
    texts = [demand.text for demand in found.demands]
    texts.remove("trait COMPUTE_STATUS_DISABLED forbidden")
    return texts


def query(found: Built) -> str:
    (request,) = found.requests
    return request.query_string()


SIZES = ["4 vCPUs", "2 GiB of RAM", "20 GiB of disk"]


def test_built_without_extra_specs_requests_the_sizes_of_the_flavor() -> None:
    found = request_of()
    assert texts(found) == SIZES
    assert found.demands[0].origin == "flavor 'm1'"
    assert query(found) == (
        "limit=1000&resources=DISK_GB:20,MEMORY_MB:2048,VCPU:4&root_required="
        "!COMPUTE_STATUS_DISABLED"
    )
    assert (found.limit, found.failure, found.assumptions) == (1000, "", ())


def test_built_takes_the_source_of_a_demand_from_its_field() -> None:
    found = request_of(
        {"trait:CUSTOM_X": "required"},
        image_properties={"trait:CUSTOM_Y": "required"},
        sources={"flavor": Source.RECORD, "image traits": Source.NOW},
    )
    sources = {demand.text: demand.source for demand in found.demands}
    assert sources["4 vCPUs"] is sources["trait CUSTOM_X required"] is Source.RECORD
    assert sources["trait CUSTOM_Y required"] is Source.NOW


def test_built_replaces_sizes_by_extra_specs() -> None:
    found = request_of({"resources:VCPU": "0", "resources1:DISK_GB": "5", "resources:VGPU": "2"})
    assert "resources=MEMORY_MB:2048,VGPU:2&resources1=DISK_GB:5" in query(found)
    assert found.demands[0].text == "5 GiB of disk in group '1'"
    assert found.demands[0].origin == "flavor 'm1', extra spec 'resources1:DISK_GB'"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("resources:VGPUS", "1", "unknown resource class"),
        ("resources:VCPU", "four", "expected a whole number, at least 0"),
        ("resources:VCPU", "-4", "expected a whole number, at least 0"),
        ("trait:CUSTOM_X", "yes", "expected 'required' or 'forbidden'"),
        ("group_policy", "apart", "expected 'none' or 'isolate'"),
    ],
)
def test_built_ignores_malformed_extra_specs_as_nova_does(key: str, value: str, why: str) -> None:
    found = request_of({key: value})
    assert texts(found) == SIZES
    assert found.ignored == (f"Nova ignores flavor 'm1', extra spec {key!r} = {value!r}: {why}",)


@pytest.mark.parametrize(
    ("extra_specs", "text", "fault"),
    [
        ({"trait:CPU fast": "required"}, "trait CPU fast required", "invalid trait 'CPU fast'"),
        ({"resources:CUSTOM_x": "1"}, "1 CUSTOM_x", "invalid resource class 'CUSTOM_x'"),
        ({"resources:VGPU": "2147483648"}, "2147483648 VGPU", "invalid amount 2147483648"),
        ({"resources:VGPU": " 99_999_999_999"}, "99999999999 VGPU", "invalid amount 99999999999"),
        ({"trait1:CUSTOM_X": "required"}, "trait CUSTOM_X required in group '1'", "resources1:…"),
        (
            {"resources1:VGPU": "1", "resources2:VGPU": "1"},
            "no group_policy for the groups '1', '2'",
            "missing extra spec 'group_policy'",
        ),
    ],
)
def test_built_names_the_demand_that_placement_refuses(
    extra_specs: dict[str, str], text: str, fault: str
) -> None:
    found = request_of(extra_specs)
    (faulty,) = (demand for demand in found.demands if demand.fault)
    assert faulty.text == text
    assert fault in faulty.fault
    assert found.requests == ()


def test_built_with_a_trait_required_and_forbidden_has_no_request() -> None:
    image = {"trait:CUSTOM_X": "required"}
    found = request_of({"trait:CUSTOM_X": "forbidden"}, image_properties=image)
    assert texts(found)[3:] == ["trait CUSTOM_X forbidden", "trait CUSTOM_X required"]
    assert found.requests == ()


def test_built_joins_the_origins_of_a_trait_that_flavor_and_image_require() -> None:
    image = {"trait:CUSTOM_X": "required"}
    found = request_of({"trait:CUSTOM_X": "required"}, image_properties=image)
    assert [demand.origin for demand in found.demands if "CUSTOM_X" in demand.text] == [
        "flavor 'm1', extra spec 'trait:CUSTOM_X' and image property 'trait:CUSTOM_X'"
    ]


def test_built_isolates_groups_with_a_suffix() -> None:
    specs = {"resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "isolate"}
    found = request_of(specs)
    assert texts(found)[-1] == "a provider of its own for each of the groups '1', '2'"
    assert "group_policy=isolate" in query(found)
    assert "group_policy=none" in query(request_of({**specs, "group_policy": "none"}))


def test_built_with_dedicated_cpus_falls_back_to_vcpus() -> None:
    specs = {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}
    found = request_of(specs)
    first, second = (request.query_string() for request in found.requests)
    assert "required=HW_CPU_HYPERTHREADING" in first
    assert "PCPU:4" in first
    assert "HYPERTHREADING" not in second
    assert ",VCPU:4" in second
    only = request_of(specs, Switches(disable_fallback_pcpu_query=True))
    assert [request.query_string() for request in only.requests] == [first]


def test_built_with_a_host_requests_its_tree() -> None:
    hosts = [KnownHost(name="h1", uuid=ROOT), KnownHost(name="h2", uuid=OTHER)]
    found = request_of(hosts=hosts, host="h1")
    assert found.demands[0].text == "host 'h1'"
    assert f"in_tree={ROOT}" in query(found)
    assert "no host 'h3'" in request_of(hosts=hosts, host="h3").failure
    assert request_of(host="h1").assumptions == (
        "the requested host 'h1' is left out, because hosts cannot be read",
    )


def test_built_with_a_host_of_several_nodes_has_no_limit() -> None:
    hosts = [
        KnownHost(name="node1", uuid=ROOT, node_of="h1"),
        KnownHost(name="node2", uuid=OTHER, node_of="h1"),
    ]
    found = request_of(hosts=hosts, host="h1")
    assert (texts(found), found.limit) == (SIZES, None)
    assert f"in_tree={OTHER}" in query(request_of(hosts=hosts, host="node2"))


@pytest.mark.parametrize(
    "wanted",
    [
        {"group": ServerGroup("g", Policy.AFFINITY)},
        {"scheduler_hints": {"group": (OTHER,)}},
        {"scheduler_hints": {"same_host": (OTHER,)}},
        {"scheduler_hints": {"different_host": (OTHER,)}},
    ],
)
def test_built_with_affinity_has_no_limit(wanted: dict[str, Any]) -> None:
    assert request_of(**wanted).limit is None
    assert request_of(scheduler_hints={"query": ("[]",)}).limit == 1000


@pytest.mark.parametrize(
    ("policy", "options", "why"),
    [
        (
            Policy.ANTI_AFFINITY,
            {"enabled_filters": ("ComputeFilter",)},
            "the filter 'ServerGroupAntiAffinityFilter' is not in [filter_scheduler] "
            "enabled_filters (Nova: ServerGroupAntiAffinityFilter not configured)",
        ),
        (
            Policy.SOFT_AFFINITY,
            {"weight_classes": ("steelyard.nova.all_weighers",)},
            "the weigher 'ServerGroupSoftAffinityWeigher' of Nova is not in [filter_scheduler] "
            "weight_classes (Nova: ServerGroupSoftAffinityWeigher not configured)",
        ),
    ],
)
def test_built_fails_if_nova_does_not_support_the_policy(
    policy: Policy, options: dict[str, Any], why: str
) -> None:
    found = request_of(switches=Switches(**options), group=ServerGroup("g", policy))
    assert found.failure == f"policy '{policy}' of server group 'g' is not supported: {why}"
    assert (found.demands, found.requests) == ((), ())
    for each in Policy:
        assert not request_of(group=ServerGroup("g", each)).failure


def test_built_without_resources_has_no_request() -> None:
    flavor = Flavor("empty", 0, 0, 0)
    found = built(Facts(wanted=wanted_server(flavor)), Switches())
    faults = {demand.text: demand.fault for demand in found.demands}
    assert faults["the flavor requests no resources"] == "a request must request a resource"
    assert (found.failure, found.requests) == ("", ())


def test_built_assumes_newer_releases_only_where_it_matters() -> None:
    image = {"hw_sound_model": "virtio"}
    traits = "trait COMPUTE_SOUND_MODEL_VIRTIO required"
    assert texts(request_of(microversion=RELEASE_2024_1, image_properties=image)) == SIZES
    newer = request_of(microversion=RELEASE_2025_1, image_properties=image)
    assert texts(newer) == [*SIZES, traits]
    assert newer.assumptions == (
        "Nova is of release 2025.2 or newer, so it requests the trait COMPUTE_SOUND_MODEL_VIRTIO",
    )
    newest = request_of(microversion=RELEASE_2026_2, image_properties=image)
    assert texts(newest) == [*SIZES, traits, "trait OWNER_NOVA required (assumed)"]
    last = max(newest.demands, key=lambda demand: demand.rank)
    assert (last.text, last.source) == ("trait OWNER_NOVA required (assumed)", Source.ASSUMED)
    assert [text[:32] for text in newest.assumptions] == ["all nova-compute services are of"]


def test_built_with_default_switches_says_so() -> None:
    assert request_of(switches=Switches()).assumptions == (
        "Nova's options that decide the request have their default values",
        "no availability zone applies by default: [DEFAULT] default_schedule_zone is not set",
    )


def test_built_demands_are_ordered_by_preference() -> None:
    found = request_of(
        {"resources1:VGPU": "1", "trait1:CUSTOM_X": "required", "trait:CUSTOM_Y": "required"},
        aggregates=[Aggregate("a", {"availability_zone": "north"}, (), AGGREGATE)],
        hosts=[KnownHost(name="h1", uuid=ROOT)],
        host="h1",
        availability_zone="north",
    )
    in_order = sorted(found.demands, key=lambda demand: demand.rank)
    assert [demand.text for demand in in_order] == [
        "host 'h1'",
        "2 GiB of RAM",
        "4 vCPUs",
        "20 GiB of disk",
        "trait COMPUTE_STATUS_DISABLED forbidden",
        "availability zone 'north'",
        "trait CUSTOM_Y required",
        "1 VGPU in group '1'",
        "trait CUSTOM_X required in group '1'",
    ]
    assert dataclasses.replace(in_order[0], fault="x").rank == in_order[0].rank
