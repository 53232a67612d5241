import difflib
import random
from collections.abc import Mapping
from typing import Any

import pytest

from steelyard.consumers import ConsumerType, bodies
from steelyard.consumers.names import near_misses
from steelyard.errors import BadRequest, InvalidAllocations, InvalidConsumerType

CONSUMER = "71921e4e-1629-4c5b-bf8d-338d915d2ef3"
PROVIDER = "e10927c4-8bc9-465d-ac60-d2f79f7e4a00"
TWICE = [PROVIDER, PROVIDER.upper()]


@pytest.mark.parametrize("name", ["INSTANCE", "A", "_", "9", "INTANCE", "UNKNOWN", "A" * 255])
def test_names(name: str) -> None:
    assert str(ConsumerType(name)) == name
    assert ConsumerType(name) == ConsumerType(name)


@pytest.mark.parametrize(
    "name", ["", "instance", "all", "unknown", "A-B", "A B", "A\n", "É", "A" * 256, None, 5]
)
def test_what_is_no_name_is_quoted(name: Any) -> None:
    with pytest.raises(InvalidConsumerType) as caught:
        ConsumerType(name)
    assert f"{name!r:.300} is no consumer type; it is 1 to 255 characters" in str(caught.value)
    assert caught.value.status == 400


def all_near_misses(counts: Mapping[str, int]) -> dict[str, list[str]]:
    """Each name compared with each."""
    found = {
        name: difflib.get_close_matches(
            name,
            [other for other in counts if (-counts[other], other) < (-counts[name], name)],
            cutoff=0.85,
        )
        for name in counts
    }
    return {name: near for name, near in found.items() if near}


@pytest.mark.parametrize("seed", range(5))
def test_near_misses_of_some_names_are_all_found(seed: int) -> None:
    generator = random.Random(seed)
    counts = {
        "".join(generator.choices("AB_", k=generator.randint(1, 20))): generator.randint(0, 5)
        for _ in range(100)
    }
    assert near_misses(counts) == all_near_misses(counts)
    assert near_misses(counts)


def test_near_misses_of_many_names_cost_no_more_for_each(monkeypatch: Any) -> None:
    compared = []

    def get_close_matches(name: str, others: list[str], cutoff: float) -> list[str]:
        compared.append(len(others))
        return []

    monkeypatch.setattr("difflib.get_close_matches", get_close_matches)
    near_misses({f"TYPE_{number:0{digits}}": 1 for number in range(999) for digits in (4, 5)})
    assert len(compared) == 2 * 999
    assert max(compared) <= 100


def test_a_slip_among_many_names_is_found() -> None:
    rare = {f"{number:04}_CUSTOM": 1 for number in range(2000)}
    near = near_misses({**rare, "INSTANCE_OF": 40, "INSTANCE_FO": 1, "MIGRATION": 2})
    assert near["INSTANCE_FO"] == ["INSTANCE_OF"]


def test_what_is_there_from_the_beginning_is_no_slip() -> None:
    assert near_misses({"UNKNOWN": 0, "UNKNOW": 3}) == {"UNKNOW": ["UNKNOWN"]}


def body(**changes: Any) -> Any:
    whole = {
        "allocations": {PROVIDER: {"resources": {"VCPU": 2, "MEMORY_MB": 3}, "generation": 4}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": 1,
        "consumer_type": "INSTANCE",
        "mappings": {"": [PROVIDER]},
    }
    return {key: value for key, value in {**whole, **changes}.items() if value is not ...}


def test_a_write_of_one_consumer() -> None:
    write = bodies.put(CONSUMER.upper(), body(mappings=...))
    assert write == bodies.Write(
        CONSUMER, "p", "u", ConsumerType("INSTANCE"), 1, {PROVIDER: {"VCPU": 2, "MEMORY_MB": 3}}
    )
    gone = bodies.put(CONSUMER, body(allocations={}, consumer_generation=None, mappings=...))
    assert gone.resources == {}
    assert gone.generation is None


def test_a_write_of_many_consumers() -> None:
    other = "30328d13-e299-4a93-a102-61e4ccabe474"
    writes = bodies.post(
        {CONSUMER: body(mappings=...), other: body(mappings=..., consumer_type="UNKNOWN")}
    )
    assert [(write.consumer, str(write.type)) for write in writes] == [
        (CONSUMER, "INSTANCE"),
        (other, "UNKNOWN"),
    ]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"consumer_type": ...}, "$: 'consumer_type' is a required property"),
        ({"consumer_type": "instance"}, "$.consumer_type: 'instance' does not match"),
        ({"consumer_type": "A" * 256}, "$.consumer_type"),
        ({"consumer_generation": "1"}, "$.consumer_generation: '1' is not of type"),
        ({"project_id": ""}, "$.project_id"),
        ({"user_id": 5}, "$.user_id: 5 is not of type 'string'"),
        ({"more": 1}, "$: Additional properties are not allowed ('more' was unexpected)"),
        ({"allocations": []}, "$.allocations: [] is not of type 'object'"),
        ({"allocations": {"x": {"resources": {"VCPU": 1}}}}, "$.allocations: 'x' does not match"),
        ({"allocations": {PROVIDER: {"resources": {}}}}, f"$.allocations['{PROVIDER}'].resources"),
        (
            {"allocations": {PROVIDER: {"resources": {"VCPU": 0}}}},
            f"$.allocations['{PROVIDER}'].resources.VCPU: 0 is less than the minimum of 1",
        ),
        ({"mappings": {}}, "$.mappings"),
        ({"mappings": {"a": ["x"]}}, "$.mappings.a[0]: 'x' is no UUID"),
        (
            {"consumer_type": "INSTANCE\n"},
            "$.consumer_type: 'INSTANCE\\n' has more than one line",
        ),
        ({"consumer_type": None}, "$.consumer_type: None is not of type 'string'"),
        ({"consumer_generation": True}, "$.consumer_generation: True is not of type"),
        ({"consumer_generation": 1.5}, "$.consumer_generation: 1.5 is not of type"),
        ({"consumer_generation": 2**31 - 1}, "$.consumer_generation: 2147483647 is greater than"),
        ({"consumer_generation": -(2**31)}, "$.consumer_generation: -2147483648 is less than"),
        ({"project_id": "p\0"}, "$.project_id: 'p\\x00' has a NUL, or"),
        ({"user_id": "\ud800"}, "$.user_id: '\\ud800' has a NUL, or"),
        ({"project_id": "p" * 256}, "$.project_id: 'ppp"),
        (
            {"allocations": {PROVIDER: {"resources": {"VCPU": 2**31}}}},
            f"$.allocations['{PROVIDER}'].resources.VCPU: 2147483648 is greater than the maximum",
        ),
        (
            {"allocations": {PROVIDER: {"resources": {"VCPU\n": 1}}}},
            f"$.allocations['{PROVIDER}'].resources: 'VCPU\\n' has more than one line",
        ),
        (
            {"allocations": {PROVIDER: {"resources": {"A" * 256: 1}}}},
            f"$.allocations['{PROVIDER}'].resources: 'AAA",
        ),
        (
            {"allocations": {"-" * 36: {"resources": {"VCPU": 1}}}},
            f"$.allocations: resource provider '{'-' * 36}' is no UUID",
        ),
        (
            {"allocations": {text: {"resources": {"VCPU": 1}} for text in TWICE}},
            f"$.allocations: resource provider {PROVIDER} is there twice",
        ),
        # What only Python can say.
        ({"allocations": {5: {"resources": {"VCPU": 1}}}}, "$.allocations: {5: "),
        ({"allocations": {PROVIDER: {"resources": {None: 1}}}}, f"$.allocations['{PROVIDER}'].res"),
        ({"project_id": b"p"}, "$.project_id: b'p' is not of type 'string'"),
    ],
)
def test_the_place_of_a_fault_is_named(changes: Any, path: str) -> None:
    asked = body(**{"mappings": ..., **changes})
    with pytest.raises(InvalidAllocations) as caught:
        bodies.put(CONSUMER, asked)
    assert str(caught.value).startswith(path)
    assert caught.value.status == 400
    with pytest.raises(InvalidAllocations) as caught:
        bodies.post({CONSUMER: asked})
    assert str(caught.value).startswith(f"$['{CONSUMER}']" + path.removeprefix("$"))


def test_a_number_that_is_too_long_to_be_written() -> None:
    with pytest.raises(InvalidAllocations, match="limit"):
        bodies.put(CONSUMER, body(mappings=..., consumer_generation=10**5000))


def test_a_body_that_is_nested_without_end() -> None:
    nested: list[Any] = []
    for _ in range(10**5):
        nested = [nested]
    with pytest.raises(InvalidAllocations, match="nested too deeply"):
        bodies.put(CONSUMER, body(mappings=..., user_id=nested))


def test_integers_that_json_writes_with_a_point() -> None:
    amounts = {PROVIDER: {"resources": {"VCPU": 2.0}}}
    write = bodies.put(CONSUMER, body(mappings=..., allocations=amounts, consumer_generation=1.0))
    assert repr((write.generation, write.resources)) == repr((1, {PROVIDER: {"VCPU": 2}}))


def test_a_reshape_may_be_of_nobody() -> None:
    assert bodies.reshape({}) == []
    asked = {CONSUMER: body(mappings=...)}
    assert bodies.reshape(asked) == bodies.post(asked)


@pytest.mark.parametrize(
    ("owner", "path"),
    [
        ((None,), "$.project_id: None is not of type 'string'"),
        (("",), "$.project_id"),
        (("p" * 256,), "$.project_id"),
        (("p\0",), "$.project_id: 'p\\x00' has a NUL, or"),
        (("p", ""), "$.user_id"),
        (("p", "u\ud800"), "$.user_id: 'u\\ud800' has a NUL, or"),
    ],
)
def test_whose_usages_there_cannot_be(owner: Any, path: str) -> None:
    with pytest.raises(BadRequest) as caught:
        bodies.check_owner(*owner)
    assert str(caught.value).startswith(path)
    bodies.check_owner("p")
    bodies.check_owner("p", "u")


@pytest.mark.parametrize("asked", [None, [], {}, {"x": {}}, {5: {}}, "text"])
def test_what_is_no_body_is_refused(asked: Any) -> None:
    with pytest.raises(InvalidAllocations):
        bodies.post(asked)


def test_a_consumer_is_there_once() -> None:
    asked = body(mappings=...)
    with pytest.raises(InvalidAllocations, match=f"consumer {CONSUMER} is there twice"):
        bodies.post({CONSUMER: asked, CONSUMER.upper(): asked})


def test_a_consumer_has_a_uuid() -> None:
    with pytest.raises(InvalidAllocations, match="consumer 'x' is no UUID; write one such as"):
        bodies.put("x", body(mappings=...))
    with pytest.raises(InvalidAllocations, match="is no UUID"):
        bodies.post({"-" * 36: body(mappings=...)})
