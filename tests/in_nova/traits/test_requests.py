"""The same requests accepted and read as by a real Placement, over generated query strings.

Where the two differ by design, a test of its own shows both answers.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from steelyard.errors import BadRequest, UnsupportedMicroversion
from steelyard.traits import CandidatesRequest, ProvidersRequest, RequestGroup, TraitQuery
from support.examples import examples
from support.nova import placements

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
AGGREGATES = ["5e08ea53-c4c6-448e-9334-ac4953de3cfa", "42896e0d-205d-4fe3-bd1e-100924931787"]
TREES = ["3d4d2a5e-7b1a-4c8e-9a55-0f7a3b6c9d10", "b1f6d2c4-0e3f-4a7b-8c6d-5e4f3a2b1c0d"]


@pytest.fixture(scope="module")
def placement() -> Iterator[Any]:
    """Yield a client of a Placement with two trees of providers.

    One has all resources, some traits and an aggregate, the other has other traits.
    """
    with placements.placement() as client:
        for name, parent, traits in (
            (TREES[0], None, ["CUSTOM_A", "CUSTOM_B"]),
            ("00000000-0000-4000-8000-000000000001", TREES[0], ["CUSTOM_C"]),
            (TREES[1], None, ["CUSTOM_D"]),
        ):
            made = {"name": name, "uuid": name, "parent_provider_uuid": parent}
            url = f"/resource_providers/{name}"
            latest = placements.at("1.39")
            assert client.post("/resource_providers", json=made, headers=latest).status_code == 200
            inventories = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 4096}}
            contents: list[tuple[str, Any]] = [
                ("inventories", inventories),
                ("traits", traits),
                ("aggregates", AGGREGATES[:1]),
            ]
            for generation, (what, value) in enumerate(contents):
                body = {what: value, "resource_provider_generation": generation}
                assert client.put(f"{url}/{what}", json=body, headers=latest).status_code == 200
        yield client


traits = st.sampled_from(placements.TRAITS)
spaces = st.sampled_from(["", "", "", " ", "\t"])


@st.composite
def required(draw: st.DrawFn, *, any_of: bool = True) -> list[str]:
    """Draw well-formed ``required`` parameters that do not contradict each other."""
    names = draw(st.permutations(placements.TRAITS))
    cut = draw(st.integers(0, len(names)))
    wanted, unwanted = names[:cut], names[cut:]
    phrases = draw(st.lists(st.sampled_from(wanted), max_size=2)) if wanted else []
    if unwanted:
        phrases += ["!" + name for name in draw(st.lists(st.sampled_from(unwanted), max_size=2))]
    phrases = [draw(spaces) + phrase + draw(spaces) for phrase in draw(st.permutations(phrases))]
    params = [",".join(phrases)] if phrases else []
    if any_of and wanted:
        groups = draw(
            st.lists(st.lists(st.sampled_from(wanted), min_size=1, max_size=3), max_size=2)
        )
        params += ["in:" + draw(spaces) + ",".join(group) for group in groups]
    return params


member_of = st.lists(
    st.one_of(
        st.sampled_from(AGGREGATES),
        st.sampled_from([f"in:{','.join(AGGREGATES)}", f"!{AGGREGATES[1]}", f"in:{AGGREGATES[0]}"]),
        st.just(f"!in:{','.join(AGGREGATES)}"),
    ),
    max_size=2,
)
resources = st.sampled_from(
    ["VCPU:1", "VCPU:2,MEMORY_MB:512", "MEMORY_MB:1", "VCPU:0001", "VCPU: 1"]
)

Params = list[tuple[str, str]]


@st.composite
def group(draw: st.DrawFn, suffix: str, *, resourceless: bool = False) -> Params:
    found = [] if resourceless else [(f"resources{suffix}", draw(resources))]
    found += [(f"required{suffix}", param) for param in draw(required())]
    if draw(st.booleans()):
        found += [(f"member_of{suffix}", param) for param in draw(member_of)]
    if draw(st.integers(0, 3)) == 0:
        found.append((f"in_tree{suffix}", draw(st.sampled_from(TREES))))
    return found or [(f"resources{suffix}", "VCPU:1")]


@st.composite
def of_providers(draw: st.DrawFn) -> Params:
    """Draw the parameters of a well-formed request for providers."""
    found = draw(group("", resourceless=draw(st.booleans())))
    if draw(st.integers(0, 9)) == 0:
        found.append(draw(st.sampled_from([("name", "x"), ("uuid", TREES[0])])))
    return draw(st.permutations(found))


@st.composite
def of_candidates(draw: st.DrawFn) -> Params:
    """Draw the parameters of a well-formed request for candidates."""
    suffixes = draw(
        st.lists(
            st.sampled_from(["", "1", "2", "_NET", "a-b"]), min_size=1, max_size=3, unique=True
        )
    )
    named = [suffix for suffix in suffixes if suffix]
    bare = draw(st.sampled_from(named)) if len(named) > 1 and draw(st.booleans()) else None
    found = [
        param for suffix in suffixes for param in draw(group(suffix, resourceless=suffix == bare))
    ]
    if len(named) > 1 and (bare or draw(st.booleans())):
        found.append(("same_subtree", ",".join(named)))
    if len(named) > 1 or draw(st.integers(0, 3)) == 0:
        found.append(("group_policy", draw(st.sampled_from(["none", "isolate"]))))
    if draw(st.integers(0, 3)) == 0:
        found.append(("limit", draw(st.sampled_from(["1", "10"]))))
    if draw(st.integers(0, 2)) == 0:
        found += [("root_required", param) for param in draw(required(any_of=False))]
    return draw(st.permutations(found))


scraps = st.sampled_from(
    [
        "",
        "!",
        " ",
        "! CUSTOM_A",
        "custom_a",
        "in:",
        "in:!CUSTOM_A",
        " in:CUSTOM_A",
        "é",
        "x",
        ",",
        "CUSTOM_A CUSTOM_B",
        "in:CUSTOM_A,",
        "VCPU",
        "VCPU:0",
        "VCPU:-1",
        "VCPU:x",
        "VCPU:1:1",
        "0",
        "-1",
        "vcpu:1",
        ":",
        "VCPU:1,",
        "\u0664",
        "01",
        "both",
        f"{AGGREGATES[0]},{AGGREGATES[1]}",
        "!in:x",
        AGGREGATES[0].upper(),
        AGGREGATES[0].replace("-", ""),
        f" {TREES[0]} ",
        TREES[0][1:],
        "1,",
        "1,9",
    ]
)
names = st.sampled_from(
    [
        "resources",
        "required",
        "member_of",
        "in_tree",
        "resources1",
        "required_NET",
        "limit",
        "group_policy",
        "root_required",
        "same_subtree",
        "requird",
        "resources/",
        "x",
        "name",
        "uuid",
    ]
)
# Parameters that may be repeated. Placement reads only one value of any other parameter.
REPEATABLE = ("required", "member_of", "same_subtree")


@st.composite
def mutated(draw: st.DrawFn, params: Params) -> Params:
    """Return the parameters with one change, which may make them invalid."""
    found = list(params)
    how = draw(st.sampled_from(["value", "value", "drop", "add", "rename"]))
    at = draw(st.integers(0, len(found) - 1))
    name, value = found[at]
    if how == "value":
        found[at] = (name, draw(scraps))
    elif how == "drop":
        del found[at]
    elif how == "rename":
        found[at] = (draw(names), value)
    else:
        found.append((draw(names), draw(scraps)))
    keys = [key for key, _ in found]
    assume(all(keys.count(key) == 1 or key.startswith(REPEATABLE) for key in keys))
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


COMMON = settings(suppress_health_check=list(HealthCheck))


def check(placement: Any, kind: Any, query: str, version: str) -> Any:
    """Check that both read the query alike; return the request, or None if both reject it."""
    answer = placement.get(f"{kind.path}?{query}", headers=placements.at(version))
    request, why = read(kind, query, version)
    if kind is ProvidersRequest and contradictory(why):
        # See test_difference_contradictions_are_rejected_for_providers.
        assert answer.status_code in (200, 400)
    elif has_malformed_names(query) and why and answer.status_code == 200:
        pass  # Placement found no provider before it read the name
    elif why:
        # Before 1.10, Placement has no allocation candidates.
        assert answer.status_code in (400, 404), why
    elif "No such" in answer.text:
        assert answer.status_code == 400  # a valid name that does not exist
    else:
        assert answer.status_code == 200, answer.text
        check_meaning(kind, request, query, version)
    return request


def contradictory(why: str) -> bool:
    return "both required and forbidden" in why or "all of them are forbidden" in why


def has_malformed_names(query: str) -> bool:
    """Return whether a trait or a resource class has a malformed name."""
    given = parse_qsl(query, keep_blank_values=True)
    tokens = [
        token.strip().removeprefix("!")
        for name, value in given
        if name.startswith("required")
        for token in value.removeprefix("in:").split(",")
    ]
    tokens += [
        part.partition(":")[0]
        for name, value in given
        if name.startswith("resources")
        for part in value.split(",")
    ]
    return any(not re.fullmatch("[A-Z0-9_]{1,255}", token) for token in tokens)


def check_meaning(kind: Any, request: Any, query: str, version: str) -> None:
    request.require(version)
    assert kind.parse(request.query_string(), version) == request
    if kind is ProvidersRequest:
        assert ours(request.group) == placements.group_of_providers(query, version)
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


def below(version: str) -> str:
    return VERSIONS[max(VERSIONS.index(version) - 1, 0)]


KINDS: dict[Any, st.SearchStrategy[Params]] = {
    ProvidersRequest: of_providers(),
    CandidatesRequest: of_candidates(),
}
# Queries with each part, and queries with each fault.
ACCEPTED = [
    (PROVIDERS, "required=CUSTOM_A,CUSTOM_B"),
    (PROVIDERS, "required=!CUSTOM_A&resources=VCPU:1"),
    (PROVIDERS, "required=in:CUSTOM_A,CUSTOM_D&required=CUSTOM_B"),
    (PROVIDERS, f"member_of=in:{','.join(AGGREGATES)}&member_of=!{AGGREGATES[1]}"),
    (PROVIDERS, f"in_tree={TREES[0]}"),
    (PROVIDERS, f"uuid={TREES[0]}&name=x"),
    (CANDIDATES, "resources=VCPU:2,MEMORY_MB:512&required=!CUSTOM_D"),
    (CANDIDATES, "resources=VCPU:1&required=in:CUSTOM_A,CUSTOM_B"),
    (CANDIDATES, f"resources1=VCPU:1&in_tree1={TREES[0]}"),
    (CANDIDATES, "resources=VCPU:1&limit=10"),
    (CANDIDATES, "resources=VCPU:1&root_required=CUSTOM_A,!CUSTOM_D"),
    (CANDIDATES, "resources1=VCPU:1&required_NET=CUSTOM_C&same_subtree=1,_NET&group_policy=none"),
    (CANDIDATES, "resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate"),
]
REFUSED = [
    (PROVIDERS, "required="),
    (PROVIDERS, "required=custom_a"),
    (PROVIDERS, "resources=VCPU:0"),
    (PROVIDERS, "member_of=x"),
    (PROVIDERS, "requird=CUSTOM_A"),
    (CANDIDATES, ""),
    (CANDIDATES, "required=CUSTOM_A"),
    (CANDIDATES, "resources=VCPU:1&required=CUSTOM_A,!CUSTOM_A"),
    (CANDIDATES, "resources=VCPU"),
    (CANDIDATES, "resources=VCPU:1&limit=0"),
    (CANDIDATES, "resources=VCPU:1&group_policy=both"),
    (CANDIDATES, "resources1=VCPU:1&resources2=VCPU:1"),
    (CANDIDATES, "resources=VCPU:1&same_subtree=1,9"),
    (CANDIDATES, f"resources=VCPU:1&in_tree={TREES[0][1:]}"),
]


def kind_of(path: str) -> Any:
    return next(kind for kind in KINDS if kind.path == path)


def check_accepted(placement: Any, kind: Any, query: str, version: str) -> None:
    request = check(placement, kind, query, "1.39")
    assert request is not None
    # The lowest that supports the request, the one below it, and another one.
    params = parse_qsl(query, keep_blank_values=True)
    least = ProvidersRequest.of(params) if kind is ProvidersRequest else request
    assert check(placement, kind, request.query_string(), least.microversion) == request
    check(placement, kind, query, below(least.microversion))
    check(placement, kind, query, version)


@pytest.mark.parametrize(("path", "query"), ACCEPTED)
def test_query_with_each_part_is_accepted_by_both(placement: Any, path: str, query: str) -> None:
    check_accepted(placement, kind_of(path), query, "1.0")


@pytest.mark.parametrize(("path", "query"), REFUSED)
def test_query_with_each_fault_is_rejected_by_both(placement: Any, path: str, query: str) -> None:
    assert check(placement, kind_of(path), query, "1.39") is None
    assert status(placement, path, query) == 400


@pytest.mark.parametrize("kind", KINDS)
def test_well_formed_requests_are_read_alike(placement: Any, kind: Any) -> None:
    @settings(COMMON, max_examples=examples(80))
    @given(KINDS[kind], st.sampled_from(VERSIONS))
    def law(params: Params, version: str) -> None:
        check_accepted(placement, kind, urlencode(params), version)

    law()


@pytest.mark.parametrize("kind", KINDS)
def test_malformed_requests_are_read_alike(placement: Any, kind: Any) -> None:
    @settings(COMMON, max_examples=examples(150))
    @given(KINDS[kind].flatmap(mutated), st.sampled_from([*VERSIONS, *["1.39"] * 8]))
    def law(params: Params, version: str) -> None:
        check(placement, kind, urlencode(params), version)

    law()


def read(kind: Any, query: str, version: str) -> tuple[Any, str]:
    """Return the request and an empty text, or None and the error."""
    try:
        return kind.parse(query, version), ""
    except BadRequest as error:
        return None, str(error)


def status(placement: Any, path: str, query: str, version: str = "1.39") -> int:
    found: int = placement.get(f"{path}?{query}", headers=placements.at(version)).status_code
    return found


def accepts(kind: Any, query: str, version: str = "1.39") -> bool:
    return not read(kind, query, version)[1]


@pytest.mark.parametrize(
    "header",
    [
        "placement 1.22",
        "placement latest",
        "Placement 1.39",
        "compute 2.1, placement 1.22",
        "placement 1.22, placement 1.21",
        "compute 2.1",
        "placement 1.40",
        "placement 0.1",
        "placement 2.0",
        "placement x",
        "placement 1",
        "placement 1.x",
    ],
)
def test_microversion_of_the_header_is_read_alike(placement: Any, header: str) -> None:
    query = "resources=VCPU:1&required=!CUSTOM_A"
    answer = placement.get(f"{PROVIDERS}?{query}", headers={"OpenStack-API-Version": header})
    if answer.status_code == 200:
        ProvidersRequest.parse(query, header)
        return
    with pytest.raises(BadRequest) as caught:
        ProvidersRequest.parse(query, header)
    assert caught.value.status == answer.status_code
    limits = answer.json()["errors"][0]
    if "min_version" in limits:
        assert isinstance(caught.value, UnsupportedMicroversion)
        assert caught.value.oldest == limits["min_version"]
        assert caught.value.newest == limits["max_version"]


def test_difference_several_exclamation_marks_are_rejected(placement: Any) -> None:
    assert status(placement, PROVIDERS, "required=!!CUSTOM_A") == 200
    assert not accepts(ProvidersRequest, "required=!!CUSTOM_A")


@pytest.mark.parametrize(
    "query",
    ["required=CUSTOM_A,!CUSTOM_A", "required=in:CUSTOM_A,CUSTOM_B&required=!CUSTOM_A,!CUSTOM_B"],
)
def test_difference_contradictions_are_rejected_for_providers(placement: Any, query: str) -> None:
    assert status(placement, PROVIDERS, query) == 200
    assert not accepts(ProvidersRequest, query)
    assert status(placement, CANDIDATES, f"{query}&resources=VCPU:1") == 400
    assert not accepts(CandidatesRequest, f"{query}&resources=VCPU:1")


@pytest.mark.parametrize("query", ["limit=1&limit=2", "group_policy=none&group_policy=isolate"])
def test_difference_repeated_parameters_are_rejected(placement: Any, query: str) -> None:
    assert status(placement, CANDIDATES, f"resources=VCPU:1&{query}") == 200
    assert not accepts(CandidatesRequest, f"resources=VCPU:1&{query}")


@pytest.mark.parametrize(
    "query",
    [
        "resources=VCPU:2147483648",
        "resources=VCPU:1&limit=2147483648",
        "resources=VCPU:1&limit=1%0A",
        "resources=VCPU:1&root_required=!!CUSTOM_A",
    ],
)
def test_difference_values_out_of_range_are_rejected(placement: Any, query: str) -> None:
    assert status(placement, CANDIDATES, query) == 200
    assert not accepts(CandidatesRequest, query)


def test_difference_malformed_names_are_rejected_without_results(placement: Any) -> None:
    query = f"resources=vcpu:1&member_of={AGGREGATES[1]}"
    assert status(placement, PROVIDERS, "resources=vcpu:1") == 400
    assert status(placement, PROVIDERS, query) == 200
    assert not accepts(ProvidersRequest, query)


def test_difference_unknown_traits_are_accepted(placement: Any) -> None:
    assert status(placement, PROVIDERS, "required=CUSTOM_NOWHERE") == 400
    assert accepts(ProvidersRequest, "required=CUSTOM_NOWHERE")
