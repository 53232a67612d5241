"""The providers that a request selects, and the reasons for the others."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given

from steelyard.analysis.selecting import RejectionReasons, shown, trees_of
from steelyard.cloud import Cloud, Host
from steelyard.traits import (
    CandidatesRequest,
    Inventory,
    ProvidersRequest,
    ProviderTrees,
    RequestGroup,
    ResourceProvider,
    TraitQuery,
)
from support.traits import forests

AGGREGATE = "42896e0d-205d-4fe3-bd1e-100924931787"


def host(name: str, **fields: Any) -> Host:
    return Host(name, 4, 4096, 100, **fields)


def trees(conf: Any, *hosts: Host) -> ProviderTrees[ResourceProvider]:
    return trees_of(Cloud({host.name: host for host in hosts}), conf)


def why_not(request: Any, found: ProviderTrees[ResourceProvider]) -> dict[str, list[str]]:
    reasons = RejectionReasons(found, "host")
    if isinstance(request, ProvidersRequest):
        return reasons.of_providers(request)
    return reasons.of_trees(request)


@pytest.mark.parametrize(
    "asked",
    [
        lambda uuid: ProvidersRequest(uuid=uuid),
        lambda uuid: ProvidersRequest(RequestGroup(in_tree=uuid)),
        lambda uuid: CandidatesRequest({"": RequestGroup({"VCPU": 1}, in_tree=uuid)}),
    ],
)
def test_selection_compares_uuids(conf: Any, asked: Any) -> None:
    uuid, other = (f"5e08ea53-c4c6-448e-9334-ac4953de3cf{digit}" for digit in "ab")
    found = trees(conf, host("a", uuid=uuid.upper()), host("b", uuid=other), host("c", uuid="c"))
    rejected = why_not(asked(uuid), found)
    assert list(rejected) == ["b", "c"]
    (said,) = rejected["b"]
    assert said.endswith(f"is {uuid!r}, the host has the UUID {other!r}")


def test_hosts_have_inventories_after_overcommitment(conf: Any) -> None:
    big = host(
        "h",
        reserved={"vcpus": 1, "ram_mb": 9999},
        used={"vcpus": 3, "VGPU": 1},
        allocation_ratios={"vcpus": 1.5},
        resources={"VGPU": 2},
    )
    ((provider, _),) = trees(conf, big).pairs
    assert provider.inventories["VCPU"] == Inventory(4, 3, max_unit=4)
    assert provider.inventories["MEMORY_MB"] == Inventory(0, 0, max_unit=4096)
    assert provider.inventories["VGPU"] == Inventory(2, 1, max_unit=2)
    endless = dataclasses.replace(big, allocation_ratios={"vcpus": 1e308})
    ((provider, _),) = trees(conf, endless).pairs
    assert provider.admits("VCPU", 4)


ONE = RequestGroup({"VCPU": 1})
APART = {"1": ONE, "2": ONE}


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (
            CandidatesRequest({"": ONE}, root_required=TraitQuery.parse("B")),
            "root: required trait B is",
        ),
        (CandidatesRequest(APART, "isolate"), "groups 1, 2: group_policy 'isolate' needs one prov"),
        (CandidatesRequest(APART, "none"), None),
        (ProvidersRequest(name="other"), "name is 'other', the host has the name 'h'"),
        (ProvidersRequest(name="h"), None),
        (
            CandidatesRequest({"1": RequestGroup({"VCPU": 5})}),
            "vCPUs: 5 wanted, the host gives at most 4 to",
        ),
        (
            CandidatesRequest({"1": RequestGroup({"VCPU": 99})}),
            "vCPUs: 99 wanted, the host has 64 of 64",
        ),
        (CandidatesRequest({"": RequestGroup({"VGPU": 1})}), "VGPU: the host has none"),
        (
            ProvidersRequest(RequestGroup(member_of=frozenset([frozenset([AGGREGATE])]))),
            f"the host is in none of the aggregates {AGGREGATE}",
        ),
        (ProvidersRequest(RequestGroup(not_member_of=frozenset([AGGREGATE]))), None),
    ],
)
def test_rejection_of_a_host_has_a_reason(conf: Any, request_: Any, why: str | None) -> None:
    one = host("h", traits=frozenset({"A"}), allocation_ratios={"vcpus": 16.0})
    rejected = why_not(request_, trees(conf, one))
    if why is None:
        assert rejected == {}
    else:
        (reason,) = rejected["h"]
        assert reason.startswith(why)


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


TREE = ProviderTrees(
    [
        ResourceProvider(uuid(1), "node", inventories={"VCPU": Inventory(8, min_unit=2)}),
        ResourceProvider(
            uuid(2), "card1", uuid(1), {"SRIOV_NET_VF": Inventory(4)}, {"A"}, {AGGREGATE}
        ),
        ResourceProvider(uuid(3), "card2", uuid(1), {"SRIOV_NET_VF": Inventory(2)}, {"B"}),
    ]
)


@pytest.mark.parametrize(
    ("query", "reasons"),
    [
        (
            "resources1=SRIOV_NET_VF:1&required1=!A,!B",
            ["card1: group 1: forbidden trait A is present"],
        ),
        ("resources1=SRIOV_NET_VF:3&required1=B", ["card1: group 1: required trait B is missing"]),
        ("resources=SRIOV_NET_VF:9", ["card1: SRIOV_NET_VF: 9 wanted, the host has 4 of 4 left"]),
        ("resources=VCPU:1", ["vCPUs: 1 wanted, the host gives at least 2, in steps of 1"]),
        ("resources=VCPU:2&required=C", ["required trait C is missing"]),
        ("resources=VGPU:1", ["VGPU: the host has none"]),
        (
            f"resources1=SRIOV_NET_VF:1&member_of1=!{AGGREGATE}&required1=A",
            [f"card1: group 1: the host is in the forbidden aggregate {AGGREGATE}"],
        ),
        (
            "resources1=SRIOV_NET_VF:1&resources2=SRIOV_NET_VF:1&resources3=SRIOV_NET_VF:1"
            "&group_policy=isolate",
            ["groups 1, 2, 3: group_policy 'isolate' needs one provider for each"],
        ),
        (
            "resources1=SRIOV_NET_VF:1&required1=A&resources2=SRIOV_NET_VF:1&required2=B"
            "&group_policy=none&same_subtree=1,2",
            ["groups 1, 2: same_subtree needs one provider above the others"],
        ),
        (
            "resources1=SRIOV_NET_VF:4&resources2=SRIOV_NET_VF:4&group_policy=none",
            ["the providers of the tree do not serve all groups together"],
        ),
        (
            "resources1=SRIOV_NET_VF:1&required2=!A&group_policy=none&same_subtree=1,2",
            ["group 2: without resources, it needs required traits or member_of"],
        ),
    ],
)
def test_rejection_of_a_tree_has_the_reasons_of_the_nearest_provider(
    query: str, reasons: list[str]
) -> None:
    assert why_not(CandidatesRequest.parse(query), TREE) == {"node": reasons}


@given(forests.sharing_forests, forests.candidates_requests)
def test_each_rejected_tree_has_a_reason(
    providers: list[ResourceProvider], request: CandidatesRequest
) -> None:
    found = ProviderTrees(providers)
    rejected = why_not(request, found)
    assert all(rejected.values())
    selected = [root.name for root in request.roots(found)]
    assert sorted([*rejected, *selected]) == sorted(root.name for root in found.roots)


@given(forests.sharing_forests, forests.providers_requests)
def test_each_rejected_provider_has_a_reason(
    providers: list[ResourceProvider], request: ProvidersRequest
) -> None:
    rejected = why_not(request, ProviderTrees(providers))
    assert all(rejected.values())


def test_provider_without_a_name_is_shown_by_its_uuid() -> None:
    assert shown(ResourceProvider(uuid(1))) == uuid(1)


def test_trees_of_a_cloud_have_limits_aggregates_and_nested_providers(conf: Any) -> None:
    card = ResourceProvider(AGGREGATE, "card", inventories={"VGPU": Inventory(4)})
    found = trees(
        conf,
        host(
            "a",
            min_units={"ram_mb": 64},
            max_units={"vcpus": 2},
            step_sizes={"ram_mb": 64},
            placement_aggregates=frozenset({AGGREGATE}),
            providers=(card,),
        ),
        host("b"),
    )
    for resources, rejected in (
        ({"VCPU": 2, "MEMORY_MB": 64}, []),
        ({"VCPU": 3}, ["a"]),
        ({"MEMORY_MB": 32}, ["a"]),
        ({"MEMORY_MB": 65}, ["a"]),
        ({"VCPU": 1, "VGPU": 1}, ["b"]),
    ):
        request = CandidatesRequest({"": RequestGroup(resources)})
        assert list(why_not(request, found)) == rejected
    member = RequestGroup({"VCPU": 1}, member_of=frozenset({frozenset({AGGREGATE})}))
    assert list(why_not(CandidatesRequest({"": member}), found)) == ["b"]
