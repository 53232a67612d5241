"""Requests as values: built from pairs, checked, copied, hashed, and parsed in linear time."""

import copy
import dataclasses
import functools
import pickle
import sys
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import pytest

from steelyard.clients.queries import ask
from steelyard.errors import BadRequest, InvalidQuery, InvalidTrait
from steelyard.traits import CandidatesRequest, ProvidersRequest, RequestGroup, TraitQuery, sql

UUID = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
KINDS = [CandidatesRequest, ProvidersRequest]
TEXT = f"resources=VCPU:1&required=A,!B&required=in:C,D&member_of={UUID}"
GROUP = RequestGroup({"VCPU": 1})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "given", [list, tuple, iter, lambda pairs: (pair for pair in pairs), lambda p: map(list, p)]
)
def test_of_reads_any_iterable_of_pairs(kind: Any, given: Any) -> None:
    assert kind.of(given(parse_qsl(TEXT))) == kind.parse(TEXT)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("params", "why"),
    [
        (TEXT, "params: expected pairs of a name and a value, .*; pass a query string to parse"),
        (None, "params: expected pairs of a name and a value"),
        ({"required": "A"}, "params: expected pairs of a name and a value"),
        (["ab"], "params: expected a pair of texts, such as .*, not 'ab'"),
        ([("required",)], r"params: expected a pair of texts, .*, not \('required',\)"),
        ([("required", "A", "B")], "params: expected a pair of texts"),
        ([("required", ["A", "!B"])], "params: expected a pair of texts"),
        ([(b"required", b"A")], "params: expected a pair of texts"),
        ([("limit", 5)], "params: expected a pair of texts"),
        ([{"required", "A"}], "params: expected a pair of texts"),
    ],
)
def test_of_rejects_anything_but_pairs_of_text(kind: Any, params: Any, why: str) -> None:
    with pytest.raises(InvalidQuery, match=why):
        kind.of(params)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [None, 5, TEXT.encode(), parse_qsl(TEXT)])
def test_parse_rejects_anything_but_text(kind: Any, text: Any) -> None:
    with pytest.raises(InvalidQuery, match="query_string: expected text, not "):
        kind.parse(text)


@pytest.mark.parametrize(
    "value",
    [
        TraitQuery.parse("A,!B&in:C,D"),
        RequestGroup({"VCPU": 1, "DISK_GB": 2}, TraitQuery.parse("!A"), in_tree=UUID),
        ProvidersRequest.parse(TEXT),
        CandidatesRequest.parse(f"{TEXT}&resources1=VGPU:1&same_subtree=1&limit=5"),
    ],
    ids=lambda value: type(value).__name__,
)
class TestValue:
    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_pickled_value_is_equal_and_immutable(self, value: Any, protocol: int) -> None:
        check_same(pickle.loads(pickle.dumps(value, protocol)), value)

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, dataclasses.replace])
    def test_copied_value_is_equal_and_immutable(self, value: Any, copied: Any) -> None:
        check_same(copied(value), value)

    def test_value_can_be_written_as_a_dictionary(self, value: Any) -> None:
        assert dataclasses.asdict(value)


def check_same(made: Any, value: Any) -> None:
    assert made == value
    assert {made: 1}[value] == 1
    for field in dataclasses.fields(made):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, field.name, None)
    with pytest.raises((AttributeError, TypeError)):
        made.anything = 1
    for name in ("resources", "groups"):
        mapping = getattr(made, name, None)
        if mapping is not None:
            with pytest.raises(TypeError):
                mapping["VCPU"] = 2
            with pytest.raises(TypeError):
                del mapping["VCPU"]


INVALID: Any = 5
HOLDERS = sql.PLACEMENT
# Untyped, so that mypy allows arguments of wrong types.
Query: Any = TraitQuery
Group: Any = RequestGroup
Providers: Any = ProvidersRequest
Candidates: Any = CandidatesRequest
in_sql: Any = sql
asked: Any = ask


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Query("CUSTOM_A"), "required: expected a set of trait names, not 'CUSTOM_A'"),
        (lambda: Query({"A": "forbidden"}), "required: expected a set of trait names"),
        (lambda: Query(b"A"), "required: expected a set of trait names, not b'A'"),
        (lambda: Query(frozenset([INVALID])), "required: invalid trait 5"),
        (lambda: Query(forbidden=INVALID), "forbidden: expected a set of trait names, not 5"),
        (lambda: Query(forbidden=frozenset("a")), "forbidden: invalid trait"),
        (lambda: Query(any_of="AB"), "any_of: expected sets of trait names, not 'AB'"),
        (lambda: Query(any_of=INVALID), "any_of: expected sets of trait names, not 5"),
        (lambda: Query(any_of={"A", "B"}), "any_of: expected a set of trait names, not '[AB]"),
        (lambda: Query().requiring(["A"]), r"traits: invalid trait \['A'\]"),
        (lambda: Query().forbidding(INVALID), "traits: invalid trait 5"),
        (lambda: Query().requiring_any({"A"}), r"traits: invalid trait {'A'}"),
        (lambda: Query.parse_params(INVALID), "invalid parameter 5"),
        (lambda: Query().satisfied_by("A"), "traits: expected a set of trait names, not 'A'"),
        (lambda: Query().satisfied_by({"A": 1}), "traits: expected a set of trait names"),
        (lambda: Query().satisfied_by([INVALID]), "traits: expected names as text, not 5"),
        (lambda: Query().satisfied_by([["A"]]), "traits: expected names as text, not"),
        (lambda: Query().unmet("A"), "traits: expected a set of trait names, not 'A'"),
        (lambda: Query().unmet(INVALID), "traits: expected a set of trait names, not 5"),
        (lambda: Query().implies("A"), "other: expected a TraitQuery, .*, not 'A'"),
        (lambda: Query().conflicts_with("A"), "other: expected a TraitQuery, .*, not 'A'"),
        (
            lambda: in_sql.condition("!A", HOLDERS.trait_id),
            "query: expected a TraitQuery, .*, not '!A'",
        ),
        (lambda: in_sql.condition(Query(), "id"), "provider_id: expected a column, not 'id'"),
        (lambda: in_sql.condition(Query(), HOLDERS.trait_id, INVALID), "tables: expected a Trait"),
        (
            lambda: in_sql.TraitTables(HOLDERS.trait_id, "trait_id", INVALID, INVALID),
            "association_trait_id: expected a column, not 'trait_id'",
        ),
    ],
)
def test_trait_query_rejects_wrong_types(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(InvalidTrait, match=f"^{why}"):
        make()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Group("VCPU:1"), "resources: expected a mapping of resource classes to am"),
        (lambda: Group([("VCPU", 1)]), "resources: expected a mapping of resource classes"),
        (lambda: Group({INVALID: 1}), "resources: invalid resource class 5"),
        (lambda: Group({"VCPU": "1"}), "resources: invalid amount '1' of VCPU"),
        (lambda: Group({"VCPU": True}), "resources: invalid amount True of VCPU"),
        (
            lambda: Group({"VCPU": 1}, "!CUSTOM_A"),
            r"traits: expected a TraitQuery, such as TraitQuery.parse\('A,!B'\), not '!CUSTOM_A'",
        ),
        (lambda: Group(traits=None), "traits: expected a TraitQuery, .*, not None"),
        (lambda: Group(traits={"A"}), "traits: expected a TraitQuery, .*, not {'A'}"),
        (lambda: Group(member_of=UUID), "member_of: expected sets of aggregate UUIDs, not"),
        (lambda: Group(member_of={UUID}), "member_of: expected a set of aggregate UUIDs"),
        (lambda: Group(member_of=[[INVALID]]), "member_of: expected a UUID as text, not 5"),
        (lambda: Group(member_of=[[]]), "member_of: empty set"),
        (lambda: Group(not_member_of=UUID), "not_member_of: expected a set of aggregate"),
        (
            lambda: Group(not_member_of={uuid.UUID(UUID)}),
            r"not_member_of: expected a UUID as text, not UUID\(",
        ),
        (lambda: Group(in_tree={UUID}), "in_tree: expected a UUID as text, not {"),
        (lambda: Group(in_tree=uuid.UUID(UUID)), "in_tree: expected a UUID as text, not U"),
        (lambda: Providers({"VCPU": 1}), "group: expected a RequestGroup, not {"),
        (lambda: Providers(uuid=uuid.UUID(UUID)), "uuid: expected a UUID as text, not UU"),
        (lambda: Providers(uuid={UUID}), "uuid: expected a UUID as text, not {"),
        (lambda: Providers(name={"a"}), "invalid name {'a'}"),
        (lambda: Candidates(GROUP), "groups: expected a mapping of suffixes to RequestGro"),
        (lambda: Candidates([GROUP]), "groups: expected a mapping of suffixes to Request"),
        (lambda: Candidates({"": {"VCPU": 1}}), "groups: the group '': expected a Req"),
        (lambda: Candidates({INVALID: GROUP}), "groups: invalid suffix 5"),
        (lambda: Candidates({"": GROUP}, {"none"}), "invalid group_policy {'none'}"),
        (lambda: Candidates({"": GROUP}, limit="5"), "invalid limit '5'"),
        (lambda: Candidates({"": GROUP}, limit=True), "invalid limit True"),
        (lambda: Candidates({"": GROUP}, root_required="!X"), "root_required: expected a"),
        (
            lambda: Candidates({"1": GROUP, "2": GROUP}, "none", same_subtree="12"),
            "same_subtree: expected sets of suffixes, not '12'",
        ),
        (
            lambda: Candidates({"1": GROUP, "2": GROUP}, "none", same_subtree={"12"}),
            "same_subtree: expected a set of suffixes, not '12'",
        ),
        (
            lambda: Candidates({"1": GROUP}, same_subtree=[[INVALID]]),
            "same_subtree: invalid suffix 5",
        ),
        (lambda: Candidates({"1": GROUP}, same_subtree=[[]]), "same_subtree: empty set"),
        (
            lambda: from_specs([("trait:A", "forbidden")]),
            r"flavor\.extra_specs: expected a mapping",
        ),
        (lambda: from_specs("trait:A"), r"flavor\.extra_specs: .* of keys to values, .* not 'tra"),
        (
            lambda: from_specs([]),
            r"flavor\.extra_specs: .*, such as {'trait:HW_GPU': 'required'}, n",
        ),
        (lambda: from_properties([("trait:A", "required")]), r"image\.properties: expected a map"),
        (lambda: from_properties("trait:A"), r"image\.properties: expected a mapping of keys to"),
        (lambda: from_properties(5), r"image\.properties: expected a mapping .*, not 5"),
        (lambda: Candidates.from_flavor({}, 5), "image: expected an image, not 5"),
        (lambda: Candidates.from_flavor({}, []), r"image: expected an image, not \[\]"),
        (lambda: Candidates.from_flavor("web"), "flavor: expected a flavor, not 'web'"),
        (lambda: Candidates.from_flavor(None), "flavor: expected a flavor, not None"),
        (lambda: Candidates.from_flavor({}, "img"), "image: expected an image, not 'img'"),
        (lambda: asked("placement", Providers()), "placement: expected a Placement, not 'pl"),
    ],
)
def test_request_rejects_wrong_types(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(InvalidQuery, match=f"^{why}"):
        make()


@pytest.mark.parametrize("invalid", [1.3, 1.39, 1, (1, 39), b"1.39"])
def test_microversion_must_be_text(invalid: Any) -> None:
    # The number 1.30 equals 1.3, which is another microversion.
    with pytest.raises(BadRequest, match=r"expected one such as '1\.39'"):
        ProvidersRequest.parse("", invalid)


def repeated(param: str) -> Callable[[int], str]:
    """Return a query string of so many such parameters, each with its number for ``{}``."""
    return lambda size: "&".join(
        ["resources=VCPU:1", "group_policy=none", *(param.format(n) for n in range(size))]
    )


def within(param: str, separator: str = ",") -> Callable[[int], str]:
    """Return a query string whose last parameter has so many parts."""
    name, _, part = param.partition("=")
    return lambda size: (
        f"resources=VCPU:1&{name}={separator.join(part.format(n) for n in range(size))}"
    )


SHAPES: dict[str, Callable[[int], str]] = {
    "required": repeated("required=T{0}"),
    "forbidden": repeated("required=!T{0}"),
    "any-of": repeated("required=in:A{0},B{0}"),
    "one required": within("required=T{0}"),
    "one any-of": lambda size: within("required=T{0}")(size).replace("required=", "required=in:"),
    "contradiction": lambda size: f"{repeated('required=T{0}')(size)}&required=!T0",
    "forbidden any-of": lambda size: (
        f"{repeated('required=!T{0}')(size)}&required=in:{','.join(f'T{n}' for n in range(size))}"
    ),
    "groups": repeated("resources_{0}=VCPU:1&required_{0}=!A&member_of_{0}=" + UUID),
    "bare groups": lambda size: (
        f"{repeated('required_{0}=A')(size)}&same_subtree={','.join(f'_{n}' for n in range(size))}"
    ),
    "groups twice": repeated(f"resources_{{0}}=VCPU:1&{'&'.join([f'member_of_{{0}}={UUID}'] * 2)}"),
    "member_of": repeated("member_of=in:" + UUID + ",00000000-0000-4000-8000-{0:012}"),
    "not member_of": repeated("member_of=!00000000-0000-4000-8000-{0:012}"),
    "resources": repeated("resources=C{0}:1"),
    "one resources": within("resources=C{0}:1"),
    "in_tree": repeated("in_tree=00000000-0000-4000-8000-{0:012}"),
    "same_subtree": lambda size: (
        f"resources_0=VCPU:1&{'&'.join(f'resources_{n}=VCPU:1&same_subtree=_{n}' for n in range(size))}"
        "&group_policy=none"
    ),
}
CONTRADICTORY = {"contradiction", "forbidden any-of"}


def parse(shape: str, size: int) -> None:
    text = SHAPES[shape](size)
    if shape not in CONTRADICTORY:
        CandidatesRequest.parse(text)
        return
    with pytest.raises(InvalidTrait, match=r"remove one of the two|allow at least one"):
        CandidatesRequest.parse(text)


def steps(call: Callable[[], object]) -> int:
    """Return how many bytecode instructions the call executes."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    # Python 3.12 reports no instructions while it traces for the first time.
    for _ in range(2 if sys.version_info >= (3, 12) else 1):
        count = 0
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(before)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_parse_takes_linear_time(shape: str) -> None:
    small, large = (steps(functools.partial(parse, shape, size)) for size in (100, 200))
    assert small < large < 2.2 * small


@pytest.mark.timeout(60)
@pytest.mark.parametrize("shape", SHAPES)
def test_parse_large_text_ends_within_the_time_limit(shape: str) -> None:
    parse(shape, 4_000)


def extra_specs(size: int) -> Iterator[tuple[str, str]]:
    for number in range(size):
        yield f"trait:CUSTOM_{number}", "required"
        yield f"resources_{number}:VGPU", "1"
        yield f"trait_{number}:CUSTOM_{number}", "forbidden"
    yield "group_policy", "none"


def from_specs(specs: Any) -> CandidatesRequest:
    return CandidatesRequest.from_flavor({"vcpus": 1, "extra_specs": specs})


def from_properties(properties: Any) -> CandidatesRequest:
    return CandidatesRequest.from_flavor({"vcpus": 1}, {"properties": properties})


def test_from_flavor_takes_none_for_extra_specs_and_properties() -> None:
    assert from_specs(None) == from_properties(None) == from_specs({})


@pytest.mark.parametrize(
    "group",
    [
        lambda number: {f"A{number}", f"B{number}"},
        lambda number: {"SHARED", f"B{number}", f"C{number}"},
        lambda number: {f"A{number // 2}", f"B{number % 2}", f"C{number // 2}"},
    ],
)
def test_simplified_and_implies_take_linear_time(group: Any) -> None:
    def simplify(size: int) -> int:
        groups = frozenset(frozenset(group(number)) for number in range(size))
        query = TraitQuery(any_of=groups)
        assert len(query.simplified().any_of) == size
        return steps(lambda: (query.simplified(), query.implies(query)))

    assert simplify(400) < 2.5 * simplify(200)


def test_error_about_a_long_text_shows_the_part_around_the_marker() -> None:
    for query in (f"{'A' * 50},x{'B' * 9999}", f"required={'A,' * 9999}x,{'B,' * 9999}A"):
        parse_it = TraitQuery.parse if "=" not in query else CandidatesRequest.parse
        with pytest.raises(InvalidQuery) as caught:
            parse_it(query)
        message = str(caught.value)
        assert len(message) < 1000
        _, shown, marker = message.splitlines()
        assert shown[marker.index("^")] == "x"
        assert "…" in shown
    with pytest.raises(InvalidTrait) as short:
        TraitQuery.parse("A,x,B")
    assert str(short.value).splitlines()[1:] == ["  A,x,B", "    ^"]
    long = "x" * 9999
    for ask_for in (
        lambda: CandidatesRequest.parse(f"{long}=1"),
        lambda: ProvidersRequest(uuid=long),
        lambda: ProvidersRequest.parse(f"in_tree={long}"),
        lambda: RequestGroup(in_tree=long),
        lambda: RequestGroup({long: 1}),
        lambda: ProvidersRequest.parse(f"%ff{long}"),
        lambda: ProvidersRequest(name="\ud800" + long),
        lambda: CandidatesRequest({long: GROUP}),
        lambda: CandidatesRequest({"": GROUP}, long),
        lambda: CandidatesRequest.parse(f"resources=VCPU:1&same_subtree=,{long}"),
    ):
        with pytest.raises(InvalidQuery) as caught:
            ask_for()
        assert len(str(caught.value)) < 1000


def test_from_flavor_takes_linear_time() -> None:
    def read(size: int) -> int:
        flavor = SimpleNamespace(vcpus=1, memory_mb=1, extra_specs=dict(extra_specs(size)))
        return steps(lambda: CandidatesRequest.from_flavor(flavor))

    assert read(200) < 2.2 * read(100)


def test_satisfied_by_accepts_subclasses_of_str() -> None:
    # Database libraries have such classes, for example SQLAlchemy's quoted_name.
    name = type("Name", (str,), {})
    assert TraitQuery.parse("A,!B").satisfied_by([name("A")])


def test_resources_of_a_group_merge_with_dictionaries() -> None:
    resources: Any = RequestGroup({"VCPU": 1, "DISK_GB": 5}).resources
    assert resources | {"VCPU": 2} == {"VCPU": 2, "DISK_GB": 5}
    assert {"VCPU": 2} | resources == {"VCPU": 1, "DISK_GB": 5}
    assert resources | RequestGroup({"VGPU": 1}).resources == {"VCPU": 1, "DISK_GB": 5, "VGPU": 1}
    assert type(resources | {}) is type({} | resources) is dict
    with pytest.raises(TypeError):
        resources | [("VCPU", 1)]
