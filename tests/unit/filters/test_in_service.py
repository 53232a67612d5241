"""Hosts that are out of service."""

import types
from typing import Any

from steelyard.cloud import Flavor
from steelyard.filters.in_service import InServiceFilter
from steelyard.scheduler import Request
from support.scheduler.host_states import state

FLAVOR = Flavor("f", vcpus=2, memory_mb=1024, root_gb=10)


def test_in_service_filter_rejects_disabled_and_down_hosts() -> None:
    filter_ = InServiceFilter()
    assert filter_.examine(state(), Request(FLAVOR))
    verdict = filter_.examine(state(out_of_service="disabled"), Request(FLAVOR))
    assert verdict.reason == "the host is out of service: disabled"


def test_hosts_out_of_service_have_one_cause(conf: Any) -> None:
    hosts = [types.SimpleNamespace(out_of_service=why) for why in ("disabled: new disk", "down")]
    found = [InServiceFilter(conf).examine(host, None) for host in hosts]
    assert {each.cause for each in found} == {"the host is out of service"}
    assert found[0].reason == "the host is out of service: disabled: new disk"
