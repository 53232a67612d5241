"""Demands: their order, and the requests that they make together."""

import pytest

from steelyard.analysis.why.demands import (
    NOTHING,
    DemandKind,
    DemandPart,
    GroupPolicy,
    PlacementDemand,
    requests_of,
    without_resources,
)
from steelyard.errors import InvalidQuery
from steelyard.traits import RequestGroup
from support.analysis.wanted_demands import amount, demand, root_trait, trait

ROOTS = ("5e08ea53-c4c6-448e-9334-ac4953de3cfa", "7f3b3f2e-44c6-4b8e-9334-ac4953de3cfb")
AGGREGATES = frozenset({ROOTS[0]})


def in_tree(uuid: str) -> PlacementDemand:
    return demand(DemandKind.IN_TREE, DemandPart(group=RequestGroup(in_tree=uuid)))


def policy(chosen: GroupPolicy) -> PlacementDemand:
    return demand(DemandKind.GROUP_POLICY, DemandPart(policy=chosen))


def queries(*demands: PlacementDemand, limit: int | None = None) -> list[str]:
    return [request.query_string() for request in requests_of(demands, limit)]


def test_requests_combine_all_parts() -> None:
    member = demand(
        DemandKind.MEMBER_OF, DemandPart(group=RequestGroup(member_of=frozenset({AGGREGATES})))
    )
    apart = demand(
        DemandKind.MEMBER_OF, DemandPart(group=RequestGroup(not_member_of=frozenset({ROOTS[1]})))
    )
    found = queries(
        amount("VCPU", 2),
        amount("MEMORY_MB", 512),
        trait("CUSTOM_A"),
        trait("!CUSTOM_B"),
        root_trait("!CUSTOM_C"),
        member,
        apart,
        in_tree(ROOTS[0]),
        limit=1,
    )
    assert found == [
        f"in_tree={ROOTS[0]}&limit=1&member_of=!{ROOTS[1]}&member_of={ROOTS[0]}&"
        "required=CUSTOM_A,!CUSTOM_B&resources=MEMORY_MB:512,VCPU:2&root_required=!CUSTOM_C"
    ]


def test_group_without_resources_is_left_out() -> None:
    assert queries(trait("CUSTOM_A"), amount("VGPU", 1, "1")) == ["resources1=VGPU:1"]
    assert queries(trait("CUSTOM_A"), root_trait("CUSTOM_B")) == []


def test_without_resources_names_the_demands_of_such_groups() -> None:
    demands = [trait("CUSTOM_A"), trait("CUSTOM_B", "1"), amount("VCPU", 1), root_trait("CUSTOM_C")]
    assert without_resources(demands, [demands[2]]) == [demands[1]]
    assert without_resources(demands, []) == demands[:2]


def test_fallback_makes_a_second_request() -> None:
    pinned = demand(
        DemandKind.RESOURCE,
        DemandPart(group=RequestGroup({"PCPU": 2})),
        fallback=DemandPart(group=RequestGroup({"VCPU": 2})),
    )
    part = DemandPart(group=RequestGroup(traits=trait("CUSTOM_A").part.group.traits))
    threads = demand(DemandKind.TRAIT, part, fallback=NOTHING)
    assert queries(pinned, threads) == ["required=CUSTOM_A&resources=PCPU:2", "resources=VCPU:2"]
    assert queries(amount("DISK_GB", 1), threads) == [
        "required=CUSTOM_A&resources=DISK_GB:1",
        "resources=DISK_GB:1",
    ]
    assert queries(pinned) == ["resources=PCPU:2", "resources=VCPU:2"]


@pytest.mark.parametrize(
    ("demands", "sent"),
    [
        ([amount("VGPU", 1, "1")], ""),
        ([amount("VGPU", 1, "1"), policy(GroupPolicy.ISOLATE)], ""),
        ([amount("VGPU", 1, "1"), amount("VGPU", 1, "2")], "group_policy=none&"),
        (
            [amount("VGPU", 1, "1"), amount("VGPU", 1, "2"), policy(GroupPolicy.ISOLATE)],
            "group_policy=isolate&",
        ),
        ([amount("VGPU", 1), amount("VGPU", 1, "2")], "group_policy=none&"),
        ([amount("VGPU", 1), amount("VGPU", 1, "2"), policy(GroupPolicy.MISSING)], ""),
    ],
)
def test_group_policy_is_sent_where_it_has_an_effect(
    demands: list[PlacementDemand], sent: str
) -> None:
    (query,) = queries(*demands)
    assert query.removesuffix(query[query.index("resources") :]) == sent


@pytest.mark.parametrize(
    "demands",
    [[trait("CUSTOM_A"), trait("!CUSTOM_A")], [in_tree(ROOTS[0]), in_tree(ROOTS[1])]],
)
def test_contradictions_raise(demands: list[PlacementDemand]) -> None:
    with pytest.raises(InvalidQuery):
        requests_of([amount("VCPU", 1), *demands])
