"""Intended differences between the store and a real Placement, and equal edge cases."""

import itertools
from typing import Any

import pytest

from steelyard.errors import (
    InvalidAllocations,
)
from support.nova.consumers_in_both import (
    DASHLESS,
    LATEST,
    PROVIDERS,
    SPELLINGS,
    Both,
    body,
    new,
    spelled,
    status,
)

NUMBERS = itertools.count()


def taking(resources: Any, provider: str = PROVIDERS[0]) -> Any:
    return {"allocations": {provider: {"resources": resources}}}


# By difference: the change of a valid body, Placement's status and the store's.
NAMED: dict[str, tuple[Any, int, int]] = {
    "a newline after a type": ({"consumer_type": "INSTANCE\n"}, 204, 400),
    "NUL in a project": ({"project_id": "p\0"}, 204, 400),
    "NUL in a user": ({"user_id": "\0"}, 204, 400),
    "a lone surrogate in a project": ({"project_id": "\ud800"}, 500, 400),
    "a lone surrogate in a user": ({"user_id": "u\udfff"}, 500, 400),
    "an amount beyond the tables": (taking({"VCPU": 2**31}), 409, 400),
    "a generation beyond the tables": ({"consumer_generation": 2**31 - 1}, 409, 400),
    "a generation below the tables": ({"consumer_generation": -(2**31)}, 409, 400),
    "a missing provider": (taking({"VCPU": 1}, new()), 400, 204),
    "a provider in upper case": (taking({"VCPU": 1}, PROVIDERS[0].upper()), 400, 204),
    "a provider with other dashes": (taking({"VCPU": 1}, f"{DASHLESS}----"), 400, 204),
    "a missing class": (taking({"CUSTOM_NOT_THERE": 1}), 400, 204),
    "a class without inventory": (taking({"PCI_DEVICE": 1}), 409, 204),
    "more than the inventory": (taking({"VCPU": 10**9 + 1}), 409, 204),
}


@pytest.mark.parametrize("name", NAMED)
def test_write_has_the_intended_difference(both: Both, name: str) -> None:
    change, placement_status, store_status = NAMED[name]
    whole = body(one={"VCPU": 1}) | change
    both.put(new(), whole, (placement_status, store_status))
    both.post({new(): whole}, (placement_status, store_status))
    both.reshape({new(): whole}, (placement_status, store_status))


def test_largest_values_have_equal_answers(both: Both) -> None:
    consumer = new()
    project, user, kind = "é" * 255, "🦊" * 255, "A" * 255
    much = {"VCPU": 10**9 - 10**6}
    assert both.put(consumer, body(None, kind, project=project, user=user, one=much)) == 204
    found = both.get(consumer)
    assert both.usages(project, user, kind) == {kind: {"consumer_count": 1, **much}}
    for generation in (2**31 - 2, 0, -1, -(2**31) + 1):
        assert both.put(consumer, {**found, "consumer_generation": generation}) == 409
    assert both.delete(consumer) == 204
    with pytest.raises(InvalidAllocations, match=r"VCPU: 2147483648 is greater than the maximum"):
        both.store.put_allocations(consumer, body(one={"VCPU": 2**31}))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_uuids_have_equal_answers(both: Both, spelling: str) -> None:
    # A PUT accepts any spelling of a UUID, a POST and a reshape only the canonical one.
    first, second, third = (spelled(new(), spelling) for _ in range(3))
    written = both.put(first, body(one={"VCPU": 1}))
    assert written == (204 if spelling in {"as it is", "dashless", "braces", "urn"} else 400)
    usual = 204 if spelling == "as it is" else 400
    assert both.post({second: body(one={"VCPU": 1})}) == usual
    assert both.reshape({third: body(one={"VCPU": 1})}) == usual
    mapped = body(one={"VCPU": 1}) | {"mappings": {"a": [first]}}
    assert both.put(new(), mapped) == written


def test_uuids_have_the_intended_differences(both: Both) -> None:
    # Placement normalises the UUID of a PUT and compares others as written.
    consumer = "4abcdef0-0000-4000-8000-000000000001"
    whole = body(one={"VCPU": 1})
    assert both.put(consumer.upper(), whole) == 204
    both.get(consumer)
    assert status(lambda: both.store.get_allocations(consumer.upper()))[1] == both.get(consumer)
    answer = both.placement.get(f"/allocations/{consumer.upper()}", headers=LATEST)
    assert answer.json() == {"allocations": {}}
    other = new()
    both.post({other: whole, other.upper(): whole}, (204, 400))
    both.post({f"{new()}\n": whole}, (204, 400))
    both.post({"-" * 36: whole}, (204, 400))
    both.delete("not a UUID", (404, 400))
    assert both.placement.get("/allocations/x", headers=LATEST).json() == {"allocations": {}}
    assert status(lambda: both.store.get_allocations("x"))[0] == 400


@pytest.mark.parametrize(
    ("project", "user", "kind", "placement_status"),
    [
        # The store calls this type UNKNOWN.
        ("p", None, "unknown", 200),
        # Placement accepts text that begins with "all", although no type can have this name.
        ("p", None, "allocations", 200),
        ("p", None, "INSTANCE\n", 200),
        ("p\0", None, None, 200),
        ("p", "u\0", None, 200),
        ("\ud800", None, None, 500),
        ("p", "\ud800", None, 500),
    ],
)
def test_query_has_the_intended_difference(
    both: Both, project: str, user: Any, kind: Any, placement_status: int
) -> None:
    both.usages(project, user, kind, named=(placement_status, 400))


def test_write_of_nothing_for_missing_consumer_creates_none(both: Both) -> None:
    # Placement then has a consumer without allocations and with generation 0, the store none.
    for write in (both.put, lambda consumer, whole, named: both.post({consumer: whole}, named)):
        consumer = new()
        write(consumer, body(), (204, 204))
        write(consumer, body(), (409, 204))
        assert both.get(consumer) == {"allocations": {}}
