"""The same requests accepted and read as by a real Placement, over generated query strings.

Where the two differ by design, a test of its own shows both answers.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import placements
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.errors import BadRequest
from steelyard.traits import CandidatesRequest, ProvidersRequest, RequestGroup, TraitQuery

PROVIDERS, CANDIDATES = ProvidersRequest.path, CandidatesRequest.path
VERSIONS = [
    "1.0",
    "1.3",
    "1.4",
    "1.9",
    "1.10",
    "1.14",
    "1.16",
    "1.17",
    "1.18",
    "1.21",
    "1.22",
    "1.23",
    "1.24",
    "1.25",
    "1.30",
    "1.31",
    "1.32",
    "1.33",
    "1.34",
    "1.35",
    "1.36",
    "1.37",
    "1.38",
    "1.39",
]
UUIDS = ["5e08ea53-c4c6-448e-9334-ac4953de3cfa", "42896e0d-205d-4fe3-bd1e-100924931787"]


@pytest.fixture(scope="module")
def placement() -> Iterator[Any]:
    with placements.placement() as client:
        yield client


traits = st.sampled_from(placements.TRAITS)
spaces = st.sampled_from(["", "", "", " ", "\t"])
# Not malformed by more than one "!": a named difference.
phrases = st.one_of(
    st.builds("{}{}{}".format, spaces, traits, spaces),
    st.builds("{}!{}{}".format, spaces, traits, spaces),
    st.builds("{}!{}{}".format, spaces, traits, spaces),
)
scraps = st.sampled_from(["", "!", " ", "! CUSTOM_A", "custom_a", "in:", "CUSTOM_A CUSTOM_B", "é"])
required = st.one_of(
    st.lists(phrases, min_size=1, max_size=3).map(",".join),
    st.lists(traits, min_size=1, max_size=3).map(lambda found: "in:" + ",".join(found)),
    st.lists(traits, min_size=1, max_size=3).map(lambda found: "in: " + " , ".join(found)),
    st.lists(st.one_of(phrases, scraps), min_size=1, max_size=3).map(",".join),
    st.lists(st.one_of(phrases, scraps), max_size=2).map(lambda found: "in:" + ",".join(found)),
    scraps,
)
amounts = st.sampled_from(["1", "1", "1", "2", " 4", "0", "-1", "x", "", "1:1", "1.5", "٤"])
resources = st.one_of(
    st.just("VCPU:1"),
    st.just("VCPU:1,MEMORY_MB:512"),
    st.lists(
        st.builds("{}:{}".format, st.sampled_from(["VCPU", "DISK_GB", "vcpu", ""]), amounts),
        max_size=2,
    ).map(",".join),
    st.sampled_from(["", "VCPU", "VCPU:1,", " ", ":"]),
)
uuids = st.sampled_from(
    [*UUIDS, UUIDS[0].upper(), UUIDS[0].replace("-", ""), "x", "", UUIDS[0][1:]]
)
some_uuids = st.lists(uuids, max_size=2).map(",".join)
member_of = st.one_of(
    st.sampled_from(UUIDS),
    st.builds("{}{}".format, st.sampled_from(["", "!", "in:", "!in:", "in:!", " "]), some_uuids),
)
in_tree = st.one_of(st.sampled_from(UUIDS), uuids, st.sampled_from([f" {UUIDS[0]} "]))
VALUES = {
    "resources": resources,
    "required": required,
    "member_of": member_of,
    "in_tree": in_tree,
}


@st.composite
def query_strings(draw: st.DrawFn, suffixes: list[str]) -> str:
    found: list[tuple[str, str]] = []
    for suffix in draw(st.lists(st.sampled_from(suffixes), min_size=1, max_size=3, unique=True)):
        if draw(st.integers(0, 9)):
            found.append((f"resources{suffix}", draw(resources)))
        for part in draw(
            st.lists(st.sampled_from(["required", "required", "member_of", "in_tree"]))
        ):
            if part == "in_tree" and any(name == f"in_tree{suffix}" for name, _ in found):
                continue
            found.append((f"{part}{suffix}", draw(VALUES[part])))
    if len(suffixes) > 1:
        found += draw(of_the_whole(suffixes))
    elif draw(st.integers(0, 9)) == 0:
        odd = st.sampled_from([("name", "x"), ("uuid", UUIDS[0]), ("uuid", "x"), ("limit", "1")])
        found.append(draw(odd))
    return urlencode(draw(st.permutations(found)))


@st.composite
def of_the_whole(draw: st.DrawFn, suffixes: list[str]) -> list[tuple[str, str]]:
    """Parameters of GET /allocation_candidates that are of no group."""
    found = []
    for name, values in (
        ("group_policy", st.sampled_from(["none", "isolate", "none", "both", ""])),
        ("limit", st.sampled_from(["1", "10", "0", "-1", "x", "", "01"])),
        ("root_required", required),
    ):
        if draw(st.integers(0, 2)) == 0 or (name == "group_policy" and draw(st.booleans())):
            found.append((name, draw(values)))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        names = draw(st.lists(st.sampled_from([*suffixes, "_Z"]), min_size=1, max_size=3))
        found.append(("same_subtree", ",".join(names)))
    if draw(st.integers(0, 19)) == 0:
        found.append(draw(st.sampled_from([("requird", "x"), ("resources/", "VCPU:1"), ("x", "")])))
    return found


def ours(group: RequestGroup) -> placements.Group:
    return (
        dict(group.resources),
        frozenset(frozenset([trait]) for trait in group.traits.required) | group.traits.any_of,
        group.traits.forbidden,
        group.member_of,
        group.not_member_of,
        group.in_tree,
    )


def read(kind: Any, query: str, version: str) -> tuple[Any, str]:
    """The request, or why it is refused."""
    try:
        return kind.parse(query, version), ""
    except BadRequest as error:
        return None, str(error)


def malformed_name(why: str) -> bool:
    return "is no resource class" in why or "a trait name is" in why


@settings(max_examples=5000, suppress_health_check=list(HealthCheck))
@given(query=query_strings([""]), version=st.sampled_from(VERSIONS))
def test_requests_for_providers(placement: Any, query: str, version: str) -> None:
    answer = placement.get(f"{PROVIDERS}?{query}", headers=placements.at(version))
    request, why = read(ProvidersRequest, query, version)
    if "both required and forbidden" in why or "each of them is forbidden" in why:
        return  # a named difference, shown below
    if malformed_name(why) and answer.status_code == 200:
        assert answer.json()["resource_providers"] == []
        return  # Placement has found nothing before it came to look the name up
    assert answer.status_code == (400 if why else 200), answer.text or why
    if why:
        return
    assert ours(request.group) == placements.group_of_providers(query, version)
    request.require(version)
    assert ProvidersRequest.parse(request.query_string(), version) == request


@settings(max_examples=5000, suppress_health_check=list(HealthCheck))
@given(query=query_strings(["", "", "1", "2", "_NET", "a-b"]), version=st.sampled_from(VERSIONS))
def test_requests_for_candidates(placement: Any, query: str, version: str) -> None:
    answer = placement.get(f"{CANDIDATES}?{query}", headers=placements.at(version))
    request, why = read(CandidatesRequest, query, version)
    if malformed_name(why) and answer.status_code == 200:
        assert not answer.json()["allocation_requests"]
        return  # as above
    # Before 1.10 there are no allocation candidates at all.
    assert answer.status_code in ((400, 404) if why else (200,)), answer.text or why
    if why:
        return
    groups, whole = placements.groups_of_candidates(query, version)
    assert {suffix: ours(group) for suffix, group in request.groups.items()} == groups
    assert request.group_policy == whole.group_policy
    assert (request.limit or []) == whole.limit
    assert request.root_required == TraitQuery(
        frozenset(whole.anchor_required_traits or ()),
        frozenset(whole.anchor_forbidden_traits or ()),
    )
    assert request.same_subtree == frozenset(map(frozenset, whole.same_subtrees))
    request.require(version)
    assert CandidatesRequest.parse(request.query_string(), version) == request


def status(placement: Any, path: str, query: str, version: str = "1.39") -> int:
    found: int = placement.get(f"{path}?{query}", headers=placements.at(version)).status_code
    return found


def accepts(kind: Any, query: str, version: str = "1.39") -> bool:
    return not read(kind, query, version)[1]


def test_more_than_one_exclamation_mark_is_malformed_for_us(placement: Any) -> None:
    assert status(placement, PROVIDERS, "required=!!CUSTOM_A") == 200
    assert not accepts(ProvidersRequest, "required=!!CUSTOM_A")


@pytest.mark.parametrize(
    "query",
    ["required=CUSTOM_A,!CUSTOM_A", "required=in:CUSTOM_A,CUSTOM_B&required=!CUSTOM_A,!CUSTOM_B"],
)
def test_contradictions_are_refused_for_providers_too(placement: Any, query: str) -> None:
    assert status(placement, PROVIDERS, query) == 200
    assert not accepts(ProvidersRequest, query)
    assert status(placement, CANDIDATES, f"{query}&resources=VCPU:1") == 400
    assert not accepts(CandidatesRequest, f"{query}&resources=VCPU:1")


@pytest.mark.parametrize("query", ["limit=1&limit=2", "group_policy=none&group_policy=isolate"])
def test_what_can_be_said_once_is_refused_twice(placement: Any, query: str) -> None:
    assert status(placement, CANDIDATES, f"resources=VCPU:1&{query}") == 200
    assert not accepts(CandidatesRequest, f"resources=VCPU:1&{query}")


def test_malformed_names_are_refused_even_where_nothing_is_found_anyway(placement: Any) -> None:
    query = f"resources=vcpu:1&member_of={UUIDS[0]}"
    assert status(placement, PROVIDERS, "resources=vcpu:1") == 400
    assert status(placement, PROVIDERS, query) == 200
    assert not accepts(ProvidersRequest, query)


def test_a_trait_that_does_not_exist_is_unknown_to_placement_alone(placement: Any) -> None:
    assert status(placement, PROVIDERS, "required=CUSTOM_NOWHERE") == 400
    assert accepts(ProvidersRequest, "required=CUSTOM_NOWHERE")
