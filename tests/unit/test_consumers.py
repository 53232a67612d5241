from typing import Any

import pytest

from steelyard.consumers import ConsumerType, bodies
from steelyard.errors import InvalidAllocations, InvalidConsumerType

CONSUMER = "71921e4e-1629-4c5b-bf8d-338d915d2ef3"
PROVIDER = "e10927c4-8bc9-465d-ac60-d2f79f7e4a00"


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


@pytest.mark.parametrize("asked", [None, [], {}, {"x": {}}, "text"])
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
