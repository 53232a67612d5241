"""Laws of loading: the quick ways accept what the careful ones accept, with the same result."""

import copy
import dataclasses
import io
import json
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.cloud.files import loading, plain_yaml, records, syntax
from steelyard.cloud.files.syntax import Mistake
from steelyard.errors import InvalidCloud
from support.examples import examples

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

numbers = st.sampled_from(["0", "1", "64", "4096", "007", "999999999999999"])
amounts = {"vcpus": numbers, "ram_mb": numbers, "disk_gb": numbers}
texts = st.sampled_from(["", "a", "nvme", "<or> a <or> b", "~", "true", "é", "a\nb"])
some = st.dictionaries(texts, st.one_of(texts, st.booleans()), max_size=2)
of_hosts: dict[str, Any] = {
    "traits": st.lists(st.sampled_from(["A", "B", "C"]), max_size=3),
    "uuid": texts,
    "reserved": st.fixed_dictionaries({}, optional=amounts),
    "used": st.fixed_dictionaries({}, optional={**amounts, "VGPU": numbers}),
    "allocation_ratios": st.dictionaries(
        st.sampled_from(["vcpus", "ram_mb"]), st.sampled_from(["1", "1.50", "1e1", "0"])
    ),
    "resources": st.dictionaries(st.sampled_from(["VGPU", "CUSTOM_A"]), numbers),
    "out_of_service": st.sampled_from(["", "broken disk"]),
    "min_units": st.fixed_dictionaries({}, optional={"vcpus": st.just("2")}),
    "hypervisor_version": numbers,
    "cpu_info": st.just({"arch": "x86_64", "features": ["aes"], "topology": {"cores": "4"}}),
    "providers": st.just([{"name": "numa0", "inventories": {"VGPU": {"total": "4"}}}]),
}
hosts = st.fixed_dictionaries(amounts, optional=of_hosts)
flavors = st.fixed_dictionaries(amounts, optional={"extra_specs": some})
groups = st.one_of(
    st.fixed_dictionaries(
        {"policy": st.sampled_from(["affinity", "soft-affinity", "soft-anti-affinity"])},
        optional={"uuid": st.uuids().map(str)},
    ),
    st.fixed_dictionaries(
        {"policy": st.just("anti-affinity")},
        optional={"rules": st.just({"max_server_per_host": "2"})},
    ),
)


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    """Return the content of a file, which is valid unless ``used`` has a class without amount."""

    def named(strategy: st.SearchStrategy[Any], prefix: str, least: int = 0) -> dict[str, Any]:
        values = draw(st.lists(strategy, min_size=least, max_size=4))
        return {f"{prefix}{number}": value for number, value in enumerate(values)}

    found = {
        "hosts": named(hosts, "h", 1),
        "flavors": named(flavors, "f", 1),
        "server_groups": named(groups, "g"),
    }
    host_names = st.sampled_from([*found["hosts"]])
    found["aggregates"] = named(
        st.fixed_dictionaries({"hosts": st.lists(host_names)}, optional={"metadata": some}), "a"
    )
    optional: dict[str, Any] = {
        "uuid": st.uuids().map(str),
        "project": texts,
        "scheduler_hints": st.dictionaries(texts, st.one_of(texts, st.lists(texts)), max_size=2),
    }
    if found["server_groups"]:
        optional["group"] = st.sampled_from([*found["server_groups"], None])
    one = {"host": host_names, "flavor": st.sampled_from([*found["flavors"]])}
    found["servers"] = named(st.fixed_dictionaries(one, optional=optional), "s")
    return found


wrong: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [None, True, "", "x", "-1", "1.5", "h0", "h9", "g0", "VGPU", "9" * 20, "\u0661"]
    ),
    st.sampled_from([[], ["h0"], ["h9"], [["h0"]], [None], [True]]),
    st.sampled_from([{}, {"x": "1"}, {"VGPU": "1"}, {"vcpus": "1"}]),
)
keys = st.sampled_from(["", "uuid", "vcpus", "traits", "policy", "rules", "x", "é", "\x07", "used"])


@st.composite
def changed(draw: st.DrawFn) -> Any:
    """Return content in which up to two values or keys are replaced, added or deleted."""
    content = copy.deepcopy(draw(contents()))
    for _ in range(draw(st.integers(0, 2))):
        place: Any = content
        while True:
            inner = [each for each in place if isinstance(place[each], dict) and place[each]]
            if not inner or draw(st.integers(0, 4)) == 0:
                break
            place = place[draw(st.sampled_from(inner))]
        key = draw(st.sampled_from([*place])) if place and draw(st.booleans()) else draw(keys)
        if draw(st.integers(0, 3)) == 0:
            place.pop(key, None)
        else:
            place[key] = copy.deepcopy(draw(wrong))
    return content


def outcome(content: Any) -> Any:
    """Return the cloud, or the mistake, as a value that can be compared."""
    try:
        found = loading.described(content)
    except Mistake as mistake:
        return mistake.message, mistake.path, mistake.text
    return found._replace(aggregates={n: _fields(a) for n, a in found.aggregates.items()}), [
        [*section] for section in found
    ]


def _fields(aggregate: Any) -> Any:
    return {field.name: getattr(aggregate, field.name) for field in dataclasses.fields(aggregate)}


@settings(max_examples=examples(300))
@given(changed())
def test_columns_and_single_records_give_the_same_cloud_or_mistake(content: Any) -> None:
    with mock.patch.object(records, "read", side_effect=Mistake("only single records")):
        expected = outcome(content)
    assert outcome(content) == expected
    with mock.patch.object(records, "read_each", side_effect=Mistake("only columns")):
        quick = outcome(content)
    assert quick == expected or (quick[0] == "only columns" and isinstance(expected[0], str))


parts = st.one_of(
    st.sampled_from(["a", "b", "null", "~", "1", "'a'", '"b"', '"\\x41"', "''", "é", "<<", "|\n"]),
    st.sampled_from(["a: ", "b: ", "a: b\n", "{a: b}", "[a]", ": ", ":", ", ", "\n", "\n  "]),
    st.sampled_from(["\n- ", "- ", "{", "}", "[", "]", "? ", "!", "!!str", "!x", "&c", "*c"]),
    st.sampled_from(["# a", "---\n", "...\n", "%YAML 1.1\n", "\t", "\ufeff"]),
)


@settings(max_examples=examples(500))
@given(st.lists(parts, max_size=9).map("".join), st.booleans())
def test_plain_yaml_is_read_as_by_the_loader_of_nodes(text: str, nulls: bool) -> None:
    parse = syntax.parsed_with_nulls if nulls else syntax.parsed

    def found() -> Any:
        try:
            return parse(io.StringIO(text), "cloud.yaml")
        except InvalidCloud as error:
            return str(error), error.line, error.text

    with mock.patch.object(plain_yaml, "read", side_effect=plain_yaml.NotPlainError):
        expected = found()
    assert found() == expected


json_values = st.recursive(
    st.one_of(texts, st.booleans(), st.none(), st.integers(-1, 9)),
    lambda values: st.one_of(st.lists(values), st.lists(st.tuples(texts, values))),
    max_leaves=8,
)


def as_json(value: Any) -> str:
    """Return the value as JSON; a list of pairs is an object, whose keys may be repeated."""
    if not isinstance(value, list):
        return json.dumps(value)
    if value and all(isinstance(item, tuple) for item in value):
        return "{" + ", ".join(f"{json.dumps(k)}: {as_json(v)}" for k, v in value) + "}"
    return "[" + ", ".join(as_json(item) for item in value) + "]"


def repeats(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    if value and all(isinstance(item, tuple) for item in value):
        names = [name for name, _ in value]
        return len(set(names)) < len(names) or any(repeats(item) for _, item in value)
    return any(map(repeats, value))


@settings(max_examples=examples(200))
@given(json_values)
def test_json_is_rejected_if_and_only_if_a_key_is_repeated(value: Any) -> None:
    file = io.StringIO(as_json(value))
    if repeats(value):
        with pytest.raises(InvalidCloud, match="duplicate key"):
            syntax.parsed(file, "cloud.json")
    else:
        assert json.loads(file.getvalue(), parse_int=str) == syntax.parsed(file, "cloud.json")
