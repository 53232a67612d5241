"""The bodies of requests that write allocations."""

from typing import Any

import pytest

from steelyard.consumers import ConsumerType, bodies
from steelyard.errors import BadRequest, InvalidAllocations

CONSUMER = "71921e4e-1629-4c5b-bf8d-338d915d2ef3"


PROVIDER = "e10927c4-8bc9-465d-ac60-d2f79f7e4a00"


TWICE = [PROVIDER, PROVIDER.upper()]


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


def test_put_returns_one_write() -> None:
    write = bodies.put(CONSUMER.upper(), body(mappings=...))
    assert write == bodies.Write(
        CONSUMER, "p", "u", ConsumerType("INSTANCE"), 1, {PROVIDER: {"VCPU": 2, "MEMORY_MB": 3}}
    )
    gone = bodies.put(CONSUMER, body(allocations={}, consumer_generation=None, mappings=...))
    assert gone.resources == {}
    assert gone.generation is None


def test_post_returns_one_write_per_consumer() -> None:
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
        ({"mappings": {"a": ["x"]}}, "$.mappings.a[0]: 'x' is not a UUID"),
        (
            {"consumer_type": "INSTANCE\n"},
            "$.consumer_type: 'INSTANCE\\n' contains a newline",
        ),
        ({"consumer_type": None}, "$.consumer_type: None is not of type 'string'"),
        ({"consumer_generation": True}, "$.consumer_generation: True is not of type"),
        ({"consumer_generation": 1.5}, "$.consumer_generation: 1.5 is not of type"),
        ({"consumer_generation": 2**31 - 1}, "$.consumer_generation: 2147483647 is greater than"),
        ({"consumer_generation": -(2**31)}, "$.consumer_generation: -2147483648 is less than"),
        ({"project_id": "p\0"}, "$.project_id: 'p\\x00' contains a NUL or"),
        ({"user_id": "\ud800"}, "$.user_id: '\\ud800' contains a NUL or"),
        ({"project_id": "p" * 256}, "$.project_id: 'ppp"),
        (
            {"allocations": {PROVIDER: {"resources": {"VCPU": 2**31}}}},
            f"$.allocations['{PROVIDER}'].resources.VCPU: 2147483648 is greater than the maximum",
        ),
        (
            {"allocations": {PROVIDER: {"resources": {"VCPU\n": 1}}}},
            f"$.allocations['{PROVIDER}'].resources: 'VCPU\\n' contains a newline",
        ),
        (
            {"allocations": {PROVIDER: {"resources": {"A" * 256: 1}}}},
            f"$.allocations['{PROVIDER}'].resources: 'AAA",
        ),
        (
            {"allocations": {"-" * 36: {"resources": {"VCPU": 1}}}},
            f"$.allocations: resource provider: invalid UUID '{'-' * 36}'",
        ),
        (
            {"allocations": {text: {"resources": {"VCPU": 1}} for text in TWICE}},
            f"$.allocations: resource provider {PROVIDER} appears twice",
        ),
        # Values that JSON cannot contain.
        ({"allocations": {5: {"resources": {"VCPU": 1}}}}, "$.allocations: {5: "),
        ({"allocations": {PROVIDER: {"resources": {None: 1}}}}, f"$.allocations['{PROVIDER}'].res"),
        ({"project_id": b"p"}, "$.project_id: b'p' is not of type 'string'"),
    ],
)
def test_malformed_body_raises_error_with_its_path(changes: Any, path: str) -> None:
    asked = body(**{"mappings": ..., **changes})
    with pytest.raises(InvalidAllocations) as caught:
        bodies.put(CONSUMER, asked)
    assert str(caught.value).startswith(path)
    assert caught.value.status == 400
    with pytest.raises(InvalidAllocations) as caught:
        bodies.post({CONSUMER: asked})
    assert str(caught.value).startswith(f"$['{CONSUMER}']" + path.removeprefix("$"))


def test_number_with_too_many_digits_is_rejected() -> None:
    with pytest.raises(InvalidAllocations, match="limit"):
        bodies.put(CONSUMER, body(mappings=..., consumer_generation=10**5000))


def test_deeply_nested_body_is_rejected() -> None:
    nested: list[Any] = []
    for _ in range(10**5):
        nested = [nested]
    with pytest.raises(InvalidAllocations, match="nested too deeply"):
        bodies.put(CONSUMER, body(mappings=..., user_id=nested))


def test_integral_floats_become_integers() -> None:
    amounts = {PROVIDER: {"resources": {"VCPU": 2.0}}}
    write = bodies.put(CONSUMER, body(mappings=..., allocations=amounts, consumer_generation=1.0))
    assert repr((write.generation, write.resources)) == repr((1, {PROVIDER: {"VCPU": 2}}))


@pytest.mark.parametrize(
    ("owner", "path"),
    [
        ((None,), "$.project_id: None is not of type 'string'"),
        (("",), "$.project_id"),
        (("p" * 256,), "$.project_id"),
        (("p\0",), "$.project_id: 'p\\x00' contains a NUL or"),
        (("p", ""), "$.user_id"),
        (("p", "u\ud800"), "$.user_id: 'u\\ud800' contains a NUL or"),
    ],
)
def test_check_owner_rejects_malformed_project_or_user(owner: Any, path: str) -> None:
    with pytest.raises(BadRequest) as caught:
        bodies.check_owner(*owner)
    assert str(caught.value).startswith(path)
    bodies.check_owner("p")
    bodies.check_owner("p", "u")


@pytest.mark.parametrize("asked", [None, [], {}, {"x": {}}, {5: {}}, "text"])
def test_post_rejects_malformed_body(asked: Any) -> None:
    with pytest.raises(InvalidAllocations):
        bodies.post(asked)


def test_post_rejects_consumer_in_two_spellings() -> None:
    asked = body(mappings=...)
    with pytest.raises(InvalidAllocations, match=f"consumer {CONSUMER} appears twice"):
        bodies.post({CONSUMER: asked, CONSUMER.upper(): asked})


def test_body_with_malformed_consumer_uuid_is_rejected() -> None:
    with pytest.raises(
        InvalidAllocations, match="consumer: invalid UUID 'x': expected one such as"
    ):
        bodies.put("x", body(mappings=...))
    with pytest.raises(InvalidAllocations, match="invalid UUID"):
        bodies.post({"-" * 36: body(mappings=...)})


def test_reshaper_reads_the_allocations_of_the_body() -> None:
    asked = {CONSUMER: body(mappings=...)}
    inventories = {PROVIDER: {"resource_provider_generation": 1, "inventories": {}}}
    whole = {"inventories": inventories, "allocations": asked}
    assert bodies.reshaper(whole) == bodies.post(asked)
    assert bodies.reshaper({**whole, "allocations": {}}) == []
    assert bodies.reshaper({"allocations": asked}) == bodies.post(asked)


EMPTY = {"resource_provider_generation": 1, "inventories": {}}


@pytest.mark.parametrize(
    "inventories", [..., {}, {PROVIDER: EMPTY}, {PROVIDER: {"inventories": {}}}]
)
def test_reshaper_of_store_accepts_empty_inventories(inventories: Any) -> None:
    asked = {CONSUMER: body(mappings=...)}
    given = {} if inventories is ... else {"inventories": inventories}
    assert bodies.reshaper_of_store({**given, "allocations": asked}) == bodies.post(asked)
    assert bodies.reshaper_of_store({**given, "allocations": {}}) == []


@pytest.mark.parametrize(
    ("inventories", "message"),
    [
        (None, "$.inventories: None is not of type 'object'"),
        ({"x": EMPTY}, "$.inventories: 'x' does not match any of the regexes"),
        ({PROVIDER: {}}, f"$.inventories['{PROVIDER}']: 'inventories' is a required property"),
        (
            {PROVIDER: {**EMPTY, "total": 4}},
            f"$.inventories['{PROVIDER}']: Additional properties are not allowed ('total' was",
        ),
        (
            {PROVIDER: {**EMPTY, "inventories": {"VCPU": {"total": 4}}}},
            f"$.inventories['{PROVIDER}'].inventories: expected {{}}, since the store has no "
            f"inventories, got {{'VCPU': {{'total': 4}}}}; leave out 'inventories'",
        ),
        ({"-" * 36: EMPTY}, f"$.inventories: resource provider: invalid UUID '{'-' * 36}'"),
        (
            dict.fromkeys(TWICE, EMPTY),
            f"$.inventories: resource provider {PROVIDER} appears twice",
        ),
    ],
)
def test_reshaper_of_store_rejects_inventories(inventories: Any, message: str) -> None:
    with pytest.raises(InvalidAllocations) as caught:
        bodies.reshaper_of_store({"inventories": inventories, "allocations": {}})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ([], "$: [] is not of type 'object'"),
        ({"inventories": {}}, "$: 'allocations' is a required property"),
        (
            {"inventories": {}, "allocations": {CONSUMER: body(mappings=..., consumer_type="x")}},
            f"$.allocations['{CONSUMER}'].consumer_type: 'x' does not match",
        ),
        (
            {"inventories": {}, "allocations": {"-" * 36: body(mappings=...)}},
            f"$.allocations: consumer: invalid UUID '{'-' * 36}'",
        ),
        (
            {"inventories": {"\ud800": {}}, "allocations": {}},
            "$.inventories: '\\ud800' contains a NUL",
        ),
    ],
)
def test_malformed_reshaper_body_raises_error_with_its_path(asked: Any, path: str) -> None:
    with pytest.raises(InvalidAllocations) as caught:
        bodies.reshaper(asked)
    assert str(caught.value).startswith(path)
