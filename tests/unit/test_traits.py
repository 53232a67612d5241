from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.errors import (
    BadRequest,
    InvalidQuery,
    InvalidTrait,
    MicroversionTooLow,
)
from steelyard.traits import CandidatesRequest, ProvidersRequest, RequestGroup, TraitQuery

UUID = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
OTHER = "42896e0d-205d-4fe3-bd1e-100924931787"


@pytest.mark.parametrize(
    ("params", "required", "forbidden", "any_of"),
    [
        ((), "", "", []),
        (("A,!B",), "A", "B", []),
        ((" A , !B ,A",), "A", "B", []),
        (("in:A,B", "C"), "C", "", ["AB"]),
        (("in: A , B ",), "", "", ["AB"]),
        (("in:A",), "A", "", []),
        (("A&!B&in:C,D",), "A", "B", ["CD"]),
        (("*",), "", "", []),
        (("A,B", "in:A,C"), "AB", "", ["AC"]),
    ],
)
def test_texts_and_what_they_mean(params: Any, required: Any, forbidden: Any, any_of: Any) -> None:
    query = TraitQuery.parse(*params)
    assert query.required == frozenset(required)
    assert query.forbidden == frozenset(forbidden)
    assert query.any_of == frozenset(map(frozenset, any_of))
    assert bool(query) is bool(required or forbidden or any_of)


@pytest.mark.parametrize(
    ("text", "why", "marked"),
    [
        ("", "there is a trait missing", ""),
        ("A,,B", "there is a trait missing", ""),
        ("!", "there is a trait missing", ""),
        ("A,b", "a trait name is 1 to 255 characters of A-Z, 0-9 and _", "b"),
        ("! A", "a trait name is", " A"),
        ("A B", "a trait name is", "A B"),
        ("!!A", "one '!' forbids a trait, more are malformed", "!A"),
        (" in:A", "a trait name is", "in:A"),
        ("in:", "there is a trait missing", ""),
        ("in:A,!B", "after 'in:' no trait can be forbidden", "!B"),
        ("C, !A,A", "A is both required and forbidden; remove one of the two", "!A"),
        ("A" * 256, "a trait name is", "A" * 256),
        ("A\n", "", None),
    ],
)
def test_a_malformed_text_is_marked(text: str, why: str, marked: str | None) -> None:
    if marked is None:  # white space around is stripped, whatever it is
        assert TraitQuery.parse(text) == TraitQuery.parse("A")
        return
    with pytest.raises(InvalidTrait) as caught:
        TraitQuery.parse(text)
    said, shown, marker = str(caught.value).splitlines()
    assert why in said
    assert shown == f"  {text}"
    place = slice(marker.index("^"), len(marker))
    assert shown[place] == marked or marked == ""
    assert caught.value.status == 400


def test_what_cannot_be_printed_does_not_move_the_marker() -> None:
    with pytest.raises(InvalidTrait) as caught:
        TraitQuery.parse("A\x07,b")
    assert str(caught.value).splitlines()[1:] == ["  A\\x07,b", "  ^^^^^"]


@pytest.mark.parametrize(
    ("params", "why"),
    [
        (("A", "!A"), "A is both required and forbidden; remove one of the two\n  A&!A"),
        (("in:A,B", "!A,!B"), "one of A, B is required, and each of them is forbidden"),
    ],
)
def test_a_contradiction_shows_all_of_the_text(params: Any, why: str) -> None:
    with pytest.raises(InvalidTrait) as caught:
        TraitQuery.parse(*params)
    assert why in str(caught.value)
    assert "&".join(params) in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"required": "A"},
        {"required": {"a"}},
        {"forbidden": {5}},
        {"any_of": [[]]},
        {"required": [["A"]]},
        {"required": {"A"}, "forbidden": {"A"}},
    ],
)
def test_malformed_values_are_refused_too(fields: Any) -> None:
    with pytest.raises(InvalidTrait):
        TraitQuery(**fields)


def test_queries_are_built_and_hashed() -> None:
    built = TraitQuery().requiring("B", "A").forbidding("C").requiring_any("D", "E")
    assert built == TraitQuery.parse("A,B,!C", "in:E,D")
    assert {built: 1}[TraitQuery.parse(str(built))] == 1
    assert str(built) == "A,B,!C&in:D,E"
    assert built.params() == ["A,B,!C", "in:D,E"]
    assert str(TraitQuery()) == "*"


def test_what_is_unmet_is_said() -> None:
    query = TraitQuery.parse("A,!B&in:C,D")
    assert query.satisfied_by(["A", "C", "X"])
    assert not query.satisfied_by([])
    assert list(query.unmet(["A", "C"])) == []
    assert list(query.unmet(["B"])) == [
        "trait A is required and not there",
        "trait B is forbidden and there",
        "one of the traits C, D is required and none is there",
    ]


@pytest.mark.parametrize(
    ("text", "shortest"),
    [
        ("A&in:A,B", "A"),
        ("!A&in:A,B", "B,!A"),
        ("in:A,B&in:A,B,C", "in:A,B"),
        ("!A&in:A,B&in:B,C", "B,!A"),
        ("!A&in:A,B,C", "!A&in:B,C"),
        ("*", "*"),
    ],
)
def test_simplifying(text: str, shortest: str) -> None:
    assert str(TraitQuery.parse(text).simplified()) == shortest


@pytest.mark.parametrize(
    ("one", "other", "implies"),
    [
        ("A,B", "A", True),
        ("A", "A,B", False),
        ("A", "in:A,B", True),
        ("in:A,B", "in:A,B,C", True),
        ("in:A,B,C", "in:A,B", False),
        ("!A&in:A,B", "B", True),
        ("!A", "!A", True),
        ("A", "!B", False),
        ("A", "*", True),
    ],
)
def test_implying(one: str, other: str, implies: bool) -> None:
    assert TraitQuery.parse(one).implies(TraitQuery.parse(other)) is implies


def test_names_can_be_held_against_the_standard_ones() -> None:
    TraitQuery.parse("HW_CPU_X86_AVX2,!CUSTOM_ANYTHING").require_known()
    with pytest.raises(InvalidTrait, match=r"HW_CPU_X86_AVX22 is no standard trait.*AVX2'"):
        TraitQuery.parse("!HW_CPU_X86_AVX22").require_known()


@pytest.mark.parametrize(
    ("query", "microversion"),
    [
        ("", "1.0"),
        ("name=x", "1.0"),
        (f"member_of={UUID}", "1.3"),
        ("resources=VCPU:1", "1.4"),
        (f"in_tree={UUID}", "1.14"),
        ("required=A", "1.18"),
        ("required=!A", "1.22"),
        (f"member_of={UUID}&member_of=in:{UUID},{OTHER}", "1.24"),
        (f"member_of=!{UUID}", "1.32"),
        ("required=in:A,B", "1.39"),
    ],
)
def test_providers_and_the_microversion_they_need(query: str, microversion: str) -> None:
    request = ProvidersRequest.parse(query)
    assert request.microversion == microversion
    assert ProvidersRequest.parse(request.query_string()) == request
    assert str(request).startswith("GET /resource_providers")
    request.require(microversion)
    major, minor = microversion.split(".")
    if minor != "0":
        with pytest.raises(MicroversionTooLow, match=f"needs {microversion}"):
            request.require(f"{major}.{int(minor) - 1}")


@pytest.mark.parametrize(
    ("query", "microversion"),
    [
        ("resources=VCPU:1", "1.10"),
        ("resources=VCPU:1&limit=5", "1.16"),
        ("resources=VCPU:1&required=A", "1.17"),
        (f"resources=VCPU:1&member_of={UUID}", "1.21"),
        ("resources=VCPU:1&required=!A", "1.22"),
        ("resources1=VCPU:1", "1.25"),
        (f"resources=VCPU:1&in_tree={UUID}", "1.31"),
        ("resources_NET=VCPU:1", "1.33"),
        ("resources=VCPU:1&root_required=A,!B", "1.35"),
        ("resources1=VCPU:1&required2=A&group_policy=none&same_subtree=1,2", "1.36"),
        ("resources=VCPU:1&required=in:A,B", "1.39"),
    ],
)
def test_candidates_and_the_microversion_they_need(query: str, microversion: str) -> None:
    request = CandidatesRequest.parse(query)
    assert request.microversion == microversion
    assert CandidatesRequest.parse(request.query_string(), microversion) == request
    major, minor = microversion.split(".")
    below = f"{major}.{int(minor) - 1}"
    with pytest.raises(MicroversionTooLow, match=f"with microversion {below} this cannot be asked"):
        request.require(below)


def test_a_query_string_is_canonical_and_can_be_read() -> None:
    request = CandidatesRequest.parse("required=!B%2CA&resources=VCPU:1,DISK_GB:20")
    assert request.query_string() == "required=A,!B&resources=DISK_GB:20,VCPU:1"


@pytest.mark.parametrize(
    ("kind", "query", "why"),
    [
        (ProvidersRequest, "limit=1", "limit is for allocation candidates, not for providers"),
        (ProvidersRequest, "requird=A", "did you mean 'required'?"),
        (ProvidersRequest, "uuid=x", "uuid: 'x' is no UUID"),
        (ProvidersRequest, "required=a", "required: a trait name is"),
        (ProvidersRequest, "required=%ff", "is not UTF-8"),
        (ProvidersRequest, "resources=VCPU", "'VCPU' is not understood"),
        (
            ProvidersRequest,
            "resources=VCPU:0",
            "the amount of VCPU is 0; it must be a whole number from 1 to",
        ),
        (ProvidersRequest, f"resources=VCPU:{'9' * 5000}", "is not understood"),
        (CandidatesRequest, f"resources=VCPU:1&limit={'9' * 5000}", "is no whole number from 1"),
        (ProvidersRequest, "resources=vcpu:1", "'vcpu' is no resource class"),
        (ProvidersRequest, f"member_of={UUID},{OTHER}", "several are named; write in: before"),
        (ProvidersRequest, "member_of=x", "member_of: 'x' is no UUID; write one such as"),
        (CandidatesRequest, "", "there are no resources"),
        (CandidatesRequest, "required=A", "there are no resources"),
        (CandidatesRequest, "resources1=VCPU:1&required=A", "required without resources: ask"),
        (CandidatesRequest, "resources=VCPU:1&required1=A", "or name '1' in same_subtree"),
        (CandidatesRequest, "resources1=VCPU:1&resources2=VCPU:1", "and no group_policy"),
        (CandidatesRequest, "resources=VCPU:1&group_policy=x", "must be 'none' or 'isolate'"),
        (CandidatesRequest, "resources=VCPU:1&limit=0", "limit: '0' is no whole number from 1"),
        (CandidatesRequest, "resources=VCPU:1&limit=1&limit=1", "limit is there more than once"),
        (
            CandidatesRequest,
            "resources=VCPU:1&root_required=in:A",
            "any-of groups are not possible",
        ),
        (CandidatesRequest, "resources=VCPU:1&same_subtree=,", "names a group without a suffix"),
        (CandidatesRequest, "resources=VCPU:1&same_subtree=1", "names the group '1', which there"),
        (CandidatesRequest, "resources=VCPU:1&x=1", "there is no parameter 'x'"),
        (CandidatesRequest, "resources/=VCPU:1", "'/' is no suffix"),
        (CandidatesRequest, "resources1=VCPU:1&required1=A,!A", "required1: A is both required"),
    ],
)
def test_malformed_requests(kind: Any, query: str, why: str) -> None:
    with pytest.raises(BadRequest) as caught:
        kind.parse(query)
    assert why in str(caught.value)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("query", "shown", "marked"),
    [
        ("resources=VCPU:1,DISK", "VCPU:1,DISK", "DISK"),
        ("resources=VCPU:1,vcpu:1", "VCPU:1,vcpu:1", "vcpu:1"),
        (f"resources=VCPU:1&member_of=in:{UUID},x", f"in:{UUID},x", "x"),
        (f"resources=VCPU:1&member_of=!{UUID},{OTHER}", f"!{UUID},{OTHER}", f"{UUID},{OTHER}"),
        ("resources=VCPU:1&in_tree=x", "x", "x"),
        ("resources=VCPU:1&limit=x", "x", "x"),
        ("resources=VCPU:1&group_policy=both", "both", "both"),
        ("resources=VCPU:1&same_subtree=1,", "1,", "1,"),
        ("resources=VCPU:1&requird=A", "requird", "requird"),
        ("resources=VCPU:1&required=A&required=!B,!A", "A&!B,!A", "!B,!A"),
    ],
)
def test_the_malformed_part_is_marked(query: str, shown: str, marked: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        CandidatesRequest.parse(query)
    _, text, marker = str(caught.value).splitlines()
    assert text == f"  {shown}"
    assert text[marker.index("^") : len(marker)] == marked


def test_requests_are_values() -> None:
    resources = {"VCPU": 1}
    group = RequestGroup(resources, member_of=frozenset([frozenset([UUID])]))
    resources["VCPU"] = 0
    assert group.params()[0] == ("resources", "VCPU:1")
    kinds: list[Any] = [CandidatesRequest, ProvidersRequest]
    for kind in kinds:
        one = kind.parse("resources=VCPU:1&required=A&member_of=" + UUID)
        assert {one: 1}[kind.parse(one.query_string())] == 1
    assert hash(group) == hash(RequestGroup({"VCPU": 1}, member_of=group.member_of))


@pytest.mark.parametrize("odd", ["1", "1.x", "1." + "1" * 5000, "", None, "-1.2", "\u0661.2"])
def test_a_malformed_microversion(odd: Any) -> None:
    with pytest.raises(BadRequest, match="is no microversion; write one such as"):
        CandidatesRequest.parse("resources=VCPU:1", odd)
    assert CandidatesRequest.parse("resources=VCPU:1&required=in:A,B", "latest")


@pytest.mark.parametrize("odd", [None, 5, b"A", ["A"]])
def test_what_is_no_text_is_no_query(odd: Any) -> None:
    with pytest.raises(InvalidTrait, match="is no text; give each parameter by itself"):
        TraitQuery.parse(odd)
    with pytest.raises(TypeError):
        TraitQuery() & odd


def test_values_are_checked_as_texts_are() -> None:
    group = RequestGroup({"VCPU": 1})
    odd: Any = 5
    for bad in (
        lambda: RequestGroup({odd: 1}),
        lambda: RequestGroup(in_tree=odd),
        lambda: RequestGroup(member_of=frozenset([frozenset()])),
        lambda: RequestGroup(not_member_of=frozenset([odd])),
        lambda: CandidatesRequest({odd: group}),
        lambda: CandidatesRequest({"": group}, limit=1.5),  # type: ignore[arg-type]
        lambda: CandidatesRequest({"": group}, limit=2**31),
        lambda: ProvidersRequest(uuid=odd),
        lambda: ProvidersRequest(name="\ud800"),
        lambda: TraitQuery(required=odd),
        lambda: RequestGroup({"VCPU": 0}),
        lambda: RequestGroup({"VCPU": "1"}),  # type: ignore[dict-item]
        lambda: RequestGroup({"VCPU": 2**31}),
        lambda: ProvidersRequest(RequestGroup(in_tree=UUID.replace("-", ""))),
        lambda: RequestGroup(in_tree="x"),
        lambda: CandidatesRequest({"": group}, limit=0),
        lambda: CandidatesRequest({"": group}, root_required=TraitQuery.parse("in:A,B")),
        lambda: CandidatesRequest({"a b": group}),
        lambda: CandidatesRequest({"": RequestGroup()}),
        lambda: ProvidersRequest(uuid="x"),
    ):
        with pytest.raises(InvalidQuery):
            bad()
    with pytest.raises(BadRequest, match=r"'1,39' is no microversion; write one such as '1.39'"):
        CandidatesRequest({"": group}).require("1,39")


def flavor(**extra_specs: str) -> Any:
    specs = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    return SimpleNamespace(vcpus=2, memory_mb=512, root_gb=10, extra_specs=specs)


def image(**properties: Any) -> Any:
    return SimpleNamespace(
        properties={key.replace("__", ":"): value for key, value in properties.items()}
    )


@pytest.mark.parametrize(
    ("asked", "properties", "query"),
    [
        ({}, {}, "resources=DISK_GB:10,MEMORY_MB:512,VCPU:2"),
        (
            {"trait__A": "required", "trait__B": "forbidden"},
            {"trait__C": "required"},
            "required=A,C,!B&resources=DISK_GB:10,MEMORY_MB:512,VCPU:2",
        ),
        (
            {"resources__VCPU": "0", "resources__DISK_GB": "1"},
            {},
            "resources=DISK_GB:1,MEMORY_MB:512",
        ),
        ({"resources__PCPU": "4"}, {}, "resources=DISK_GB:10,MEMORY_MB:512,PCPU:4"),
        (
            {"resources1__VGPU": "1", "trait1__A": "required", "group_policy": "isolate"},
            {},
            "group_policy=isolate&required1=A&resources=DISK_GB:10,MEMORY_MB:512,VCPU:2"
            "&resources1=VGPU:1",
        ),
        (
            {"ssd": "nvme", "hw:cpu_policy": "dedicated"},
            {"os": "x"},
            "resources=DISK_GB:10,MEMORY_MB:512,VCPU:2",
        ),
    ],
)
def test_a_flavor_and_an_image_make_a_request(asked: Any, properties: Any, query: str) -> None:
    request = CandidatesRequest.from_flavor(flavor(**asked), image(**properties))
    assert request.query_string() == query


def test_the_disk_of_a_flavor_is_all_of_it() -> None:
    big = SimpleNamespace(
        vcpus=1, memory_mb=1, root_gb=10, ephemeral_gb=5, swap=1500, extra_specs={}
    )
    assert CandidatesRequest.from_flavor(big).groups[""].resources["DISK_GB"] == 17


def test_novas_images_have_read_their_traits_already() -> None:
    made = SimpleNamespace(properties=SimpleNamespace(traits_required=["A"]))
    request = CandidatesRequest.from_flavor(flavor(), made)
    assert request.groups[""].traits == TraitQuery.parse("A")


@pytest.mark.parametrize(
    ("asked", "properties", "why"),
    [
        ({"trait__A": "wanted"}, {}, "'trait:A' = 'wanted': a trait is 'required' or 'forbidden'"),
        ({"trait__a": "required"}, {}, "'trait:a' = 'required': a trait name is"),
        ({"resources__VCPU": "two"}, {}, "'resources:VCPU' = 'two': an amount is a whole number"),
        ({"resources__VCPU": "-1"}, {}, "an amount is a whole number from 0 on"),
        ({"group_policy": "both"}, {}, "group_policy is 'both'"),
        ({}, {"trait__A": "forbidden"}, "an image can only say 'trait:A' = 'required'"),
        ({}, {"trait1__A": "required"}, "an image can only say"),
        ({"resources__vcpu": "0"}, {}, "'vcpu' is no resource class"),
        ({"resources__VCPU": "9" * 5000}, {}, "an amount is a whole number from 0 on"),
        (
            {"trait1__A": "required"},
            {},
            "'trait1:A': there is no 'resources1:…', and each group asks for resources",
        ),
        (
            {"trait__A": "forbidden"},
            {"trait__A": "required"},
            "the flavor and the image disagree: A is both required and forbidden",
        ),
    ],
)
def test_what_is_not_understood_is_reported(asked: Any, properties: Any, why: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        CandidatesRequest.from_flavor(flavor(**asked), image(**properties))
    assert why in str(caught.value)


def test_what_was_read_from_json_is_read_too() -> None:
    asked = {
        "vcpus": 1,
        "memory_mb": 1,
        "root_gb": 0,
        "swap": "",
        "extra_specs": {"trait:A": "required"},
    }
    request = CandidatesRequest.from_flavor(asked, {"properties": {"trait:B": "required"}})
    assert request.query_string() == "required=A,B&resources=MEMORY_MB:1,VCPU:1"


@pytest.mark.parametrize(
    ("size", "value"),
    [("root_gb", "x"), ("swap", float("inf")), ("vcpus", -1), ("memory_mb", 10**400)],
)
def test_odd_sizes_of_flavors_are_named(size: str, value: Any) -> None:
    odd = flavor()
    setattr(odd, size, value)
    with pytest.raises(InvalidQuery, match=f"the flavor's {size} is "):
        CandidatesRequest.from_flavor(odd)
