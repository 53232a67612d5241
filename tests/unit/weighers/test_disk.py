"""The weigher for free disk."""

from typing import Any

from steelyard.weighers.disk import DiskWeigher
from support.scheduler.host_states import state


def test_disk_weigher_gives_the_free_disk_in_mib(configured: Any) -> None:
    weigher = DiskWeigher(configured("disk_weight_multiplier = -2"))
    host = state(disk_gb_reserved=10, disk_gb_used=30)
    assert weigher._weigh_object(host, None) == 60 * 1024
    assert weigher.weight_multiplier(host) == -2


def test_disk_weigher_ignores_the_allocation_ratio(configured: Any) -> None:
    host = state(disk_allocation_ratio=2.0)
    assert DiskWeigher(configured())._weigh_object(host, None) == 100 * 1024
