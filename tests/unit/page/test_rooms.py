"""The room for additional servers, in groups of hosts and for all flavors."""

from typing import Any

import pytest

from steelyard.analysis.capacity import HostRooms
from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.groups import Policy, ServerGroup
from steelyard.page import View, view_of
from steelyard.page.rooms import breakdowns, table
from steelyard.page.served_cloud import ServedCloud
from steelyard.page.view import ShownRoom
from steelyard.scheduler import FilterScheduler

ONE = {"vcpus": 1.0, "ram_mb": 1.0, "disk_gb": 1.0}


def cloud(*, zones: bool = True) -> Cloud:
    sizes = {"a": 4, "b": 6, "c": 1, "d": 3}
    hosts = {
        name: Host(name, vcpus, 99999, 9999, allocation_ratios=ONE) for name, vcpus in sizes.items()
    }
    aggregates = {
        "east": Aggregate("east", {"availability_zone": "z1"} if zones else {}, ("d", "a")),
        "west": Aggregate("west", {"availability_zone": "z2"} if zones else {}, ("b",)),
        "fast": Aggregate("fast", {"aggregate": "x"}, ("a", "b")),
    }
    flavors = {"small": Flavor("small", 1, 1, 1), "big": Flavor("big", 4, 1, 1)}
    return Cloud(hosts, aggregates, flavors, {"near": ServerGroup("near", Policy.AFFINITY)})


def viewed(conf: Any, flavor: str, group: str | None = None, *, zones: bool = True) -> View:
    scheduler = FilterScheduler(cloud(zones=zones), conf)
    (decision,) = scheduler.select(scheduler.request(flavor, group)).decisions
    found = HostRooms(scheduler).of(flavor, group)
    return view_of(decision, scheduler, found=found)


def test_zones_and_groups_have_their_room(conf: Any) -> None:
    view = viewed(conf, "big")
    assert view.room == ShownRoom("all hosts", 2, False, 2, 4)
    assert view.zones == (
        ShownRoom("z1", 1, False, 1, 2),
        ShownRoom("z2", 1, False, 1, 1),
        ShownRoom("no availability zone", 0, False, 0, 1),
    )
    assert [each.room for each in view.aggregates] == [
        ShownRoom("east", 1, False, 1, 2),
        ShownRoom("west", 1, False, 1, 1),
        ShownRoom("fast", 2, False, 2, 2),
        ShownRoom("in no aggregate", 0, False, 0, 1),
    ]


def test_new_group_with_affinity_has_the_room_of_one_host(conf: Any) -> None:
    view = viewed(conf, "small", "near")
    assert view.room is not None
    assert view.room.more == 6
    assert [each.more for each in view.zones] == [4, 6, 1]


def test_cloud_without_zones_shows_only_the_total(conf: Any) -> None:
    view = viewed(conf, "small", zones=False)
    assert (view.zones, view.room) == ((), ShownRoom("all hosts", 14, False, 4, 4))


@pytest.fixture
def served(conf: Any) -> ServedCloud:
    return ServedCloud(FilterScheduler(cloud(), conf))


def test_table_has_a_row_for_each_set_and_the_total(served: ServedCloud) -> None:
    assert served.table("aggregate") == {
        "flavors": ["small", "big"],
        "names": ["east", "west", "fast", "in no aggregate", "all hosts"],
        "hosts": [2, 1, 2, 1, 4],
        "fit": [[2, 1, 2, 1, 4], [1, 1, 2, 0, 2]],
        "more": [[7, 6, 10, 1, 14], [1, 1, 2, 0, 2]],
        "at_least": [[], []],
    }
    by_zone = served.table("availability_zone")
    assert by_zone["names"] == ["z1", "z2", "no availability_zone", "all hosts"]
    assert by_zone["more"][0] == [7, 6, 1, 14]


def test_table_is_computed_once(served: ServedCloud) -> None:
    assert served.table("aggregate") is served.table("aggregate")


def test_table_of_cloud_without_flavors_is_empty() -> None:
    assert table(cloud(), [], "aggregate") == {
        "flavors": [],
        "names": ["all hosts"],
        "hosts": [],
        "fit": [],
        "more": [],
        "at_least": [],
    }


def test_breakdowns_begin_with_aggregates() -> None:
    # A metadata key of this name cannot be chosen, as in the command capacity.
    assert breakdowns(cloud()) == ["aggregate", "availability_zone"]
