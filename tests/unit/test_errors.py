import inspect
import json
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from steelyard import conf as options
from steelyard import errors, microversions, resources
from steelyard.cloud import Cloud
from steelyard.conf import InvalidOption
from steelyard.consumers import ConsumerType, bodies
from steelyard.expressions import Expression
from steelyard.groups import Policy, ServerGroup, parse_rules
from steelyard.tags import decode, encode
from steelyard.tags.names import check_name
from steelyard.traits import (
    CandidatesRequest,
    ProvidersRequest,
    RequestGroup,
    ResourceProvider,
    TraitQuery,
)
from steelyard.traits.flavors import image_traits

UUID = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
NODE = {"vcpus": 4, "ram_mb": 4096, "disk_gb": 100}


def well_formed(text: str) -> Expression:
    return Expression.parse(text).require_well_formed()


def well_formed_list(text: str) -> Expression:
    return Expression.parse_list(text).require_well_formed()


def group(name: object = "web", policy: object = "affinity", **more: object) -> ServerGroup:
    return ServerGroup.parse({"server_group": {"name": name, "policy": policy, **more}})


def put(**changes: object) -> bodies.Write:
    body = {
        "allocations": {UUID: {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return bodies.put(UUID, {**body, **changes})


def asked(extra_specs: dict[str, str], **sizes: object) -> CandidatesRequest:
    flavor = {"vcpus": 1, "memory_mb": 1, "root_gb": 1, **sizes, "extra_specs": extra_specs}
    return CandidatesRequest.from_flavor(flavor)


def candidates(**fields: Any) -> CandidatesRequest:
    return CandidatesRequest({"": RequestGroup({"VCPU": 1})}, **fields)


# The invalid input, the error, its text, and the part of the text that is invalid.
INVALID: list[tuple[Callable[[], Any], type[errors.SteelyardError], str | None, str | None]] = [
    (lambda: well_formed(" >= x "), errors.InvalidExpression, ">= x", ">= x"),
    (lambda: well_formed("<or>"), errors.InvalidExpression, "<or>", "<or>"),
    (
        lambda: well_formed("<or> s== >= <or> >= <or> a"),
        errors.InvalidExpression,
        "<or> s== >= <or> >= <or> a",
        ">=",
    ),
    (lambda: well_formed_list(" a,  <= b , c"), errors.InvalidExpression, "a,  <= b , c", "<= b"),
    (
        lambda: well_formed_list("a, <or> b <or> == c"),
        errors.InvalidExpression,
        "a, <or> b <or> == c",
        "== c",
    ),
    (lambda: TraitQuery.parse("A,!!B"), errors.InvalidTrait, "A,!!B", "!B"),
    (lambda: TraitQuery(frozenset({"a"})), errors.InvalidTrait, "a", "a"),
    (
        lambda: ProvidersRequest.parse("resources=VCPU:1,RAM"),
        errors.InvalidQuery,
        "VCPU:1,RAM",
        "RAM",
    ),
    (lambda: ProvidersRequest.parse("requird=A"), errors.InvalidQuery, "requird", "requird"),
    (lambda: ResourceProvider("zz"), errors.InvalidProvider, "zz", "zz"),
    (lambda: ConsumerType("instance"), errors.InvalidConsumerType, "instance", "instance"),
    (lambda: ConsumerType(""), errors.InvalidConsumerType, "", ""),
    (lambda: put(consumer_type="a"), errors.InvalidAllocations, "a", "a"),
    (lambda: put(project_id="\0"), errors.InvalidAllocations, "\0", "\0"),
    (lambda: put(project_id=7), errors.InvalidAllocations, None, None),
    (lambda: bodies.check_uuid("consumer", "7"), errors.InvalidAllocations, "7", "7"),
    (lambda: check_name("a/b"), errors.InvalidTag, "a/b", "/"),
    (lambda: check_name("a\nb"), errors.InvalidTag, "a\nb", "\n"),
    (lambda: check_name("a" * 60 + "bc"), errors.InvalidTag, "a" * 60 + "bc", "bc"),
    (lambda: check_name(""), errors.InvalidTag, "", ""),
    (lambda: check_name(" "), errors.InvalidTag, " ", " "),
    (lambda: check_name(7), errors.InvalidTag, None, None),
    (lambda: encode("é" * 30, "u:"), errors.InvalidTag, "é" * 30, "é" * 30),
    (lambda: encode("a", "é:"), errors.InvalidTag, "é:", "é:"),
    (lambda: decode("other:a"), errors.InvalidTag, "other:a", "other:a"),
    (lambda: decode("cyclades:user:/FF"), errors.InvalidTag, "cyclades:user:/FF", "/FF"),
    (lambda: decode("cyclades:user:/61"), errors.InvalidTag, "cyclades:user:/61", "/61"),
    (lambda: Policy.parse("near"), errors.InvalidServerGroup, "near", "near"),
    (lambda: group(policy=7), errors.InvalidServerGroup, None, None),
    (lambda: group(metadata={}), errors.InvalidServerGroup, "metadata", "metadata"),
    (lambda: group(rules="x"), errors.InvalidServerGroup, "x", "x"),
    (lambda: group("  web"), errors.InvalidServerGroup, "  web", "  "),
    (lambda: group("web "), errors.InvalidServerGroup, "web ", " "),
    (lambda: group("we\x07b"), errors.InvalidServerGroup, "we\x07b", "\x07"),
    (
        lambda: parse_rules(Policy.ANTI_AFFINITY, {"max_server_per_host": "two"}),
        errors.InvalidServerGroup,
        "two",
        "two",
    ),
]

# The same, for texts that are invalid as a whole and quoted in the message.
QUOTED: list[tuple[Callable[[], Any], type[errors.SteelyardError], str | None]] = [
    (lambda: resources.check_class("bad class"), errors.InvalidQuery, "bad class"),
    (lambda: resources.check_resource("VCPU", "x"), errors.InvalidQuery, "x"),  # type: ignore[arg-type]
    (lambda: resources.check_resource("VCPU", 0), errors.InvalidQuery, None),
    (lambda: asked({"resources:VCPU": "x"}), errors.InvalidQuery, "x"),
    (lambda: asked({}, vcpus="many"), errors.InvalidQuery, "many"),
    (lambda: asked({"trait:HW_GPU": "abc"}), errors.InvalidTrait, "abc"),
    (lambda: image_traits({"properties": {"trait:HW_GPU": "abc"}}), errors.InvalidTrait, "abc"),
    (lambda: RequestGroup(in_tree="zz"), errors.InvalidQuery, "zz"),
    (lambda: RequestGroup({"bad class": 1}), errors.InvalidQuery, "bad class"),
    (lambda: TraitQuery(required="A"), errors.InvalidTrait, "A"),  # type: ignore[arg-type]
    (lambda: TraitQuery(frozenset({"HW_CP"})).require_known(), errors.InvalidTrait, "HW_CP"),
    (lambda: ProvidersRequest(uuid=UUID[:-1] + "-"), errors.InvalidQuery, UUID[:-1] + "-"),
    (lambda: ProvidersRequest(name="\ud800"), errors.InvalidQuery, "\ud800"),
    (lambda: ProvidersRequest.parse("name=%ff"), errors.InvalidQuery, "name=%ff"),
    (lambda: candidates(limit="3"), errors.InvalidQuery, "3"),
    (lambda: candidates(group_policy="x"), errors.InvalidQuery, "x"),
    (lambda: candidates(same_subtree={frozenset({"_A"})}), errors.InvalidQuery, "_A"),
    (lambda: CandidatesRequest({"a b": RequestGroup()}), errors.InvalidQuery, "a b"),
    (lambda: microversions.number("1.x"), errors.BadRequest, "1.x"),
    (lambda: microversions.number(1.3), errors.BadRequest, None),  # type: ignore[arg-type]
    (lambda: Cloud({}).server_group("web"), errors.NotFound, "web"),
]


@pytest.mark.parametrize(
    ("parse", "kind", "text", "part"),
    INVALID + [(parse, kind, text, text) for parse, kind, text in QUOTED],
)
def test_parser_error_has_text_and_position(
    parse: Callable[[], Any],
    kind: type[errors.SteelyardError],
    text: str | None,
    part: str | None,
) -> None:
    with pytest.raises(kind) as caught:
        parse()
    error = caught.value
    assert type(error) is kind
    assert error.message
    assert str(error).splitlines()[0] == error.message.splitlines()[0]
    assert error.text == text
    if text is None:
        assert error.position is None
    else:
        assert error.position is not None
        start, end = error.position
        assert text[start:end] == part


def test_position_of_an_error_is_that_of_the_fault() -> None:
    with pytest.raises(errors.InvalidExpression) as caught:
        well_formed("<or> s== >= <or> >= <or> a")
    assert caught.value.position == (17, 19)


def test_errors_about_text_are_all_tested() -> None:
    invalid = {
        error
        for name, error in inspect.getmembers(errors, inspect.isclass)
        if name.startswith("Invalid")
    }
    # A notification is bytes; cloud files and options have tests of their own.
    elsewhere = {errors.InvalidMessage, errors.InvalidCloud, InvalidOption}
    assert {kind for _, kind, _, _ in INVALID} == invalid - elsewhere


@pytest.mark.parametrize(
    ("content", "message", "line", "path", "text"),
    [
        (
            "hosts:\n  h: {vcpus: 4, ram_mb: 16 GiB, disk_gb: 1}\n",
            'expected a whole number from 0 to 999999999999999, got "16 GiB"',
            2,
            ("hosts", "h", "ram_mb"),
            "16 GiB",
        ),
        (
            "hosts: {}\nserver_groups:\n  web: {policy: near}\n",
            "unknown policy 'near': expected one of 'affinity', 'anti-affinity', 'soft-affinity', "
            "'soft-anti-affinity'",
            3,
            ("server_groups", "web", "policy"),
            "near",
        ),
        (
            "hosts: {}\naggregates:\n  a:\n    hosts:\n    - h\n",
            "no host 'h'; there are none",
            5,
            ("aggregates", "a", "hosts", "0"),
            "h",
        ),
        ("hosts:\n  h: []\n", "expected a mapping, got []", 2, ("hosts", "h"), None),
        ("hosts: {}\nhosts: {}\n", "duplicate key 'hosts'", 2, (), "hosts"),
        ("", "the file is empty: expected at least the mapping 'hosts'", None, (), None),
    ],
)
def test_invalid_cloud_has_file_line_path_and_text(
    tmp_path: pathlib.Path,
    content: str,
    message: str,
    line: int | None,
    path: tuple[str, ...],
    text: str | None,
) -> None:
    file = tmp_path / "cloud.yaml"
    file.write_text(content)
    with pytest.raises(errors.InvalidCloud) as caught:
        Cloud.load(file)
    error = caught.value
    assert (error.message, error.file, error.line) == (message, str(file), line)
    assert (error.path, error.text) == (path, text)
    assert error.position == (None if text is None else (0, len(text)))


@pytest.mark.parametrize(
    ("line", "path", "printed"),
    [
        (None, (), "a.yaml: is wrong"),
        (3, (), "a.yaml:3: is wrong"),
        (3, ("hosts", "h"), "a.yaml:3: hosts.h: is wrong"),
        (None, ("hosts", "h"), "a.yaml: hosts.h: is wrong"),
    ],
)
def test_invalid_cloud_prints_its_place(
    line: int | None, path: tuple[str, ...], printed: str
) -> None:
    assert str(errors.InvalidCloud("is wrong", "a.yaml", line=line, path=path)) == printed


def test_invalid_cloud_prints_another_text_for_its_path() -> None:
    error = errors.InvalidCloud("is wrong", "a.yaml", path=("0",))
    error.where = "request 1"
    assert str(error) == "a.yaml: request 1: is wrong"
    assert error.path == ("0",)


def test_invalid_cloud_in_json_has_path_and_text(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "cloud.json"
    file.write_text(json.dumps({"hosts": {"h": {**NODE, "vcpus": "x"}}}))
    with pytest.raises(errors.InvalidCloud) as caught:
        Cloud.load(file)
    assert (caught.value.path, caught.value.text) == (("hosts", "h", "vcpus"), "x")


def test_invalid_option_has_place_text_and_reason(configured: Any, tmp_path: Any) -> None:
    with pytest.raises(InvalidOption) as caught:
        _ = options.register(configured("seed = many")).seed
    assert caught.value.where == f"{tmp_path}/steelyard.conf:2: [steelyard] seed"
    assert caught.value.text == "many"
    assert caught.value.position == (0, 4)
    assert caught.value.reason == "expected a whole number"


def test_invalid_query_alone_prints_its_text() -> None:
    assert str(errors.InvalidTag("wrong", "a/b", (1, 2))) == "wrong"
    assert str(errors.InvalidQuery("wrong", "a/b", (1, 2))) == "wrong\n  a/b\n   ^"
    assert str(errors.InvalidQuery("wrong")) == "wrong"


@pytest.mark.parametrize(("parse", "kind"), [(parse, kind) for parse, kind, _ in QUOTED])
def test_error_that_quotes_its_text_prints_it_once(
    parse: Callable[[], Any], kind: type[errors.SteelyardError]
) -> None:
    with pytest.raises(kind) as caught:
        parse()
    assert "\n" not in str(caught.value)


def test_named_error_keeps_its_fields_and_its_marker() -> None:
    marked = errors.InvalidQuery("wrong", "a/b", (1, 2)).named("limit")
    assert (marked.text, marked.position) == ("a/b", (1, 2))
    assert str(marked) == "limit: wrong\n  a/b\n   ^"
    quoted = errors.InvalidQuery("'a' is wrong", "a").named("limit")
    assert (quoted.text, quoted.position) == ("a", (0, 1))
    assert str(quoted) == "limit: 'a' is wrong"


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidQuery("wrong", "a/b", (1, 2)),
        errors.InvalidQuery("'a' is wrong", "a"),
        errors.PluginError("missing", "installed: none", "Nothing"),
        errors.InvalidCloud("wrong", "a.yaml", line=3, path=("hosts",), text="x"),
        InvalidOption("a.conf:2: [steelyard] seed", "many", "expected a whole number"),
        InvalidOption("[steelyard_tags] connection", None, "the value is not allowed"),
    ],
)
def test_errors_keep_their_fields_when_pickled(error: errors.SteelyardError) -> None:
    copied = pickle.loads(pickle.dumps(error))
    assert vars(copied) == vars(error)
    assert str(copied) == str(error)
