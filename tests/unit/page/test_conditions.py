"""The conditions of hosts: chosen, fits, full, rejected or out of service."""

from typing import Any

import pytest

from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.groups import Policy, ServerGroup
from steelyard.page import view_of
from steelyard.scheduler import FilterScheduler, NoValidHost

SMALL = Flavor("small", 1, 1024, 1, {"ssd": "nvme"})
HUGE = Flavor("huge", 9999, 1024, 1)
GPU = Flavor("gpu", 1, 1024, 1, {"resources:VGPU": "2"})


def cloud() -> Cloud:
    hosts = [
        Host("free", 8, 16384, 100),
        Host("roomy", 8, 65536, 100),
        Host("used", 8, 16384, 100, used={"ram_mb": 16384}),
        Host("used-and-slow", 8, 16384, 100, used={"ram_mb": 16384}),
        Host("slow", 8, 16384, 100),
        Host("tiny", 8, 512, 100),
        Host("down", 8, 16384, 100, out_of_service="disabled"),
        Host("used-and-down", 8, 16384, 100, used={"ram_mb": 16384}, out_of_service="disabled"),
        Host("gpu", 8, 16384, 100, resources={"VGPU": 3}, used={"VGPU": 2}),
    ]
    fast = tuple(each.name for each in hosts if "slow" not in each.name)
    aggregate = Aggregate("fast", {"ssd": "nvme"}, fast)
    return Cloud(
        {each.name: each for each in hosts},
        {"fast": aggregate},
        {each.name: each for each in (SMALL, HUGE, GPU)},
        {"apart": ServerGroup("apart", Policy.ANTI_AFFINITY, uuid="g")},
    ).with_servers([Server("s", "s", SMALL, "roomy", "apart")])


def conditions(flavor: str, conf: Any, group: str | None = None) -> dict[str, str]:
    scheduler = FilterScheduler(cloud(), conf)
    try:
        (decision,) = scheduler.select(scheduler.request(flavor, group)).decisions
    except NoValidHost as error:
        decision = error.decision
    return {row.host: row.condition.value for row in view_of(decision, scheduler).rows}


def test_full_hosts_fit_with_nothing_in_use(conf: Any) -> None:
    assert conditions("small", conf) == {
        "roomy": "chosen",
        "free": "fits",
        "gpu": "fits",
        "used": "full",
        "used-and-slow": "rejected",
        "slow": "rejected",
        "tiny": "rejected",
        "down": "out of service",
        "used-and-down": "out of service",
    }


def test_too_large_flavor_makes_no_host_full(conf: Any) -> None:
    assert set(conditions("huge", conf).values()) == {"rejected", "out of service"}


def test_other_resource_classes_count(conf: Any) -> None:
    found = conditions("gpu", conf)
    assert (found["gpu"], found["free"]) == ("full", "rejected")


def test_servers_of_a_group_make_no_host_full(conf: Any) -> None:
    found = conditions("small", conf, "apart")
    assert (found["roomy"], found["used"]) == ("rejected", "full")


@pytest.mark.parametrize(
    ("trial", "expected"),
    [
        ("InServiceFilter", {"down": "fits", "used-and-down": "full"}),
        ("CapacityFilter", {"used": "fits", "tiny": "fits", "down": "out of service"}),
        ("AggregateInstanceTypeFilter", {"slow": "fits", "used-and-slow": "full"}),
    ],
)
def test_filter_on_trial_does_not_count(
    configured: Any, trial: str, expected: dict[str, str]
) -> None:
    found = conditions("small", configured(f"trial_filters = {trial}"))
    assert {host: found[host] for host in expected} == expected
