"""Allocation candidates: their form, their order, and how soon the first one is found."""

from typing import Any

import pytest

from steelyard.errors import InvalidProvider, InvalidQuery, MicroversionTooLow
from steelyard.traits import (
    Candidate,
    CandidatesRequest,
    Inventory,
    ProvidersRequest,
    ProviderTrees,
    RequestGroup,
    ResourceProvider,
    TraitQuery,
)

INVALID: Any = 5
ANSWER = {
    "allocations": {"u1": {"resources": {"VCPU": 1}}, "u2": {"resources": {"SRIOV_NET_VF": 2}}},
    "mappings": {"": ["u1"], "1": ["u2"]},
}


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def provider(number: int, parent: int | None = None, **has: int) -> ResourceProvider:
    inventories = {name: Inventory(total) for name, total in has.items()}
    return ResourceProvider(
        uuid(number), f"p{number}", None if parent is None else uuid(parent), inventories
    )


def hosts(*numbers: int, cards: int = 0, functions: int = 0) -> list[ResourceProvider]:
    """Return hosts with 8 vCPUs and some cards each; their numbers are below ten times theirs."""
    return [
        each
        for number in numbers
        for each in (
            provider(number, VCPU=8),
            *(
                provider(number * 100 + card, number, SRIOV_NET_VF=functions)
                for card in range(cards)
            ),
        )
    ]


def request(groups: int, amount: int = 1, policy: str = "none", **more: Any) -> CandidatesRequest:
    """Return a request for a vCPU, and for some groups of virtual functions."""
    each = RequestGroup({"SRIOV_NET_VF": amount})
    apart = {str(number): each for number in range(1, groups + 1)}
    return CandidatesRequest({"": RequestGroup({"VCPU": 1}), **apart}, policy, **more)


def test_candidate_reads_and_writes_the_json_of_placement() -> None:
    candidate = Candidate.from_json(ANSWER)
    assert candidate.as_json() == ANSWER
    assert candidate == Candidate(
        {"u2": {"SRIOV_NET_VF": 2}, "u1": {"VCPU": 1}},
        {"1": frozenset(["u2"]), "": frozenset(["u1"])},
        root="u1",
    )
    assert len({candidate, Candidate.from_json(ANSWER)}) == 1
    assert candidate.providers == {"u1", "u2"}


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        {"allocations": [], "mappings": {}},
        {**ANSWER, "mappings": []},
        {**ANSWER, "mappings": {"": "u1"}},
    ],
)
def test_candidate_rejects_other_json(answer: Any) -> None:
    with pytest.raises(InvalidQuery):
        Candidate.from_json(answer)


def test_candidates_take_trees_in_turn() -> None:
    found = list(request(1).candidates(hosts(1, 2, cards=2, functions=4)))
    assert [each.root for each in found] == [uuid(1), uuid(2), uuid(1), uuid(2)]
    assert [max(each.mappings["1"]) for each in found] == [
        uuid(100),
        uuid(200),
        uuid(101),
        uuid(201),
    ]
    assert found[0].as_json() == {
        "allocations": {
            uuid(1): {"resources": {"VCPU": 1}},
            uuid(100): {"resources": {"SRIOV_NET_VF": 1}},
        },
        "mappings": {"": [uuid(1)], "1": [uuid(100)]},
    }


def test_candidates_are_at_most_limit() -> None:
    trees = ProviderTrees(hosts(1, 2, cards=2, functions=4))
    assert len(list(request(1, limit=3).candidates(trees))) == 3
    assert len(list(request(1, limit=9).candidates(trees))) == 4


def test_candidates_have_one_provider_of_a_tree_before_1_29() -> None:
    nested = hosts(1, cards=1, functions=4)
    both = [*nested, *hosts(2), provider(3, VCPU=1, SRIOV_NET_VF=1)]
    assert [each.root for each in request(1).candidates(both)] == [uuid(1), uuid(3)]
    for version in ("1.28", "placement 1.28"):
        assert [each.root for each in request(1).candidates(both, version)] == [uuid(3)]
        assert [each.uuid for each in request(1).roots(both, version)] == [uuid(3)]


def test_candidates_need_the_microversion_of_the_request() -> None:
    with pytest.raises(MicroversionTooLow, match=r"needs 1\.25"):
        request(1).candidates([], "1.24")
    with pytest.raises(InvalidProvider, match="providers: expected resource providers, not 5"):
        request(1).candidates(INVALID)


def test_groups_of_one_class_share_a_provider_within_its_limits() -> None:
    limited = {"SRIOV_NET_VF": Inventory(8, used=1, max_unit=5)}
    providers = [provider(1, VCPU=8), ResourceProvider(uuid(2), "", uuid(1), limited)]
    assert len(list(request(2, 2).candidates(providers))) == 1
    assert len(list(request(3, 2).candidates(providers))) == 0
    assert len(list(request(2, 2, "isolate").candidates(providers))) == 0


@pytest.mark.parametrize(
    ("groups", "amount", "policy", "cards", "functions", "possible"),
    [
        (30, 1, "isolate", 30, 8, True),
        (31, 1, "isolate", 30, 8, False),
        (30, 1, "none", 29, 1, False),
        (60, 4, "none", 30, 8, True),
        (61, 4, "none", 30, 8, False),
        (31, 5, "none", 30, 8, False),
    ],
)
def test_first_candidate_of_a_symmetric_tree_is_found_in_few_steps(
    groups: int, amount: int, policy: str, cards: int, functions: int, possible: bool
) -> None:
    # Trying all choices would exceed the time limit of a test.
    found = request(groups, amount, policy).candidates(hosts(1, cards=cards, functions=functions))
    assert (next(found, None) is not None) is possible


@pytest.mark.parametrize(("pairs", "possible"), [(8, True), (9, False)])
def test_first_candidate_of_subtrees_is_found_in_few_steps(pairs: int, possible: bool) -> None:
    nodes = range(10, 18)
    providers = [
        provider(1, VCPU=8),
        *(provider(node, 1, PCPU=8) for node in nodes),
        *(provider(node * 10 + card, node, SRIOV_NET_VF=8) for node in nodes for card in range(2)),
    ]
    groups = {
        f"{kind}{number}": RequestGroup({name: 1})
        for number in range(pairs)
        for kind, name in (("CARD", "SRIOV_NET_VF"), ("NODE", "PCPU"))
    }
    together = frozenset(frozenset([f"CARD{each}", f"NODE{each}"]) for each in range(pairs))
    found = CandidatesRequest(groups, "isolate", same_subtree=together).candidates(providers)
    assert (next(found, None) is not None) is possible


def test_packing_of_different_amounts_ends_in_few_steps() -> None:
    amounts = [3] * 13 + [2] * 4
    groups = {
        str(number): RequestGroup({"SRIOV_NET_VF": amount})
        for number, amount in enumerate(amounts, 1)
    }
    asked = CandidatesRequest(groups, "none")
    for cards, possible in ((12, False), (13, True)):
        found = asked.candidates(hosts(1, cards=cards, functions=5))
        assert (next(found, None) is not None) is possible


@pytest.mark.parametrize(("traits", "possible"), [(8, True), (9, False)])
def test_traits_of_many_providers_are_found_in_few_steps(traits: int, possible: bool) -> None:
    classes = {f"CUSTOM_CLASS{number}": Inventory(8) for number in range(8)}
    providers = [
        provider(1),
        *(
            ResourceProvider(uuid(100 + card), "", uuid(1), classes, {f"CUSTOM_T{card % 9}"})
            for card in range(64)
        ),
    ]
    names = frozenset(f"CUSTOM_T{number}" for number in range(traits))
    group = RequestGroup(dict.fromkeys(classes, 1), TraitQuery(names))
    found = CandidatesRequest({"": group}).candidates(providers)
    assert (next(found, None) is not None) is possible


def test_overlapping_subtrees_without_a_candidate_end_in_few_steps() -> None:
    nodes = range(10, 18)
    providers = [
        provider(1),
        *(provider(node, 1, PCPU=8) for node in nodes),
        *(provider(node * 10 + card, node, SRIOV_NET_VF=1) for node in nodes for card in range(8)),
    ]
    groups = {
        **{str(number): RequestGroup({"SRIOV_NET_VF": 1}) for number in range(1, 9)},
        "_M": RequestGroup({"PCPU": 8}),
        "_N": RequestGroup({"PCPU": 1}),
    }
    together = frozenset([frozenset(["_M", *"1234"]), frozenset(["_N", *"45678"])])
    asked = CandidatesRequest(groups, "none", same_subtree=together)
    assert not any(asked.candidates(providers))


def test_group_without_resources_needs_required_traits_or_aggregates() -> None:
    providers = hosts(1, cards=1, functions=1)
    for traits, count in (("!CUSTOM_A", 0), ("CUSTOM_A", 0)):
        groups = {
            "1": RequestGroup({"SRIOV_NET_VF": 1}),
            "2": RequestGroup(traits=TraitQuery.parse(traits)),
        }
        asked = CandidatesRequest(groups, "none", same_subtree=frozenset([frozenset("12")]))
        assert len(list(asked.candidates(providers))) == count


def test_matching_returns_the_given_objects() -> None:
    providers = hosts(1, 2, cards=1, functions=4)
    asked = ProvidersRequest(RequestGroup({"SRIOV_NET_VF": 1}))
    found = asked.matching(iter(providers))
    assert [each.name for each in found] == ["p100", "p200"]
    assert all(any(each is given for given in providers) for each in found)
    assert asked.matching(ProviderTrees(providers)) == found
    assert ProvidersRequest(name="p2").matching(providers) == [providers[2]]
    assert ProvidersRequest(name="").matching(providers) == providers
