"""The room for servers of a server group."""

from typing import Any

import pytest

from steelyard import errors
from steelyard.analysis.capacity import MOST, HostRooms
from steelyard.cloud import Cloud, Flavor, Host, Server
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import FilterScheduler

FLAVOR = Flavor("f", vcpus=1, memory_mb=1024, root_gb=1)


def cloud(policy: Policy, *placed: str, rules: dict[str, int] | None = None) -> Cloud:
    """Return hosts with room for 2, 4 and 6 servers, and servers of the group "g" on some."""
    hosts = {f"h{n}": Host(f"h{n}", 64, 1024 * n, 100) for n in (2, 4, 6)}
    groups = {"g": ServerGroup("g", policy, rules or {})}
    return Cloud(hosts, {}, {"f": FLAVOR}, groups).with_servers(
        Server(f"s{n}", f"s{n}", Flavor("none", 0, 0, 0), host, "g")
        for n, host in enumerate(placed)
    )


@pytest.mark.parametrize(
    ("policy", "placed", "rules", "room", "total"),
    [
        ("anti-affinity", [], {}, [1, 1, 1], 3),
        ("anti-affinity", ["h2", "h6"], {}, [0, 1, 0], 1),
        ("anti-affinity", [], {"max_server_per_host": 3}, [2, 3, 3], 8),
        ("anti-affinity", ["h4", "h4"], {"max_server_per_host": 3}, [2, 1, 3], 6),
        ("anti-affinity", ["h4", "h4"], {"max_server_per_host": 1}, [1, 0, 1], 2),
        ("affinity", [], {}, [2, 4, 6], 6),
        ("affinity", ["h4"], {}, [0, 4, 0], 4),
        ("affinity", ["h2", "h4"], {}, [2, 4, 0], 6),
        ("soft-affinity", ["h4"], {}, [2, 4, 6], 12),
        ("soft-anti-affinity", ["h4"], {}, [2, 4, 6], 12),
    ],
)
def test_room_of_a_group_depends_on_its_policy(
    conf: Any, policy: str, placed: Any, rules: Any, room: Any, total: int
) -> None:
    scheduler = FilterScheduler(cloud(Policy(policy), *placed, rules=rules), conf)
    found = HostRooms(scheduler).of("f", "g")
    assert [each.more for each in found.rooms] == room
    assert found.total == (total, False, sum(map(bool, room)), 3)
    assert sum(each.hosts for each in found.limits()) == 3
    assert found.on_one_host is (policy == "affinity" and not placed)


def test_room_of_a_new_group_with_affinity_is_that_of_the_largest_host(conf: Any) -> None:
    found = HostRooms(FilterScheduler(cloud(Policy.AFFINITY), conf)).of("f", "g")
    assert found.count([0, 1]) == (4, False, 2, 2)
    assert [(each.hosts, each.more) for each in found.limits()] == [(3, 6)]
    assert found.count([]) == (0, False, 0, 0)


def test_room_beyond_the_servers_that_are_tried_is_a_lower_bound(conf: Any) -> None:
    spread = cloud(Policy.ANTI_AFFINITY, rules={"max_server_per_host": MOST})
    unlimited = Cloud(spread.hosts, {}, {"f": Flavor("f", 0, 0, 0)}, spread.server_groups)
    rooms = HostRooms(FilterScheduler(unlimited, conf))
    assert rooms.of("f", "g").total == (3 * MOST, True, 3, 3)
    assert rooms.of("f", "g").rooms[0].verdict.reason == (
        "server group 'g' has 1000 servers here; the limit is 1000"
    )
    assert rooms.of("f").rooms[0].verdict.reason == "at most 1000 servers are tried per host"


def test_room_of_a_group_without_its_filter_is_an_error(configured: Any) -> None:
    conf = configured("enabled_filters = CapacityFilter")
    rooms = HostRooms(FilterScheduler(cloud(Policy.AFFINITY), conf))
    with pytest.raises(errors.PolicyNotSupported, match="'ServerGroupAffinityFilter'"):
        rooms.of("f", "g")
    with pytest.raises(errors.NotFound, match="no server group 'x'"):
        rooms.of("f", "x")
