"""The contract of the store and of the client, as scenarios that run on both.

Each scenario has consumers and a project of its own. The providers P1 and P2 exist and have room.
"""

import functools
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from steelyard.consumers import QuotaUsage
from steelyard.consumers.base import Consumers
from steelyard.errors import (
    BadRequest,
    ConcurrentUpdate,
    InvalidAllocations,
    InvalidConsumerType,
    NotFound,
)
from support.consumers.store_laws import P1, P2

NOTHING: dict[str, Any] = {"allocations": {}}


def new() -> str:
    """Return the ID of a new consumer or project."""
    return str(uuid.uuid4())


def body(
    project: str,
    generation: int | None = None,
    *,
    kind: str = "INSTANCE",
    user: str = "u",
    **used: Any,
) -> dict[str, Any]:
    """Return the body of a write; ``used`` has the resources of ``p1`` and ``p2``."""
    providers = {"p1": P1, "p2": P2}
    return {
        "allocations": {providers[name]: {"resources": used[name]} for name in used},
        "project_id": project,
        "user_id": user,
        "consumer_generation": generation,
        "consumer_type": kind,
    }


def check_write_is_read_and_can_be_sent_back(consumers: Consumers) -> None:
    one, project = new(), new()
    assert consumers.get_allocations(one) == NOTHING
    consumers.put_allocations(one, body(project, p1={"VCPU": 2, "MEMORY_MB": 512}, p2={"VCPU": 1}))
    found = consumers.get_allocations(one)
    assert found == body(project, 1, p1={"VCPU": 2, "MEMORY_MB": 512}, p2={"VCPU": 1})
    consumers.put_allocations(one, found)
    assert consumers.get_allocations(one) == {**found, "consumer_generation": 2}
    moved = body(project, 2, kind="MIGRATION", user="v", p2={"DISK_GB": 3})
    consumers.post_allocations({one: moved})
    assert consumers.get_allocations(one) == {**moved, "consumer_generation": 3}
    consumers.put_allocations(one, {**moved, "consumer_generation": 3, "allocations": {}})
    assert consumers.get_allocations(one) == NOTHING


def check_wrong_generation_is_a_concurrent_update(consumers: Consumers) -> None:
    one, other, project = new(), new(), new()
    consumers.put_allocations(one, body(project, p1={"VCPU": 2}))
    before = consumers.get_allocations(one)
    for consumer, generation in ((one, None), (one, 0), (one, 2), (other, 1)):
        wrong = body(project, generation, p1={"VCPU": 9})
        both = {consumer: wrong, new(): body(project, p1={"VCPU": 1})}
        writes = [
            functools.partial(consumers.put_allocations, consumer, wrong),
            functools.partial(consumers.post_allocations, both),
            functools.partial(consumers.reshape, {"allocations": both}),
        ]
        for write in writes:
            with pytest.raises(ConcurrentUpdate) as caught:
                write()
            assert type(caught.value) is ConcurrentUpdate
            assert caught.value.status == 409
    assert consumers.get_allocations(one) == before
    assert consumers.count(project) == 1


def check_delete_ignores_the_generation(consumers: Consumers) -> None:
    one, project = new(), new()
    consumers.put_allocations(one, body(project, p1={"VCPU": 2}))
    consumers.delete_allocations(one)
    assert consumers.get_allocations(one) == NOTHING
    with pytest.raises(NotFound) as caught:
        consumers.delete_allocations(one)
    assert caught.value.status == 404


def check_reshape_without_inventories_writes_allocations(consumers: Consumers) -> None:
    one, other, project = new(), new(), new()
    consumers.put_allocations(one, body(project, p1={"VCPU": 2}))
    writes = {
        one: body(project, 1, p2={"VCPU": 2}),
        other: body(project, kind="CHILD", p1={"VCPU": 1}),
    }
    consumers.reshape({"inventories": {}, "allocations": writes})
    assert consumers.get_allocations(one) == body(project, 2, p2={"VCPU": 2})
    assert consumers.get_allocations(other) == body(project, 1, kind="CHILD", p1={"VCPU": 1})
    consumers.reshape({"allocations": {}})
    with pytest.raises(InvalidAllocations, match=r"^\$: 'allocations' is a required property"):
        consumers.reshape({"inventories": {}})


def check_usages_and_counts(consumers: Consumers) -> None:
    project = new()
    assert consumers.usages(project) == consumers.usages(project, None, "all") == {"usages": {}}
    assert consumers.types(project) == {}
    consumers.post_allocations(
        {
            new(): body(project, p1={"VCPU": 1, "MEMORY_MB": 5}, p2={"VCPU": 2}),
            new(): body(project, user="v", p1={"VCPU": 4}),
            new(): body(project, kind="MIGRATION", p1={"DISK_GB": 8}),
        }
    )
    instances = {"consumer_count": 2, "VCPU": 7, "MEMORY_MB": 5}
    migrations = {"consumer_count": 1, "DISK_GB": 8}
    asked = consumers.usages(project)
    assert asked == {"usages": {"INSTANCE": instances, "MIGRATION": migrations}}
    assert consumers.usages(project, "v", "INSTANCE") == {
        "usages": {"INSTANCE": {"consumer_count": 1, "VCPU": 4}}
    }
    assert consumers.usages(project, "v", "MIGRATION") == {"usages": {}}
    assert consumers.usages(project, None, "all") == {
        "usages": {"all": {"consumer_count": 3, "VCPU": 7, "MEMORY_MB": 5, "DISK_GB": 8}}
    }
    assert (consumers.count(project), consumers.count(project, "u")) == (3, 2)
    assert consumers.count(project, "u", "INSTANCE") == consumers.count(project, "v") == 1
    assert consumers.count(project, None, "UNKNOWN") == 0
    assert consumers.types(project) == {"INSTANCE": 2, "MIGRATION": 1}
    assert consumers.types(project, "v") == {"INSTANCE": 1}


def check_consumers_of_a_provider(consumers: Consumers) -> None:
    project, kinds = new(), {"INSTANCE": new(), "MIGRATION": new(), "OTHER": new()}
    writes = {kinds[kind]: body(project, kind=kind, p1={"VCPU": 1}) for kind in kinds}
    writes[kinds["OTHER"]] = body(project, kind="OTHER", p2={"VCPU": 1, "DISK_GB": 1})
    consumers.post_allocations(writes)
    consumers.put_allocations(new(), body(new(), p1={"VCPU": 1}, p2={"VCPU": 1}))
    (one, migration, other) = kinds.values()

    def asked(**which: Any) -> set[str]:
        found = list(consumers.consumers_of(**which))
        assert len(found) == len(set(found))
        return set(found)

    assert asked(provider=P1) >= {one, migration}
    assert other not in asked(provider=P1.upper())
    assert asked(provider=P1, project=project) == {one, migration}
    assert asked(provider=P2, project=project) == {other}
    assert asked(provider=P1, project=project, type="MIGRATION") == {migration}
    assert asked(provider=P1, project=project, type="all") == {one, migration}
    assert asked(provider=P1, project=project, type="UNKNOWN") == set()
    assert asked(provider=P2, type="OTHER") >= {other}
    assert asked(provider=P1, project=new()) == set()


def check_update_writes_what_the_function_returns(consumers: Consumers) -> None:
    one, project = new(), new()
    created = body(project, 77, p1={"VCPU": 1})
    assert consumers.update(one, lambda found: created if found == NOTHING else found)
    assert consumers.get_allocations(one) == {**created, "consumer_generation": 1}
    assert not consumers.update(one, lambda found: found)
    assert consumers.get_allocations(one)["consumer_generation"] == 1

    def grow(found: dict[str, Any]) -> dict[str, Any]:
        found["allocations"][P1]["resources"]["VCPU"] += 1
        return found

    assert consumers.update(one, grow)
    assert consumers.get_allocations(one) == body(project, 2, p1={"VCPU": 2})
    with pytest.raises(BadRequest, match=f"change of consumer {one}: expected the body of a PUT, "):
        consumers.update(one, lambda _: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidAllocations, match=r"^\$\.project_id"):
        consumers.update(one, lambda found: {**found, "project_id": ""})
    assert consumers.update(one, lambda found: {**found, "allocations": {}})
    assert consumers.get_allocations(one) == NOTHING


def check_update_retries_after_other_writes(consumers: Consumers) -> None:
    one, project = new(), new()
    consumers.put_allocations(one, body(project, p1={"VCPU": 1}))
    seen: list[int] = []

    def beside_others(found: dict[str, Any]) -> dict[str, Any]:
        seen.append(found["consumer_generation"])
        if len(seen) <= others:
            consumers.put_allocations(one, found)
        return {**found, "consumer_type": "MIGRATION"}

    others = 2
    assert consumers.update(one, beside_others)
    assert seen == [1, 2, 3]
    assert consumers.get_allocations(one) == body(project, 4, kind="MIGRATION", p1={"VCPU": 1})
    seen, others = [], 99
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("time.sleep", lambda seconds: None)
        with pytest.raises(ConcurrentUpdate, match=f"cannot update consumer {one}: .* 10 attempts"):
            consumers.update(one, lambda found: {**beside_others(found), "user_id": "v"})
    assert len(seen) == 10
    assert consumers.get_allocations(one)["user_id"] == "u"


def check_malformed_arguments_are_rejected(consumers: Consumers) -> None:
    one, project = new(), new()
    right = body(project, p1={"VCPU": 1})
    calls: list[Callable[[], object]] = [
        lambda: consumers.put_allocations("x", right),
        lambda: consumers.put_allocations(one, {**right, "consumer_type": "instance"}),
        lambda: consumers.post_allocations({}),
        lambda: consumers.post_allocations({one: {**right, "user_id": None}}),
        lambda: consumers.reshape({one: right}),
        lambda: consumers.get_allocations("x"),
        lambda: consumers.delete_allocations("x"),
        lambda: consumers.consumers_of(provider="x"),
    ]
    for call in calls:
        with pytest.raises(InvalidAllocations):
            call()
    for call in (
        lambda: consumers.usages(""),
        lambda: consumers.count(project, ""),
        lambda: consumers.types(project, "\0"),
        lambda: consumers.consumers_of(project="", provider=P1),
    ):
        with pytest.raises(BadRequest):
            call()
    for call in (
        lambda: consumers.usages(project, None, "instance"),
        lambda: consumers.count(project, consumer_type=""),
        lambda: consumers.consumers_of(type="instance", provider=P1),
    ):
        with pytest.raises(InvalidConsumerType):
            call()
    assert consumers.count(project) == 0


def check_quota_usage_counts_limits(consumers: Consumers) -> None:
    project = new()
    limits = {"servers": "INSTANCE", "moves": "MIGRATION", "cores": "class:VCPU"}
    usage = QuotaUsage(consumers, limits)
    names = {*limits, "class:VCPU", "class:DISK_GB"}
    assert usage(project, names) == dict.fromkeys(names, 0)
    consumers.post_allocations(
        {
            new(): body(project, p1={"VCPU": 1, "MEMORY_MB": 5}, p2={"VCPU": 2}),
            new(): body(project, user="v", p1={"VCPU": 4}),
            new(): body(project, kind="OTHER", p1={"VCPU": 1}),
        }
    )
    used = {"servers": 2, "moves": 0, "cores": 8, "class:VCPU": 8, "class:DISK_GB": 0}
    assert usage(project, names) == used
    for asked in (["servers"], ["class:VCPU"], ["moves", "servers"], ["cores", "moves"], []):
        assert usage(project, asked) == {name: used[name] for name in asked}
    assert usage(new(), ["servers", "class:VCPU"]) == {"servers": 0, "class:VCPU": 0}


CONTRACT = [
    check_write_is_read_and_can_be_sent_back,
    check_wrong_generation_is_a_concurrent_update,
    check_delete_ignores_the_generation,
    check_reshape_without_inventories_writes_allocations,
    check_usages_and_counts,
    check_consumers_of_a_provider,
    check_update_writes_what_the_function_returns,
    check_update_retries_after_other_writes,
    check_malformed_arguments_are_rejected,
    check_quota_usage_counts_limits,
]
