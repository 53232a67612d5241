"""Free vCPUs, RAM and disk, with allocation ratios and reserved amounts."""

from typing import Any

import pytest

from steelyard.cloud import Flavor
from steelyard.filters.capacity import CapacityFilter
from steelyard.scheduler import Request
from support.scheduler.host_states import state

FLAVOR = Flavor("f", vcpus=2, memory_mb=1024, root_gb=10)


@pytest.mark.parametrize(
    ("fields", "lines", "reason"),
    [
        ({"vcpus_used": 14}, [], ""),
        ({"vcpus_used": 15}, [], "vCPUs: flavor wants 2, the host has 1 of 16 left"),
        (
            {"vcpus_total": 100, "vcpus_used": 113, "cpu_allocation_ratio": 1.15},
            [],
            "vCPUs: flavor wants 2, the host has 1 of 115 left",
        ),
        ({"vcpus_used": 3}, ["cpu_allocation_ratio = 1.0"], "the host has 1 of 4 left"),
        ({"vcpus_used": 3, "cpu_allocation_ratio": 1.0}, [], "the host has 1 of 4 left"),
        ({"cpu_allocation_ratio": 0.0}, [], "the host has 0 of 0 left"),
        ({"vcpus_used": 6, "vcpus_reserved": 2}, [], ""),
        ({"vcpus_used": 7, "vcpus_reserved": 2}, [], "the host has 1 of 8 left"),
        ({"vcpus_reserved": 5}, [], "the host has 0 of 0 left"),
        (
            {"ram_mb_used": 3073},
            [],
            "RAM: flavor wants 1 GiB, the host has 1023 MiB of 4 GiB left",
        ),
        ({"ram_mb_used": 3073}, ["ram_allocation_ratio = 1.5"], ""),
        ({"disk_gb_used": 91}, [], "disk: flavor wants 10 GiB, the host has 9 of 100 GiB left"),
        ({"disk_gb_used": 200}, [], "the host has 0 of 100 GiB left"),
        ({"disk_gb_used": 200}, ["disk_allocation_ratio = 3"], ""),
    ],
)
def test_capacity_filter_compares_the_flavor_with_free_amounts(
    configured: Any, fields: Any, lines: Any, reason: Any
) -> None:
    plugin = CapacityFilter(configured(*lines))
    verdict = plugin.examine(state(**fields), Request(FLAVOR))
    assert reason in verdict.reason
    assert verdict.passed is (reason == "") is plugin.host_passes(state(**fields), Request(FLAVOR))
    if reason:
        assert verdict.cause.startswith("not enough ")
        assert "the host" not in verdict.cause


def test_capacity_filter_rejects_hosts_without_amounts(conf: Any) -> None:
    assert not CapacityFilter(conf).host_passes(object(), Request(FLAVOR))
    assert CapacityFilter(conf).host_passes(object(), object())
