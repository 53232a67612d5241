"""Local answers to requests: equal to those of a real Placement, over generated trees.

Where the two differ by design, a test of its own shows both answers.
"""

import dataclasses
import json
import pathlib
import runpy
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
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
from support.nova import placements
from support.repository import EXAMPLES
from support.traits import forests

LATEST = "1.39"
COMMON = settings(suppress_health_check=list(HealthCheck))


class Planted(NamedTuple):
    """A Placement, and its database."""

    client: Any
    engine: sa.Engine
    tables: Any

    def plant(self, providers: list[ResourceProvider]) -> ProviderTrees[ResourceProvider]:
        """Replace all providers in the database by these."""
        tables = self.tables
        known = {
            kind: dict(self.rows(sa.select(tables[kind].c.name, tables[kind].c.id)))
            for kind in ("traits", "resource_classes")
        }
        trees = ProviderTrees(providers)
        ids = {provider.uuid: number for number, provider in enumerate(providers, 1)}
        aggregates = {uuid: number for number, uuid in enumerate(forests.AGGREGATES, 1)}
        rows: dict[str, list[dict[str, Any]]] = {
            "placement_aggregates": [
                {"id": number, "uuid": uuid} for uuid, number in aggregates.items()
            ],
            "resource_providers": [],
            "inventories": [],
            "allocations": [],
            "resource_provider_traits": [],
            "resource_provider_aggregates": [],
        }
        for provider in providers:
            root = trees.root(provider)
            its = {"resource_provider_id": ids[provider.uuid]}
            rows["resource_providers"].append(
                {
                    "id": ids[provider.uuid],
                    "uuid": provider.uuid,
                    "name": provider.name,
                    "generation": 0,
                    "root_provider_id": ids[root.uuid],
                    "parent_provider_id": provider.parent and ids[provider.parent],
                }
            )
            rows["resource_provider_traits"] += [
                {**its, "trait_id": known["traits"][name]} for name in provider.traits
            ]
            rows["resource_provider_aggregates"] += [
                {**its, "aggregate_id": aggregates[uuid]} for uuid in provider.aggregates
            ]
            for name, inventory in provider.inventories.items():
                fields = {**its, "resource_class_id": known["resource_classes"][name]}
                amounts = dataclasses.asdict(inventory)
                used = amounts.pop("used")
                rows["inventories"].append({**fields, **amounts})
                rows["allocations"].append({**fields, "used": used, "consumer_id": "c"})
        with self.engine.begin() as connection:
            for name in reversed(rows):
                connection.execute(sa.delete(tables[name]))
            for name, some in rows.items():
                if some:
                    connection.execute(sa.insert(tables[name]), some)
        return trees

    def rows(self, statement: Any) -> Any:
        with self.engine.connect() as connection:
            return connection.execute(statement).tuples().all()

    def ask(self, request: Any, version: str = LATEST) -> Any:
        answer = self.client.get(
            f"{request.path}?{request.query_string()}", headers=placements.at(version)
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def candidates(self, request: CandidatesRequest) -> set[Candidate]:
        return set(map(Candidate.from_json, self.ask(request)["allocation_requests"]))

    def allocations(self, request: CandidatesRequest, version: str) -> set[Any]:
        """Return the allocations of each candidate, which older versions answer in another form."""
        found = set()
        for each in self.ask(request, version)["allocation_requests"]:
            if isinstance(each["allocations"], list):
                pairs = [
                    (part["resource_provider"]["uuid"], part["resources"])
                    for part in each["allocations"]
                ]
            else:
                pairs = [(uuid, part["resources"]) for uuid, part in each["allocations"].items()]
            found.add(frozenset((uuid, frozenset(part.items())) for uuid, part in pairs))
        return found


@pytest.fixture(scope="module")
def placement(tmp_path_factory: Any) -> Iterator[Planted]:
    url = f"sqlite:///{tmp_path_factory.mktemp('placement')}/placement.db"
    with placements.placement(url) as client:
        engine = sa.create_engine(url)
        schema = sa.MetaData()
        schema.reflect(engine)
        yield Planted(client, engine, schema.tables)
        engine.dispose()


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
