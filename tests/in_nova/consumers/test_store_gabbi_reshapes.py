"""The cases of Placement's gabbi file ``reshaper.yaml`` in the store and in Placement."""

from typing import Any

import pytest

from support.nova.consumers_in_both import (
    PROVIDERS,
    Both,
    body,
    new,
)

DISK = {"DISK_GB": 10}


SERVER = {"MEMORY_MB": 1024, "VCPU": 2}


def test_empty_reshape_is_accepted(both: Both) -> None:
    assert both.reshape({}) == 204


@pytest.mark.parametrize("whole", [None, [], {"cows": "moo"}])
def test_malformed_reshape_is_rejected(both: Both, whole: Any) -> None:
    assert both.reshape(whole) == 400


def test_reshape_with_wrong_generation_is_rejected(both: Both) -> None:
    fresh, known = new(), new()
    both.put(known, body(one=DISK))
    assert both.reshape({fresh: body(99, one={"VCPU": 1})}) == 409
    assert both.reshape({known: body(None, one={"VCPU": 1})}) == 409
    assert both.get(known)["allocations"] == {PROVIDERS[0]: {"resources": DISK}}


def test_reshape_with_one_fault_changes_nothing(both: Both, project: str) -> None:
    root, child = new(), new()
    both.post({root: body(project=project, one=DISK), child: body(project=project, one=SERVER)})
    moved = {root: body(1, project=project, one=DISK), child: body(1, project=project, two=SERVER)}
    broken = moved | {child: {**moved[child], "bad_field": "moo"}}
    assert both.reshape(broken) == 400
    assert both.reshape(moved | {new(): body(3, project=project, one=DISK)}) == 409
    both.get(root)
    both.get(child)
    assert both.reshape(moved) == 204


def test_reshape_moves_allocations_to_a_child(both: Both, project: str) -> None:
    disk, cores, other = new(), new(), new()
    start = {
        disk: body(project=project, one={"DISK_GB": 1000}),
        cores: body(project=project, one={"VCPU": 8}),
        other: body(project=project, user="v", one={"DISK_GB": 20, "VCPU": 1}),
    }
    both.post(start)
    before = both.usages(project)
    moved = {
        disk: body(1, project=project, one={"DISK_GB": 1000}),
        cores: body(1, project=project, two={"VCPU": 8}),
        other: body(1, project=project, user="v", one={"DISK_GB": 20}, two={"VCPU": 1}),
    }
    assert both.reshape(moved) == 204
    assert both.usages(project) == before
    for consumer in moved:
        assert both.get(consumer)["consumer_generation"] == 2
    # Move back to new consumers, one of them with another type, and with mappings.
    fresh, typed = new(), new()
    together = {
        disk: body(2, project=project, one={"DISK_GB": 1000}) | {"mappings": {"": [PROVIDERS[0]]}},
        fresh: body(project=project, one={"VCPU": 8}),
        typed: body(None, "CHILD", project=project, user="v", one={"DISK_GB": 20, "VCPU": 1}),
        cores: body(2, project=project),
        other: body(2, project=project, user="v", one={"DISK_GB": 20}),
    }
    assert both.reshape(together) == 204
    for consumer in together:
        both.get(consumer)
    assert both.usages(project)["CHILD"] == {"consumer_count": 1, "DISK_GB": 20, "VCPU": 1}
    assert both.usages(project, kind="all")["all"]["consumer_count"] == 4


def test_reshape_of_nothing_for_missing_consumer_creates_none(both: Both) -> None:
    # Placement then has a consumer without allocations and with generation 0, the store none.
    consumer = new()
    both.reshape({consumer: body()}, (204, 204))
    both.reshape({consumer: body()}, (409, 204))
