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
def test_parse_reads_required_forbidden_and_any_of(
    params: Any, required: Any, forbidden: Any, any_of: Any
) -> None:
    query = TraitQuery.parse(*params)
    assert query.required == frozenset(required)
    assert query.forbidden == frozenset(forbidden)
    assert query.any_of == frozenset(map(frozenset, any_of))
    assert bool(query) is bool(required or forbidden or any_of)


@pytest.mark.parametrize(
    ("text", "why", "marked"),
    [
        ("", "missing trait: expected", ""),
        ("A,,B", "missing trait: expected", ""),
        ("!", "missing trait: expected", ""),
        ("A,b", "invalid trait 'b': expected 1 to 255 characters of A-Z, 0-9 and _", "b"),
        ("! A", "invalid trait", " A"),
        ("A B", "invalid trait", "A B"),
        ("!!A", "more than one '!' before a trait; write one", "!A"),
        (" in:A", "invalid trait", "in:A"),
        ("in:", "missing trait: expected", ""),
        ("in:A,!B", "a trait cannot be forbidden after 'in:'", "!B"),
        ("C, !A,A", "A is both required and forbidden; remove one of the two", "!A"),
        ("A" * 256, "invalid trait", "A" * 256),
        ("A\n", "", None),
    ],
)
def test_parse_of_malformed_text_marks_the_fault(text: str, why: str, marked: str | None) -> None:
    if marked is None:  # surrounding white space is stripped
        assert TraitQuery.parse(text) == TraitQuery.parse("A")
        return
    with pytest.raises(InvalidTrait) as caught:
        TraitQuery.parse(text)
    message, shown, marker = str(caught.value).splitlines()
    assert why in message
    assert shown == f"  {text}"
    place = slice(marker.index("^"), len(marker))
    assert shown[place] == marked or marked == ""
    assert caught.value.status == 400


def test_error_escapes_unprintable_text_and_aligns_the_marker() -> None:
    with pytest.raises(InvalidTrait) as caught:
        TraitQuery.parse("A\x07,b")
    assert str(caught.value).splitlines()[1:] == ["  A\\x07,b", "  ^^^^^"]


@pytest.mark.parametrize(
    ("params", "why"),
    [
        (("A", "!A"), "A is both required and forbidden; remove one of the two\n  A&!A"),
        (("in:A,B", "!A,!B"), "one of A, B is required, but all of them are forbidden"),
    ],
)
def test_contradiction_shows_the_whole_text(params: Any, why: str) -> None:
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
def test_query_of_malformed_values_raises(fields: Any) -> None:
    with pytest.raises(InvalidTrait):
        TraitQuery(**fields)


def test_queries_can_be_combined_and_hashed() -> None:
    built = TraitQuery().requiring("B", "A").forbidding("C").requiring_any("D", "E")
    assert built == TraitQuery.parse("A,B,!C", "in:E,D")
    assert {built: 1}[TraitQuery.parse(str(built))] == 1
    assert str(built) == "A,B,!C&in:D,E"
    assert built.params() == ["A,B,!C", "in:D,E"]
    assert str(TraitQuery()) == "*"


def test_unmet_yields_a_text_for_each_unmet_part() -> None:
    query = TraitQuery.parse("A,!B&in:C,D")
    assert query.satisfied_by(["A", "C", "X"])
    assert not query.satisfied_by([])
    assert list(query.unmet(["A", "C"])) == []
    assert list(query.unmet(["B"])) == [
        "required trait A is missing",
        "forbidden trait B is present",
        "one of the traits C, D is required, but all are missing",
    ]
    assert [trait for _, trait in query.unmet_traits(["B"])] == ["A", "B", ""]
    assert [text for text, _ in query.unmet_traits(["B"])] == list(query.unmet(["B"]))


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
def test_simplified_returns_the_shortest_equivalent_query(text: str, shortest: str) -> None:
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
def test_implies_compares_two_queries(one: str, other: str, implies: bool) -> None:
    assert TraitQuery.parse(one).implies(TraitQuery.parse(other)) is implies


def test_require_known_rejects_unknown_traits() -> None:
    TraitQuery.parse("HW_CPU_X86_AVX2,!CUSTOM_ANYTHING").require_known()
    with pytest.raises(InvalidTrait, match=r"unknown trait 'HW_CPU_X86_AVX22'.*AVX2'"):
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
def test_providers_request_needs_the_lowest_microversion(query: str, microversion: str) -> None:
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
def test_candidates_request_needs_the_lowest_microversion(query: str, microversion: str) -> None:
    request = CandidatesRequest.parse(query)
    assert request.microversion == microversion
    assert CandidatesRequest.parse(request.query_string(), microversion) == request
    major, minor = microversion.split(".")
    below = f"{major}.{int(minor) - 1}"
    with pytest.raises(MicroversionTooLow, match=f"microversion {below} is too low"):
        request.require(below)


def test_query_string_is_canonical_and_parses_back() -> None:
    request = CandidatesRequest.parse("required=!B%2CA&resources=VCPU:1,DISK_GB:20")
    assert request.query_string() == "required=A,!B&resources=DISK_GB:20,VCPU:1"


@pytest.mark.parametrize(
    ("kind", "query", "why"),
    [
        (ProvidersRequest, "limit=1", "unexpected parameter 'limit'"),
        (ProvidersRequest, "requird=A", "did you mean 'required'?"),
        (ProvidersRequest, "uuid=x", "uuid: invalid UUID 'x': expected 32 hexadecimal digits"),
        (ProvidersRequest, "required=a", "required: invalid trait 'a'"),
        (ProvidersRequest, "required=%ff", "not UTF-8"),
        (ProvidersRequest, "resources=VCPU", "invalid resource 'VCPU'"),
        (
            ProvidersRequest,
            "resources=VCPU:0",
            "invalid amount 0 of VCPU: expected a whole number from 1 to",
        ),
        (ProvidersRequest, f"resources=VCPU:{'9' * 5000}", "invalid resource 'VCPU:999"),
        (
            CandidatesRequest,
            f"resources=VCPU:1&limit={'9' * 5000}",
            "expected a whole number from 1",
        ),
        (ProvidersRequest, "resources=vcpu:1", "invalid resource class 'vcpu'"),
        (
            ProvidersRequest,
            f"member_of={UUID},{OTHER}",
            "more than one aggregate; write in: before",
        ),
        (ProvidersRequest, "member_of=x", "member_of: invalid UUID 'x': expected one such as"),
        (CandidatesRequest, "", "missing resources"),
        (CandidatesRequest, "required=A", "missing resources"),
        (
            CandidatesRequest,
            "resources1=VCPU:1&required=A",
            "missing resources for required; request some",
        ),
        (CandidatesRequest, "resources=VCPU:1&required1=A", "or name '1' in same_subtree"),
        (
            CandidatesRequest,
            "resources1=VCPU:1&resources2=VCPU:1",
            "missing group_policy for 2 groups",
        ),
        (
            CandidatesRequest,
            "resources=VCPU:1&group_policy=x",
            "invalid group_policy 'x': expected 'none' or 'isolate'",
        ),
        (
            CandidatesRequest,
            "resources=VCPU:1&limit=0",
            "invalid limit '0': expected a whole number from 1",
        ),
        (CandidatesRequest, "resources=VCPU:1&limit=1&limit=1", "duplicate parameter 'limit'"),
        (
            CandidatesRequest,
            "resources=VCPU:1&root_required=in:A",
            "any-of groups are not supported",
        ),
        (CandidatesRequest, "resources=VCPU:1&same_subtree=,", "same_subtree: empty suffix"),
        (
            CandidatesRequest,
            "resources=VCPU:1&same_subtree=1",
            "same_subtree: no group with the suffix '1'",
        ),
        (CandidatesRequest, "resources=VCPU:1&x=1", "unknown parameter 'x'"),
        (CandidatesRequest, "resources/=VCPU:1", "invalid suffix '/'"),
        (CandidatesRequest, "resources1=VCPU:1&required1=A,!A", "required1: A is both required"),
    ],
)
def test_parse_of_a_malformed_request_names_the_fault(kind: Any, query: str, why: str) -> None:
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
def test_parse_of_a_malformed_request_marks_the_fault(query: str, shown: str, marked: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        CandidatesRequest.parse(query)
    _, text, marker = str(caught.value).splitlines()
    assert text == f"  {shown}"
    assert text[marker.index("^") : len(marker)] == marked


def test_requests_are_equal_and_hashable() -> None:
    resources = {"VCPU": 1}
    group = RequestGroup(resources, member_of=frozenset([frozenset([UUID])]))
    resources["VCPU"] = 0
    assert group.params()[0] == ("resources", "VCPU:1")
    kinds: list[Any] = [CandidatesRequest, ProvidersRequest]
    for kind in kinds:
        one = kind.parse("resources=VCPU:1&required=A&member_of=" + UUID)
        assert {one: 1}[kind.parse(one.query_string())] == 1
    assert hash(group) == hash(RequestGroup({"VCPU": 1}, member_of=group.member_of))


@pytest.mark.parametrize("invalid", ["1", "1.x", "1." + "1" * 5000, "", None, "-1.2", "\u0661.2"])
def test_malformed_microversion_raises(invalid: Any) -> None:
    with pytest.raises(BadRequest, match="invalid microversion"):
        CandidatesRequest.parse("resources=VCPU:1", invalid)
    assert CandidatesRequest.parse("resources=VCPU:1&required=in:A,B", "latest")


@pytest.mark.parametrize("invalid", [None, 5, b"A", ["A"]])
def test_parse_of_a_parameter_that_is_not_text_raises(invalid: Any) -> None:
    with pytest.raises(InvalidTrait, match="expected text; pass each parameter as one argument"):
        TraitQuery.parse(invalid)
    with pytest.raises(TypeError):
        TraitQuery() & invalid


def test_constructors_check_values_as_parse_does() -> None:
    group = RequestGroup({"VCPU": 1})
    invalid: Any = 5
    for bad in (
        lambda: RequestGroup({invalid: 1}),
        lambda: RequestGroup(in_tree=invalid),
        lambda: RequestGroup(member_of=frozenset([frozenset()])),
        lambda: RequestGroup(not_member_of=frozenset([invalid])),
        lambda: CandidatesRequest({invalid: group}),
        lambda: CandidatesRequest({"": group}, limit=1.5),  # type: ignore[arg-type]
        lambda: CandidatesRequest({"": group}, limit=2**31),
        lambda: ProvidersRequest(uuid=invalid),
        lambda: ProvidersRequest(name="\ud800"),
        lambda: TraitQuery(required=invalid),
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
    with pytest.raises(
        BadRequest, match=r"invalid microversion '1,39': expected one such as '1.39'"
    ):
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
def test_from_flavor_combines_flavor_and_image(asked: Any, properties: Any, query: str) -> None:
    request = CandidatesRequest.from_flavor(flavor(**asked), image(**properties))
    assert request.query_string() == query


def test_from_flavor_adds_up_root_ephemeral_and_swap() -> None:
    big = SimpleNamespace(
        vcpus=1, memory_mb=1, root_gb=10, ephemeral_gb=5, swap=1500, extra_specs={}
    )
    assert CandidatesRequest.from_flavor(big).groups[""].resources["DISK_GB"] == 17


def test_from_flavor_reads_parsed_traits_of_novas_images() -> None:
    made = SimpleNamespace(properties=SimpleNamespace(traits_required=["A"]))
    request = CandidatesRequest.from_flavor(flavor(), made)
    assert request.groups[""].traits == TraitQuery.parse("A")


@pytest.mark.parametrize(
    ("asked", "properties", "why"),
    [
        ({"trait__A": "wanted"}, {}, "'trait:A' = 'wanted': expected 'required' or 'forbidden'"),
        ({"trait__a": "required"}, {}, "'trait:a' = 'required': invalid trait 'a'"),
        (
            {"resources__VCPU": "two"},
            {},
            "invalid amount 'resources:VCPU' = 'two': expected a whole number",
        ),
        ({"resources__VCPU": "-1"}, {}, "expected a whole number, at least 0"),
        ({"group_policy": "both"}, {}, "invalid group_policy 'both'"),
        ({}, {"trait__A": "forbidden"}, "expected 'trait:A' = 'required'"),
        ({}, {"trait1__A": "required"}, "expected 'trait:A' = 'required'"),
        ({"resources__vcpu": "0"}, {}, "invalid resource class 'vcpu'"),
        ({"resources__VCPU": "9" * 5000}, {}, "expected a whole number, at least 0"),
        (
            {"trait1__A": "required"},
            {},
            "'trait1:A': missing 'resources1:…'; each group must request a resource",
        ),
        (
            {"trait__A": "forbidden"},
            {"trait__A": "required"},
            "the flavor and the image disagree: A is both required and forbidden",
        ),
    ],
)
def test_from_flavor_rejects_malformed_extra_specs_and_properties(
    asked: Any, properties: Any, why: str
) -> None:
    with pytest.raises(InvalidQuery) as caught:
        CandidatesRequest.from_flavor(flavor(**asked), image(**properties))
    assert why in str(caught.value)


def test_from_flavor_reads_json_values() -> None:
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
def test_from_flavor_with_an_invalid_size_names_it(size: str, value: Any) -> None:
    invalid = flavor()
    setattr(invalid, size, value)
    with pytest.raises(InvalidQuery, match=f"invalid {size} .* of the flavor"):
        CandidatesRequest.from_flavor(invalid)
