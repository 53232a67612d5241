"""The consumer client on a real Placement, compared with the store."""

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest

from steelyard.consumers import ConsumerStore, PlacementConsumers
from steelyard.errors import (
    BadRequest,
    ConcurrentUpdate,
    InvalidAllocations,
    InvalidConsumerType,
    OverCapacity,
)
from support.nova import placements
from support.nova.consumers_in_both import (
    LATEST,
    PROVIDERS,
    body,
)

NUMBERS = itertools.count()


def write(consumer: str, generation: int | None, kind: str, project: str, **amounts: int) -> Any:
    return {consumer: body(generation, kind, project=project, one=amounts)}


def test_client_answers_as_the_store(placement: Any, store: ConsumerStore) -> None:
    one, other = (f"4fffffff-0000-4000-8000-00000000000{n}" for n in (1, 2))
    project = "of the client"
    client = PlacementConsumers(placement)
    for model in (client, store):
        bodies = write(one, None, "INSTANCE", project, VCPU=2)
        model.post_allocations(bodies | write(other, None, "MIGRATION", project, VCPU=3))
        found = model.get_allocations(one)
        assert (found["consumer_generation"], found["consumer_type"]) == (1, "INSTANCE")
        model.put_allocations(one, found)
        with pytest.raises(ConcurrentUpdate) as caught:
            model.put_allocations(one, found)
        assert caught.value.status == 409
        with pytest.raises(InvalidAllocations):
            model.put_allocations(one, {**found, "consumer_type": "instance"})
    for asked in ((), ("u",), ("u", "all"), (None, "INSTANCE"), (None, "UNKNOWN"), ("v", None)):
        assert client.usages(project, *asked) == store.usages(project, *asked)
    assert client.count(project) == store.count(project) == 2
    assert client.count(project, "u", "INSTANCE") == 1
    with pytest.raises(InvalidConsumerType, match="invalid consumer type 'UNKNOWN': Placement"):
        client.post_allocations(write(one, 2, "UNKNOWN", project, VCPU=1))
    with pytest.raises(InvalidConsumerType, match="invalid consumer type 'instance'"):
        client.usages(project, None, "instance")


def test_untyped_and_unknown_consumers_are_counted_together(placement: Any, caplog: Any) -> None:
    untyped, called = (f"5fffffff-0000-4000-8000-00000000000{n}" for n in (1, 2))
    project = "of untyped consumers"
    old = write(untyped, None, "", project, VCPU=2)
    del old[untyped]["consumer_type"]
    assert placement.post("/allocations", json=old, headers=placements.at("1.37")).ok
    client = PlacementConsumers(placement)
    assert client.get_allocations(untyped)["consumer_type"] == "UNKNOWN"
    one = {"consumer_count": 1, "VCPU": 2}
    assert client.usages(project) == {"usages": {"UNKNOWN": one}}
    stored = write(called, None, "UNKNOWN", project, VCPU=5)
    assert placement.post("/allocations", json=stored, headers=LATEST).ok
    both = {"usages": {"UNKNOWN": {"consumer_count": 2, "VCPU": 7}}}
    with caplog.at_level("WARNING"):
        assert client.usages(project) == client.usages(project, None, "UNKNOWN") == both
    assert "Counting the consumers that Placement stores with type 'UNKNOWN'" in caplog.text


def test_client_reshapes(placement: Any) -> None:
    consumer = "6fffffff-0000-4000-8000-000000000001"
    client = PlacementConsumers(placement)
    client.post_allocations(write(consumer, None, "INSTANCE", "of the reshaper", VCPU=2))
    url = f"/resource_providers/{PROVIDERS[1]}/inventories"
    there = placement.get(url, headers=LATEST).json()
    moved = write(consumer, 1, "MIGRATION", "of the reshaper", VCPU=3)
    client.reshape({"inventories": {PROVIDERS[1]: there}, "allocations": moved})
    found = client.get_allocations(consumer)
    assert (found["consumer_type"], found["consumer_generation"]) == ("MIGRATION", 2)
    # Placement itself rejects a reshape without inventories.
    client.reshape({"allocations": write(consumer, 2, "INSTANCE", "of the reshaper", VCPU=1)})
    client.reshape({"inventories": {}, "allocations": {}})
    found = client.get_allocations(consumer)
    assert (found["consumer_type"], found["consumer_generation"]) == ("INSTANCE", 3)


def test_client_over_an_inventory_raises_over_capacity(placement: Any) -> None:
    consumer = "7fffffff-0000-4000-8000-000000000001"
    too_much = write(consumer, None, "INSTANCE", "over capacity", VCPU=10**9 + 1)
    client = PlacementConsumers(placement)
    asked: list[Callable[[], None]] = [
        lambda: client.post_allocations(too_much),
        lambda: client.put_allocations(consumer, too_much[consumer]),
    ]
    for ask in asked:
        with pytest.raises(OverCapacity, match="Unable to allocate inventory") as caught:
            ask()
        assert caught.value.status == 409
        assert not isinstance(caught.value, ConcurrentUpdate)


def test_client_refuses_to_reshape_to_unknown(placement: Any) -> None:
    consumer = "8fffffff-0000-4000-8000-000000000001"
    client = PlacementConsumers(placement)
    there = placement.get(f"/resource_providers/{PROVIDERS[1]}/inventories", headers=LATEST).json()
    inventories = {PROVIDERS[1]: there}
    moved = write(consumer, None, "UNKNOWN", "of the reshaper", VCPU=3)
    with pytest.raises(InvalidConsumerType, match="invalid consumer type 'UNKNOWN': Placement"):
        client.reshape({"inventories": inventories, "allocations": moved})
    assert client.get_allocations(consumer) == {"allocations": {}}
    moved[consumer]["consumer_type"] = "instance"
    with pytest.raises(
        InvalidAllocations, match=rf"^\$\.allocations\['{consumer}'\]\.consumer_type"
    ):
        client.reshape({"inventories": inventories, "allocations": moved})
    client.reshape({"inventories": inventories, "allocations": {}})


ODD = ("\ud800", "a\ud800b", "\0", "x\0y")


def _put(model: Any, consumer: str, whole: Any) -> None:
    model.put_allocations(consumer, whole)


def _post(model: Any, consumer: str, whole: Any) -> None:
    model.post_allocations({consumer: whole})


@pytest.mark.parametrize("odd", ODD)
def test_client_and_store_reject_and_quote_invalid_text(
    placement: Any, store: ConsumerStore, odd: str
) -> None:
    consumer = "9fffffff-0000-4000-8000-000000000001"
    client = PlacementConsumers(placement)
    good = body(None, "INSTANCE", one={"VCPU": 1})
    bad = [
        {**good, "project_id": odd},
        {**good, "user_id": odd},
        {**good, "consumer_type": odd},
        {**good, "mappings": {odd: [PROVIDERS[0]]}},
        {**good, odd: 1},
        {**good, "allocations": {odd: {"resources": {"VCPU": 1}}}},
        {**good, "allocations": {PROVIDERS[0]: {"resources": {odd: 1}}}},
    ]
    calls: list[Callable[[Any], object]] = [
        lambda model: model.usages(odd),
        lambda model: model.usages("p", odd),
        lambda model: model.usages("p", "u", odd),
        lambda model: model.count(odd),
        lambda model: model.count("p", odd),
        lambda model: model.count("p", "u", odd),
        lambda model: model.get_allocations(odd),
        lambda model: model.delete_allocations(odd),
        lambda model: model.put_allocations(odd, good),
        lambda model: model.post_allocations({odd: good}),
    ]
    for each in bad:
        calls += [
            functools.partial(_put, consumer=consumer, whole=each),
            functools.partial(_post, consumer=consumer, whole=each),
        ]
    for model in (client, store):
        for call in calls:
            with pytest.raises(BadRequest, match=re.escape(ascii(odd)[1:-1])):
                call(model)
    reshapes: list[Any] = [
        *({"inventories": {}, "allocations": {consumer: each}} for each in bad),
        {"inventories": {}, "allocations": {odd: good}},
        {"inventories": {odd: {}}, "allocations": {}},
        {"inventories": {PROVIDERS[0]: {"inventories": {odd: {}}}}, "allocations": {}},
        {"inventories": {PROVIDERS[0]: {"inventories": {"A": {odd: 1}}}}, "allocations": {}},
        {"inventories": {PROVIDERS[0]: {odd: 1}}, "allocations": {}},
        {"inventories": {}, "allocations": {}, odd: 1},
    ]
    for each in reshapes:
        with pytest.raises(BadRequest, match=re.escape(ascii(odd)[1:-1])):
            client.reshape(each)
    for each in bad:
        with pytest.raises(BadRequest, match=re.escape(ascii(odd)[1:-1])):
            store.reshape({"allocations": {consumer: each}})
    with pytest.raises(BadRequest, match=re.escape(ascii(odd)[1:-1])):
        client.consumers_of(provider=odd)
