"""The explanations in a decision."""

import dataclasses
from typing import Any

import pytest

from steelyard.cloud import Aggregate
from steelyard.scheduler import FilterScheduler, NoValidHost
from support.scheduler.three_hosts import cloud


@pytest.fixture
def scheduler(conf: Any) -> Any:
    return FilterScheduler(cloud(), conf)


def test_decision_explains_every_host(conf: Any) -> None:
    found = cloud(a={"ssd": "nvme"}, b={"ssd": "sata"}, c={"ssd": "nvme"})
    scheduler = FilterScheduler(found, conf)
    (decision,) = scheduler.select(scheduler.request("nvme")).decisions
    chosen, other, rejected = decision.hosts
    filters = (
        "InServiceFilter",
        "CapacityFilter",
        "TraitsFilter",
        "AggregateInstanceTypeFilter",
        "ServerGroupAffinityFilter",
        "ServerGroupAntiAffinityFilter",
    )
    assert (chosen.host, chosen.chosen, chosen.passed) == ("a", True, filters)
    assert (other.host, other.chosen, other.fits) == ("c", False, True)
    assert [
        (w.weigher, w.raw, w.normalised, w.multiplier, w.multiplied) for w in chosen.weights
    ] == [
        ("RAMWeigher", 4096.0, 1.0, 1.0, 1.0),
        ("CPUWeigher", 16.0, 1.0, 1.0, 1.0),
        ("DiskWeigher", 102400.0, 1.0, 1.0, 1.0),
        ("ServerGroupSoftAffinityWeigher", 0.0, 0.0, 1000.0, 0.0),
        ("ServerGroupSoftAntiAffinityWeigher", 0.0, 0.0, 1000.0, 0.0),
    ]
    assert (other.weight, chosen.weight, rejected.weight) == (2.5, 3.0, None)
    assert rejected.passed == ("InServiceFilter", "CapacityFilter", "TraitsFilter")
    assert rejected.rejected_by == "AggregateInstanceTypeFilter"
    assert rejected.reason == "key 'ssd': flavor wants 'nvme', aggregate 'rack-b' offers 'sata'"
    assert decision.considered == 3


def test_failed_decision_ranks_causes_by_frequency(conf: Any) -> None:
    racks = {
        "fast": Aggregate("fast", {"ssd": "nvme"}, ("a",)),
        "slow": Aggregate("slow", {"ssd": "sata"}, ("b", "c")),
    }
    scheduler = FilterScheduler(dataclasses.replace(cloud(), aggregates=racks), conf)
    with pytest.raises(NoValidHost) as caught:
        scheduler.select(scheduler.request("nvme"), 5)
    assert [(c.count, c.filter, c.cause) for c in caught.value.decision.causes] == [
        (
            2,
            "AggregateInstanceTypeFilter",
            "key 'ssd': flavor wants 'nvme', aggregate 'slow' offers 'sata'",
        ),
        (1, "CapacityFilter", "not enough RAM: flavor wants 1 GiB"),
    ]
    assert len(caught.value.decisions) == 5
    # The decisions on earlier servers are unchanged.
    assert caught.value.decisions[0].hosts[0].host == "a"
    assert len(caught.value.decisions[0].rejected) == 1
