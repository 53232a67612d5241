"""Changes of a cloud, and the cloud on the other side of a comparison."""

import dataclasses
from typing import Any

import pytest

from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server, changes
from steelyard.cloud.changes import (
    Change,
    KeyedPart,
    SetKey,
    SetMembership,
    TakeIn,
    TakeOut,
    TakeOutAggregate,
    TakeOutByMetadata,
)
from steelyard.errors import Conflict, NotFound, SteelyardError
from steelyard.groups import Policy, ServerGroup

SMALL = Flavor("small", 1, 1024, 10, {"ssd": "nvme"})


def cloud() -> Cloud:
    return Cloud(
        {name: Host(name, 4, 4096, 100) for name in ("a", "b", "c")}
        | {"off": Host("off", 4, 4096, 100, out_of_service="disabled")},
        {
            "r1": Aggregate("r1", {"rack": "r1, old"}, ("a", "off")),
            "r2": Aggregate("r2", {"rack": "r2"}, ("b", "c")),
            "none": Aggregate("none", {"rack": "r3"}, ()),
        },
        {"small": SMALL},
        {"web": ServerGroup("web", Policy.AFFINITY)},
    ).with_servers([Server("u1", "one", SMALL, "a", "web")])


def out_of_service(found: Cloud) -> dict[str, str]:
    return {name: host.out_of_service for name, host in found.hosts.items() if host.out_of_service}


def test_set_key_changes_the_flavor_but_not_the_servers_that_have_it() -> None:
    found = SetKey(KeyedPart.FLAVOR, "small", "tier", "gold").applied(cloud())
    assert found.flavors["small"].extra_specs == {"ssd": "nvme", "tier": "gold"}
    assert found.servers["u1"].flavor is SMALL
    found = SetKey(KeyedPart.FLAVOR, "small", "ssd", None).applied(found)
    assert found.flavors["small"].extra_specs == {"tier": "gold"}


def test_set_key_changes_the_metadata_of_one_aggregate() -> None:
    before = cloud()
    found = SetKey(KeyedPart.AGGREGATE, "r1", "rack", "r9").applied(before)
    assert found.aggregates["r1"].metadata == {"rack": "r9"}
    assert found.aggregates["r2"] is before.aggregates["r2"]
    assert before.aggregates["r1"].metadata == {"rack": "r1, old"}


def test_membership_changes() -> None:
    found = SetMembership("r1", "b", joins=True).applied(cloud())
    assert found.aggregates["r1"].hosts == ("a", "off", "b")
    found = SetMembership("r1", "a", joins=False).applied(found)
    assert found.aggregates["r1"].hosts == ("off", "b")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (TakeOut("b"), {"b"}),
        (TakeOutAggregate("r2"), {"b", "c"}),
        (TakeOutByMetadata("rack", "r2"), {"b", "c"}),
        (TakeOutByMetadata("rack", "old"), {"a"}),
        (TakeOutByMetadata("rack", "r1, old"), {"a"}),
    ],
)
def test_hosts_go_out_of_service(change: Change, expected: set[str]) -> None:
    found = out_of_service(change.applied(cloud()))
    assert found.pop("off") == "disabled"
    assert found == dict.fromkeys(expected, changes.OUT)


def test_host_comes_back_into_service() -> None:
    assert out_of_service(TakeIn("off").applied(cloud())) == {}


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (
            SetKey(KeyedPart.FLAVOR, "smal", "k", "v"),
            NotFound,
            "no flavor 'smal'; did you mean 'small'",
        ),
        (
            SetKey(KeyedPart.FLAVOR, "small", "sd", None),
            NotFound,
            "has no key 'sd'; did you mean 'ssd'",
        ),
        (SetKey(KeyedPart.AGGREGATE, "r7", "k", "v"), NotFound, "no aggregate 'r7'"),
        (SetMembership("r1", "x", joins=True), NotFound, "no host 'x'"),
        (SetMembership("r7", "a", joins=True), NotFound, "no aggregate 'r7'"),
        (SetMembership("r1", "a", joins=True), Conflict, "host 'a' is already in aggregate 'r1'"),
        (SetMembership("r1", "b", joins=False), Conflict, "host 'b' is not in aggregate 'r1'"),
        (TakeOut("x"), NotFound, "no host 'x'"),
        (TakeOutAggregate("r7"), NotFound, "no aggregate 'r7'"),
        (TakeOutAggregate("none"), Conflict, "aggregate 'none' has no hosts"),
        (TakeOutByMetadata("rak", "r1"), NotFound, "the key 'rak'; did you mean 'rack'"),
        (TakeOutByMetadata("rack", "r4"), NotFound, "no aggregate with hosts has 'rack' = 'r4'"),
        (TakeOutByMetadata("rack", "r3"), NotFound, "no aggregate with hosts has 'rack' = 'r3'"),
        (TakeIn("a"), Conflict, "host 'a' is already in service"),
        (TakeOut("off"), Conflict, "already out of service: 'off'"),
        (SetKey(KeyedPart.FLAVOR, "small", "ssd", "nvme"), Conflict, "has 'ssd' = 'nvme'"),
    ],
)
def test_impossible_change_is_an_error_with_its_place(
    change: Change, error: type[SteelyardError], said: str
) -> None:
    with pytest.raises(error) as caught:
        changes.applied(cloud(), [("here", change)])
    assert str(caught.value).startswith("here: ")
    assert said in str(caught.value)
    assert caught.value.text


def test_other_side_has_the_servers_of_this_one() -> None:
    before = cloud()
    large = dataclasses.replace(SMALL, vcpus=2)
    other = Cloud(
        {"a": Host("a", 8, 8192, 100), "new": Host("new", 4, 4096, 100)},
        {"r1": Aggregate("r1", {}, ("a",))},
        {"small": large},
        {"web": ServerGroup("web", Policy.ANTI_AFFINITY)},
        {"other": Server("other", "left out", large, "new")},
    )
    found = changes.with_servers_of(before, other, "next.yaml")
    assert set(found.hosts) == {"a", "new", "b", "c", "off"}
    assert found.hosts["a"].vcpus == 8
    assert out_of_service(found) == dict.fromkeys(["b", "c", "off"], "not in next.yaml")
    assert found.aggregates == other.aggregates
    assert found.servers == before.servers
    assert found.flavors == {"small": large}
    group: Any = found.server_groups["web"]
    assert (group.policy, set(group.members), set(group.hosts)) == ("anti-affinity", {"u1"}, {"a"})


def test_other_side_keeps_groups_of_servers_that_it_lacks() -> None:
    before = dataclasses.replace(
        cloud(),
        server_groups={**cloud().server_groups, "empty": ServerGroup("empty", Policy.AFFINITY)},
    )
    found = changes.with_servers_of(before, Cloud(dict(before.hosts)), "next.yaml")
    assert dict(found.flavors) == {}
    assert set(found.server_groups) == {"web"}
