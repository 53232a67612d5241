"""Local answers to requests: equal to those of a real Placement, over generated trees.

Where the two differ by design, a test of its own shows both answers.
"""

import dataclasses
import json
import pathlib
import runpy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.clients import Placement
from steelyard.cloud import load_providers
from steelyard.traits import (
    Candidate,
    CandidatesRequest,
    Inventory,
    ProvidersRequest,
    ProviderTrees,
    RequestGroup,
    ResourceProvider,
)
from steelyard.traits.trees import SHARES
from support.examples import examples
from support.nova.planted import LATEST, Planted, planted
from support.repository import EXAMPLES
from support.traits import forests

COMMON = settings(suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def placement(tmp_path_factory: Any) -> Iterator[Planted]:
    with planted(tmp_path_factory.mktemp("placement")) as found:
        yield found


def allocated(candidates: Iterator[Candidate]) -> set[Any]:
    return {
        frozenset((uuid, frozenset(part.items())) for uuid, part in each.allocations.items())
        for each in candidates
    }


def check_candidates(
    placement: Planted, trees: ProviderTrees[ResourceProvider], request: CandidatesRequest
) -> None:
    """Check that both find the same candidates, at the newest and at the lowest microversion."""
    whole = dataclasses.replace(request, limit=None)
    ours = set(whole.candidates(trees))
    assert placement.candidates(whole) == ours
    lowest = whole.microversion
    assert placement.allocations(whole, lowest) == allocated(whole.candidates(trees, lowest))
    if request.limit is not None:
        first = list(request.candidates(trees))
        assert len(first) == len(set(first)) == len(placement.candidates(request))
        assert ours.issuperset(first)


requests = st.lists(forests.candidates_requests, min_size=4, max_size=4)


def test_candidates_are_those_of_placement(placement: Planted) -> None:
    @settings(COMMON, max_examples=examples(15))
    @given(forests.forests, requests)
    def law(providers: list[ResourceProvider], several: list[CandidatesRequest]) -> None:
        trees = placement.plant(providers)
        for request in several:
            check_candidates(placement, trees, request)

    law()


def test_candidates_of_sharing_providers_are_those_of_placement(placement: Planted) -> None:
    @settings(COMMON, max_examples=examples(15))
    @given(forests.sharing_forests, requests)
    def law(providers: list[ResourceProvider], several: list[CandidatesRequest]) -> None:
        trees = placement.plant(providers)
        for request in several:
            whole = dataclasses.replace(request, limit=None)
            ours, theirs = set(whole.candidates(trees)), placement.candidates(whole)
            assert theirs <= ours
            assert all(lost_by_placement(each, trees) for each in ours - theirs)
            lowest = whole.microversion
            old = allocated(whole.candidates(trees, lowest))
            assert placement.allocations(whole, lowest) <= old

    law()


def lost_by_placement(candidate: Candidate, trees: ProviderTrees[ResourceProvider]) -> bool:
    """Return whether Placement may lose the candidate, because it confuses the trees.

    It keeps one tree if sharing providers alone serve the group without a suffix for several trees.
    Then that group finds no other groups in the other trees.
    """
    return len(candidate.mappings) > 1 and all(
        SHARES in trees[uuid].traits for uuid in candidate.mappings.get("", [""])
    )


several_providers_requests = st.lists(forests.providers_requests, min_size=8, max_size=8)


def test_providers_are_those_of_placement(placement: Planted) -> None:
    @settings(COMMON, max_examples=examples(10))
    @given(forests.sharing_forests, several_providers_requests)
    def law(providers: list[ResourceProvider], several: list[ProvidersRequest]) -> None:
        trees = placement.plant(providers)
        for request in several:
            for version in {request.microversion, LATEST}:
                answer = placement.ask(request, version)["resource_providers"]
                found = [provider.uuid for provider in request.matching(trees)]
                assert found == [
                    each.uuid for each in providers if each.uuid in {a["uuid"] for a in answer}
                ]

    law()


def test_examples_copy_providers_and_compare_answers(
    placement: Planted, tmp_path: pathlib.Path
) -> None:
    copy = runpy.run_path(str(EXAMPLES / "copy_providers.py"))["copy"]
    differences = runpy.run_path(str(EXAMPLES / "compare_answers.py"))["differences"]
    file = tmp_path / "providers.json"

    @settings(COMMON, max_examples=examples(3))
    @given(forests.sharing_forests)
    def law(providers: list[ResourceProvider]) -> None:
        placement.plant(providers)
        live = Placement(placement.client)
        file.write_text(json.dumps(copy(live)))
        copied = {provider.uuid: provider for provider, _ in load_providers(file).pairs}
        assert copied == {each.uuid: each for each in providers}
        assert differences(live, str(file), "resources=VCPU:1") == []
        placement.plant([])
        assert bool(differences(live, str(file), "resources=VCPU:1")) is any(
            each.admits("VCPU", 1) for each in providers
        )

    law()


ROOT, CHILD = forests.PROVIDERS[:2]


def test_difference_amounts_of_one_class_are_counted_once(placement: Planted) -> None:
    has = {"VCPU": Inventory(8)}
    trees = placement.plant(
        [ResourceProvider(ROOT, "a", None, has), ResourceProvider(CHILD, "b", ROOT, has)]
    )
    for policy in (None, "isolate"):
        groups = {"": RequestGroup({"VCPU": 1}), "1": RequestGroup({"VCPU": 1})}
        request = CandidatesRequest(groups, policy)
        ours = set(request.candidates(trees))
        assert {sum(amount["VCPU"] for amount in each.allocations.values()) for each in ours} == {2}
        theirs = placement.candidates(request)
        assert {each.providers for each in theirs} == {each.providers for each in ours}
        assert max(sum(a["VCPU"] for a in each.allocations.values()) for each in theirs) > 2
