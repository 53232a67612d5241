"""Placement computed from a cloud: roots, usages and aggregates."""

import dataclasses

import pytest

from steelyard.analysis.why.local import LocalPlacement, known_aggregates, known_hosts
from steelyard.analysis.why.placement_view import ClassUsage
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.cloud.derived_uuids import uuid_of
from steelyard.cloud.values import CPUInfo
from steelyard.traits import (
    CandidatesRequest,
    Inventory,
    ProvidersRequest,
    RequestGroup,
    ResourceProvider,
    TraitQuery,
)
from steelyard.traits.trees import SHARES

ROOT, CHILD, AGGREGATE = (f"5e08ea53-c4c6-448e-9334-ac4953de3cf{digit}" for digit in "abc")
RATIOS = {"vcpus": 2.0, "ram_mb": 1.0, "disk_gb": 1.0}
GPU = ResourceProvider(CHILD, "gpu", None, {"VGPU": Inventory(2)}, frozenset({"CUSTOM_GPU"}))
ONE = Host(
    "one",
    8,
    4096,
    100,
    traits=frozenset({"CUSTOM_A"}),
    uuid=ROOT,
    allocation_ratios=RATIOS,
    providers=(GPU,),
    cpu_info=CPUInfo(arch="aarch64"),
)
TWO = Host("two", 8, 4096, 100, allocation_ratios=RATIOS, out_of_service="disabled")
FLAVOR = Flavor("m1", 2, 1024, 10)
CLOUD = Cloud({"one": ONE, "two": TWO}).with_servers([Server("u", "s", FLAVOR, "one")])


def request(**resources: int) -> CandidatesRequest:
    return CandidatesRequest({"": RequestGroup(resources)})


def test_candidates_have_names_usages_and_traits() -> None:
    found = LocalPlacement(CLOUD).candidates(request(VCPU=1, VGPU=1))
    (root,) = found.roots.values()
    assert (root.uuid, root.name) == (ROOT, "one")
    assert root.traits == {"CUSTOM_A"}
    assert root.supplies["VCPU"] == ClassUsage(16, 2)
    assert root.supplies["MEMORY_MB"] == ClassUsage(4096, 1024)
    assert found.requests == 1


@pytest.mark.parametrize("limit", [None, 1000])
def test_root_that_supplies_nothing_is_no_host(limit: int | None) -> None:
    # Nova takes only hosts whose own provider is in an allocation.
    storage = ResourceProvider(
        CHILD, "disk", None, {"CUSTOM_DISK": Inventory(9)}, frozenset({SHARES}), {AGGREGATE}
    )
    one = dataclasses.replace(ONE, providers=(storage,))
    two = dataclasses.replace(TWO, placement_aggregates=frozenset({AGGREGATE}))
    placement = LocalPlacement(Cloud({"one": one, "two": two}))
    wanted = dataclasses.replace(request(VCPU=3, CUSTOM_DISK=1), limit=limit)
    assert set(placement.candidates(wanted).roots) == {ROOT, uuid_of("two")}
    full = dataclasses.replace(one, vcpus=1)
    placement = LocalPlacement(Cloud({"one": full, "two": two}))
    assert set(placement.candidates(wanted).roots) == {uuid_of("two")}
    alone = dataclasses.replace(request(CUSTOM_DISK=1), limit=limit)
    found = placement.candidates(alone)
    assert (dict(found.roots), found.requests > 0) == ({}, True)


def test_limit_bounds_the_candidates() -> None:
    placement = LocalPlacement(CLOUD)
    limited = dataclasses.replace(request(VCPU=1), limit=1)
    assert len(placement.candidates(limited).roots) == 1
    assert set(placement.candidates(request(VCPU=1)).roots) == {ROOT, uuid_of("two")}


def test_providers_are_roots() -> None:
    group = RequestGroup(traits=TraitQuery.parse("CUSTOM_GPU"))
    assert LocalPlacement(CLOUD).providers(ProvidersRequest(group)) == {ROOT}


def test_aggregates_are_mirrored_unless_the_file_has_them() -> None:
    aggregates = {"a": Aggregate("a", {}, ("one",)), "b": Aggregate("b", {}, ("two",), AGGREGATE)}
    cloud = dataclasses.replace(CLOUD, aggregates=aggregates)
    uuids = [each.uuid for each in known_aggregates(cloud)]
    assert uuids == [uuid_of("a"), AGGREGATE]

    def members(cloud: Cloud, uuid: str) -> frozenset[str]:
        wanted = frozenset([frozenset([uuid])])
        return LocalPlacement(cloud).providers(ProvidersRequest(RequestGroup(member_of=wanted)))

    assert [members(cloud, uuid) for uuid in uuids] == [{ROOT}, {uuid_of("two")}]
    named = dataclasses.replace(ONE, placement_aggregates=frozenset({AGGREGATE}))
    differing = dataclasses.replace(cloud, hosts={"one": named, "two": TWO})
    assert [members(differing, uuid) for uuid in uuids] == [frozenset(), {ROOT}]


def test_known_hosts_have_the_uuids_of_their_providers() -> None:
    one, two = known_hosts(CLOUD)
    assert (one.name, one.uuid, one.architecture, one.out_of_service) == (
        "one",
        ROOT,
        "aarch64",
        "",
    )
    assert (two.uuid, two.architecture, two.out_of_service) == (uuid_of("two"), "", "disabled")
