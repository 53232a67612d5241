"""The repair of a request is minimal, and found with few requests, in generated clouds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.analysis.why.demands import DemandKind, DemandPart, PlacementDemand
from steelyard.analysis.why.local import PlacementOfTrees
from steelyard.analysis.why.repair import searched
from steelyard.traits import CandidatesRequest, ProviderTrees, RequestGroup, ResourceProvider
from support.analysis.wanted_demands import (
    CountingPlacement,
    amount,
    demand,
    demands_of,
    is_minimal,
    root_trait,
    trait,
)
from support.examples import examples
from support.traits import forests

ABSENT = demand(DemandKind.IN_TREE, DemandPart(group=RequestGroup(in_tree=forests.PROVIDERS[-1])))
# Many of these cannot be met, so that repairs have several members.
HARD = [
    amount("VGPU", 1),
    amount("VCPU", 100, "_HARD"),
    trait("CUSTOM_NOWHERE"),
    trait("!CUSTOM_A"),
    trait("CUSTOM_B"),
    root_trait("CUSTOM_C"),
    root_trait("!CUSTOM_B"),
    demand(
        DemandKind.MEMBER_OF,
        DemandPart(group=RequestGroup(member_of=frozenset([frozenset(forests.AGGREGATES[:1])]))),
    ),
    ABSENT,
]
PINNED = demand(
    DemandKind.RESOURCE,
    DemandPart(group=RequestGroup({"PCPU": 2})),
    "2 PCPU",
    DemandPart(group=RequestGroup({"VCPU": 2})),
)


def _demands(
    request: CandidatesRequest, hard: list[PlacementDemand], *, pinned: bool
) -> list[PlacementDemand]:
    """Return the demands of the request and others, each part once."""
    found = {each.part: each for each in [*demands_of(request), *hard]}
    if any(each.kind is DemandKind.IN_TREE for each in demands_of(request)):
        found.pop(ABSENT.part, None)  # a group has at most one tree
    if pinned:
        # Nova never requests VCPU beside dedicated CPUs that fall back to it.
        found = {
            part: each
            for part, each in found.items()
            if part.suffix or "VCPU" not in part.group.resources
        }
        found[PINNED.part] = PINNED
    return list(found.values())


wanted = st.builds(
    _demands,
    forests.candidates_requests,
    st.lists(st.sampled_from(HARD), max_size=3, unique_by=id),
    pinned=st.sampled_from([False, False, True]),
)
limits = st.sampled_from([None, 1, 1000])


def check(
    providers: list[ResourceProvider], demands: list[PlacementDemand], limit: int | None
) -> None:
    """Check the repair against brute force, and the number of requests."""
    placement = CountingPlacement(PlacementOfTrees(ProviderTrees(providers)))
    found = searched(demands, limit, placement)
    members = [member.demand for member in found.repair]
    assert is_minimal(demands, members, PlacementOfTrees(ProviderTrees(providers)))
    assert bool(found.candidates.requests) is not bool(members)
    assert found.repaired is None or found.repaired.requests
    assert found.requests == len(placement.sent) == len(set(placement.sent))
    variants = 1 + any(each.fallback is not None for each in demands)
    assert found.requests <= variants * (len(demands) + 2 * len(members) + 2)


@settings(max_examples=examples(60))
@given(forests.forests, wanted, limits)
def test_repair_is_minimal(
    providers: list[ResourceProvider], demands: list[PlacementDemand], limit: int | None
) -> None:
    check(providers, demands, limit)


@settings(max_examples=examples(15))
@given(forests.sharing_forests, wanted, limits)
def test_repair_is_minimal_with_sharing_providers(
    providers: list[ResourceProvider], demands: list[PlacementDemand], limit: int | None
) -> None:
    check(providers, demands, limit)
