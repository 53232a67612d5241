"""The weigher for free vCPUs."""

from typing import Any

from steelyard.weighers.cpu import CPUWeigher
from support.scheduler.host_states import state


def weight(conf: Any, host: object) -> float:
    return CPUWeigher(conf)._weigh_object(host, None)


def test_cpu_weigher_uses_the_ratio_of_the_host_before_the_option(configured: Any) -> None:
    conf = configured("cpu_allocation_ratio = 2")
    assert weight(conf, state(vcpus_used=1)) == 4 * 2 - 1
    assert weight(conf, state(vcpus_used=1, cpu_allocation_ratio=16.0)) == 4 * 16 - 1


def test_cpu_weigher_subtracts_reserved_vcpus_after_the_ratio(configured: Any) -> None:
    host = state(vcpus_reserved=1, vcpus_used=2)
    assert weight(configured("cpu_allocation_ratio = 3"), host) == 4 * 3 - 1 - 2


def test_cpu_weigher_reads_an_unknown_host_as_full(configured: Any) -> None:
    assert weight(configured(), object()) == 0
