"""Affinity and anti-affinity of server groups."""

from typing import Any

import pytest

from steelyard.cloud import Flavor
from steelyard.filters.affinity import ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import Request
from support.scheduler.host_states import state

FLAVOR = Flavor("f", vcpus=2, memory_mb=1024, root_gb=10)


@pytest.mark.parametrize(
    ("policy", "hosts", "reason"),
    [
        ("affinity", set(), ""),
        ("affinity", {"h"}, ""),
        ("affinity", {"x", "y"}, "server group 'g' is on 'x', 'y'"),
        ("anti-affinity", {"x"}, ""),
    ],
)
def test_affinity_filter_keeps_a_group_on_its_host(policy: Any, hosts: Any, reason: Any) -> None:
    group = ServerGroup("g", Policy(policy), hosts=frozenset(hosts))
    assert ServerGroupAffinityFilter().examine(state(), Request(FLAVOR, group)).reason == reason
    assert ServerGroupAffinityFilter().examine(state(), Request(FLAVOR))


@pytest.mark.parametrize(
    ("policy", "members", "rules", "reason"),
    [
        ("anti-affinity", {"other"}, {}, ""),
        ("anti-affinity", {"a"}, {}, "server group 'g' has 1 server here; the limit is 1"),
        ("anti-affinity", {"a", "me"}, {"max_server_per_host": 2}, ""),
        (
            "anti-affinity",
            {"a", "b"},
            {"max_server_per_host": 2},
            "has 2 servers here; the limit is 2",
        ),
        ("anti-affinity", {"me"}, {}, ""),
        ("affinity", {"a"}, {}, ""),
    ],
)
def test_anti_affinity_filter_limits_servers_per_host(
    policy: Any, members: Any, rules: Any, reason: Any
) -> None:
    group = ServerGroup("g", Policy(policy), rules, frozenset(members))
    here = state(instances=dict.fromkeys(["a", "b", "me", "stranger"]))
    verdict = ServerGroupAntiAffinityFilter().examine(here, Request(FLAVOR, group, "me"))
    assert reason in verdict.reason
    assert verdict.passed is (reason == "")
