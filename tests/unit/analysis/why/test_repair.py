"""The search for a repair: its order, its questions, and refused demands."""

import dataclasses

import pytest

from steelyard import errors
from steelyard.analysis.why.demands import DemandKind, DemandPart, GroupPolicy, PlacementDemand
from steelyard.analysis.why.local import PlacementOfTrees
from steelyard.analysis.why.placement_view import Candidates
from steelyard.analysis.why.repair import Searched, searched
from steelyard.traits import (
    CandidatesRequest,
    Inventory,
    ProvidersRequest,
    ProviderTrees,
    RequestGroup,
    ResourceProvider,
)
from support.analysis.wanted_demands import (
    CountingPlacement,
    amount,
    demand,
    root_trait,
    trait,
)

UUIDS = [f"5e08ea53-c4c6-448e-9334-ac4953de3c{number:02x}" for number in range(8)]
AGGREGATE = UUIDS[7]


def host(
    number: int, *traits: str, ram: int = 4096, aggregates: frozenset[str] = frozenset()
) -> ResourceProvider:
    inventories = {
        "VCPU": Inventory(8),
        "MEMORY_MB": Inventory(ram),
        "DISK_GB": Inventory(100),
    }
    return ResourceProvider(
        UUIDS[number], f"h{number}", None, inventories, frozenset(traits), aggregates
    )


HOSTS = [
    host(0, "CUSTOM_A"),
    host(1, "CUSTOM_A", aggregates=frozenset({AGGREGATE})),
    host(2, "CUSTOM_OFF"),
]
SIZES = [amount("VCPU", 4), amount("MEMORY_MB", 2048), amount("DISK_GB", 10)]


class RefusingPlacement(PlacementOfTrees):
    """A Placement that refuses unknown traits, as a real one does."""

    def __init__(self, providers: list[ResourceProvider]) -> None:
        super().__init__(ProviderTrees(providers))
        self._known = frozenset[str]().union(*(each.traits for each in providers))

    def candidates(self, request: CandidatesRequest) -> Candidates:
        groups = request.groups.values()
        self._check([*(group.traits for group in groups), request.root_required])
        return super().candidates(request)

    def providers(self, request: ProvidersRequest) -> frozenset[str]:
        self._check([request.group.traits])
        return super().providers(request)

    def _check(self, queries: list) -> None:  # type: ignore[type-arg]
        for query in queries:
            for name in query.required | query.forbidden:
                if name not in self._known:
                    raise errors.BadRequest(f"No such trait(s): {name}.")


def search(
    *demands: PlacementDemand,
    providers: list[ResourceProvider] = HOSTS,
    limit: int | None = 1000,
) -> Searched:
    return searched(demands, limit, RefusingPlacement(providers))


def repair(found: Searched) -> list[tuple[str, str, int | None, int | None]]:
    return [
        (each.demand.text, each.refusal, each.providers_alone, each.providers_without)
        for each in found.repair
    ]


def test_request_with_candidates_needs_one_question() -> None:
    found = search(*SIZES)
    assert {root.name for root in found.candidates.roots.values()} == {"h0", "h1", "h2"}
    assert found.repaired is found.candidates
    assert (found.repair, found.requests, found.truncated) == ((), 1, False)


@pytest.mark.parametrize(("limit", "truncated"), [(2, True), (3, True), (4, False), (None, False)])
def test_answer_with_as_many_candidates_as_the_limit_is_truncated(
    limit: int | None, truncated: bool
) -> None:
    assert search(*SIZES, limit=limit).truncated is truncated


def test_repair_counts_the_providers_of_each_member() -> None:
    found = search(*SIZES[:2], amount("DISK_GB", 500), trait("CUSTOM_A"), root_trait("CUSTOM_OFF"))
    assert repair(found) == [
        ("500 DISK_GB ", "", 0, 0),
        ("CUSTOM_A ", "", 2, 0),
    ]
    assert found.repaired
    assert [root.name for root in found.repaired.roots.values()] == ["h2"]


def test_repair_of_one_member_asks_only_once_for_the_rest() -> None:
    placement = CountingPlacement(PlacementOfTrees(ProviderTrees(HOSTS)))
    found = searched([*SIZES, trait("CUSTOM_B")], 1000, placement)
    assert repair(found) == [("CUSTOM_B ", "", 0, 3)]
    # The whole request, four demands, the trait alone, and the request without it.
    assert found.requests == len(placement.sent) == 7


def test_unknown_trait_is_a_member_with_placements_message() -> None:
    found = search(*SIZES, trait("CUSTOM_A"), trait("CUSTOM_TYPO"))
    assert repair(found) == [("CUSTOM_TYPO ", "No such trait(s): CUSTOM_TYPO.", None, 2)]


def test_faulty_demand_is_a_member_without_a_question() -> None:
    faulty = dataclasses.replace(
        demand(DemandKind.TRAIT, DemandPart(), "trait odd name required"), fault="invalid trait"
    )
    found = search(*SIZES, faulty)
    assert repair(found) == [("trait odd name required", "invalid trait", None, 3)]
    assert repair(search(*SIZES, faulty, trait("CUSTOM_TYPO")))[1][2:] == (None, 0)


def test_contradiction_is_a_member() -> None:
    found = search(*SIZES, trait("CUSTOM_A"), trait("!CUSTOM_A"))
    ((text, refusal, alone, without),) = repair(found)
    assert (text, alone, without) == ("!CUSTOM_A ", None, 2)
    assert refusal == "CUSTOM_A is both required and forbidden; remove one of the two"


def test_forbidden_parts_have_no_number_of_their_own() -> None:
    off = [each for each in HOSTS if "CUSTOM_OFF" in each.traits]
    forbidding = search(*SIZES, root_trait("!CUSTOM_OFF"), providers=off)
    assert repair(forbidding) == [("root !CUSTOM_OFF", "", None, 1)]
    group = RequestGroup(not_member_of=frozenset({AGGREGATE}))
    apart = demand(DemandKind.MEMBER_OF, DemandPart(group=group), "apart")
    assert repair(search(*SIZES, apart, providers=HOSTS[1:2])) == [("apart", "", None, 1)]


def tree(number: int) -> PlacementDemand:
    part = DemandPart(group=RequestGroup(in_tree=UUIDS[number]))
    return demand(DemandKind.IN_TREE, part, f"host h{number}")


def test_requested_host_is_kept_before_all_other_demands() -> None:
    found = search(tree(2), *SIZES, trait("CUSTOM_A"))
    assert repair(found) == [("CUSTOM_A ", "", 2, 1)]


def test_requested_host_without_a_provider_is_the_member() -> None:
    assert repair(search(tree(5), *SIZES)) == [("host h5", "", 0, 3)]


def test_group_that_loses_its_resources_goes_as_a_whole() -> None:
    found = search(*SIZES, amount("VGPU", 1, "1"), trait("CUSTOM_A", "1"))
    assert repair(found) == [("1 VGPU 1", "", 0, 3)]
    assert [each.text for each in found.unjudged] == ["CUSTOM_A 1"]


def test_repair_without_resources_leaves_no_request() -> None:
    found = search(tree(5), amount("VCPU", 400), root_trait("CUSTOM_A"))
    assert [member.demand.text for member in found.repair] == ["400 VCPU "]
    assert found.repair[0].providers_without is None
    assert found.repaired is None
    assert [each.text for each in found.unjudged] == ["host h5", "root CUSTOM_A"]


def test_isolation_relaxes_to_none() -> None:
    isolate = demand(
        DemandKind.GROUP_POLICY, DemandPart(policy=GroupPolicy.ISOLATE), "group_policy=isolate"
    )
    found = search(*SIZES[1:], amount("VCPU", 1, "1"), amount("VCPU", 1, "2"), isolate)
    assert repair(found) == [("group_policy=isolate", "", None, 3)]


def test_fallback_counts_as_meeting_the_demand() -> None:
    pinned = demand(
        DemandKind.RESOURCE,
        DemandPart(group=RequestGroup({"PCPU": 4})),
        "4 PCPU",
        fallback=DemandPart(group=RequestGroup({"VCPU": 4})),
    )
    assert len(search(*SIZES[1:], pinned).candidates.roots) == 3
    found = search(*SIZES[1:], pinned, trait("CUSTOM_OFF"), root_trait("CUSTOM_A"))
    assert repair(found) == [("CUSTOM_OFF ", "", 1, 2)]


@pytest.mark.parametrize("error", [errors.MicroversionTooLow("too low"), errors.ServiceError("x")])
def test_placement_that_cannot_be_asked_ends_the_search(error: errors.SteelyardError) -> None:
    class Broken(PlacementOfTrees):
        def candidates(self, request: CandidatesRequest) -> Candidates:
            raise error

    with pytest.raises(type(error)):
        searched(SIZES, 1000, Broken(ProviderTrees(HOSTS)))
