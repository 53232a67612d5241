"""A Placement computed from trees answers a search as a real one does."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.analysis.why.local import PlacementOfTrees
from steelyard.analysis.why.repair import Searched, searched
from steelyard.clients import Placement
from steelyard.live.why.placement import LivePlacement
from steelyard.traits import CandidatesRequest, ResourceProvider
from support.analysis.wanted_demands import demands_of, has_candidates, is_minimal
from support.examples import examples
from support.nova.planted import Planted, planted
from support.traits import forests

COMMON = settings(suppress_health_check=list(HealthCheck))
ANY_FORESTS = forests.forests | forests.sharing_forests
requests = st.lists(forests.candidates_requests, min_size=3, max_size=3)


@pytest.fixture(scope="module")
def placement(tmp_path_factory: Any) -> Iterator[Planted]:
    with planted(tmp_path_factory.mktemp("placement")) as found:
        yield found


def summary(found: Searched) -> tuple[Any, ...]:
    """Return the parts of a search that do not depend on names and on the order of candidates."""
    return (
        len(found.candidates.roots),
        found.truncated,
        [(each.demand, each.providers_alone, each.providers_without) for each in found.repair],
        None if found.repaired is None else set(found.repaired.roots),
        found.unjudged,
    )


def test_search_finds_the_same_in_a_real_placement(placement: Planted) -> None:
    live = LivePlacement(Placement(placement.client))

    @settings(COMMON, max_examples=examples(15))
    @given(ANY_FORESTS, requests, st.sampled_from([None, 1000]))
    def law(
        providers: list[ResourceProvider], several: list[CandidatesRequest], limit: int | None
    ) -> None:
        local = PlacementOfTrees(placement.plant(providers))
        for request in several:
            demands = demands_of(request)
            found = searched(demands, limit, live)
            assert summary(found) == summary(searched(demands, limit, local))
            assert is_minimal(demands, [each.demand for each in found.repair], live)
            assert has_candidates(demands, live) == bool(found.candidates.requests)

    law()


def test_roots_have_the_same_supplies_in_a_real_placement(placement: Planted) -> None:
    live = LivePlacement(Placement(placement.client))

    @settings(COMMON, max_examples=examples(15))
    @given(ANY_FORESTS, requests)
    def law(providers: list[ResourceProvider], several: list[CandidatesRequest]) -> None:
        local = PlacementOfTrees(placement.plant(providers))
        for request in several:
            ours, theirs = local.candidates(request), live.candidates(request)
            if request.limit is not None:
                assert ours.requests == theirs.requests
                continue
            assert set(ours.roots) == set(theirs.roots)
            for uuid, root in ours.roots.items():
                assert root.traits == theirs.roots[uuid].traits
                assert root.supplies == theirs.roots[uuid].supplies

    law()
