"""The functional cases of soft affinity, in the embedded scheduler with its default options."""

import dataclasses
from typing import Any

import pytest

from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import FilterScheduler, NoValidHost

SMALL = Flavor("small", 1, 1024, 10)


def cloud(policy: str, hosts: int = 4, ram_mb: int = 8192, racks: Any = ()) -> Cloud:
    """Return a cloud with a group; its hosts differ in RAM, so that RAMWeigher prefers one."""
    made = {f"h{i}": Host(f"h{i}", 16, ram_mb + i, 1000) for i in range(hosts)}
    aggregates = {
        name: Aggregate(name, {"rack": name, "room": name[0]}, tuple(members.split()))
        for name, members in racks
    }
    return Cloud(made, aggregates, {"small": SMALL}, {"g": ServerGroup("g", Policy(policy))})


def place(scheduler: FilterScheduler, count: int = 1) -> list[str]:
    """Create servers in one request, and return their hosts."""
    selection = scheduler.select(scheduler.request("small", "g"), count)
    scheduler.commit(selection)
    return [server.host for server in selection.servers]


@pytest.fixture
def starting(conf: Any, configured: Any) -> Any:
    def start(found: Cloud, *lines: str) -> FilterScheduler:
        return FilterScheduler(found, configured(*lines) if lines else conf)

    return start


@pytest.mark.parametrize("at_once", [True, False])
def test_soft_affinity_stacks_servers_on_one_host(starting: Any, at_once: bool) -> None:
    scheduler = starting(cloud("soft-affinity"))
    found = place(scheduler, 3) if at_once else [place(scheduler)[0] for _ in range(3)]
    assert found == ["h3", "h3", "h3"]


def test_soft_affinity_continues_on_the_next_host_when_full(starting: Any) -> None:
    scheduler = starting(cloud("soft-affinity", ram_mb=2048))
    assert place(scheduler, 5) == ["h3", "h3", "h2", "h2", "h1"]


@pytest.mark.parametrize("at_once", [True, False])
def test_soft_anti_affinity_spreads_servers_evenly(starting: Any, at_once: bool) -> None:
    scheduler = starting(cloud("soft-anti-affinity", hosts=2))
    found = place(scheduler, 4) if at_once else [place(scheduler)[0] for _ in range(4)]
    assert found[0] != found[1]
    assert sorted(found) == ["h0", "h0", "h1", "h1"]


def test_soft_anti_affinity_places_all_servers_on_a_single_host(starting: Any) -> None:
    assert place(starting(cloud("soft-anti-affinity", hosts=1)), 2) == ["h0", "h0"]


def test_soft_affinity_moves_a_server_to_its_group(starting: Any) -> None:
    found = cloud("soft-affinity")
    scheduler = starting(found)
    place(scheduler, 3)
    stray = next(iter(scheduler.cloud.servers.values()))
    scheduler.cloud = scheduler.cloud.with_moved(stray, "h0")
    for _ in range(2):
        selection = scheduler.select_move(stray.name)
        scheduler.commit(selection)
        assert selection.servers[0] == dataclasses.replace(stray, host="h3")
        assert scheduler.cloud.server_groups["g"].hosts == {"h3"}
        scheduler.cloud = scheduler.cloud.with_moved(stray, "h1")


def test_soft_affinity_does_not_count_the_server_itself(starting: Any) -> None:
    scheduler = starting(cloud("soft-affinity"))
    place(scheduler, 3)
    leaving = next(iter(scheduler.cloud.servers.values()))
    scheduler.commit(scheduler.select_move(leaving.name))
    assert scheduler.cloud.server_groups["g"].hosts == {"h3", "h2"}
    assert place(scheduler) == ["h3"]


def test_soft_anti_affinity_moves_a_server_away_from_its_group(starting: Any) -> None:
    scheduler = starting(cloud("soft-anti-affinity", hosts=3))
    assert place(scheduler, 2) == ["h2", "h1"]
    first = next(iter(scheduler.cloud.servers.values()))
    scheduler.commit(scheduler.select_move(first.uuid))
    assert [server.host for server in scheduler.cloud.servers.values()] == ["h0", "h1"]


@pytest.mark.parametrize("policy", ["soft-affinity", "soft-anti-affinity"])
def test_rebuild_keeps_the_host(starting: Any, policy: str) -> None:
    scheduler = starting(cloud(policy))
    place(scheduler, 2)
    before = scheduler.cloud
    for server in before.servers.values():
        (decision,) = scheduler.select_rebuild(server.name).decisions
        assert decision.server == server
        assert decision.hosts[0].passed == ()


def test_hard_policies_apply_to_moves(starting: Any) -> None:
    scheduler = starting(cloud("affinity"))
    place(scheduler, 1)
    lone = next(iter(scheduler.cloud.servers.values()))
    assert scheduler.select_move(lone.name).servers[0].host == "h2"
    place(scheduler, 1)
    with pytest.raises(NoValidHost, match="server group 'g' is on 'h3'"):
        scheduler.select_move(lone.name)


RACKS = [("a1", "h0 h1"), ("a2", "h2"), ("b1", "h3 h4 h5")]


def test_soft_anti_affinity_spreads_over_rooms_and_racks(starting: Any) -> None:
    scheduler = starting(
        cloud("soft-anti-affinity", 6, racks=RACKS), "failure_domains = rack, room"
    )
    assert place(scheduler, 6) == ["h5", "h2", "h1", "h4", "h0", "h3"]


def test_soft_affinity_gathers_in_one_rack_then_in_its_room(starting: Any) -> None:
    scheduler = starting(
        cloud("soft-affinity", 6, 1024, racks=[*RACKS[:2], ("b1", "h3"), ("c1", "h4 h5")]),
        "failure_domains = rack, room",
        "ram_weight_multiplier = -1",
    )
    assert place(scheduler, 3) == ["h0", "h1", "h2"]


def test_full_hosts_count_in_their_rack(starting: Any) -> None:
    # Full hosts are not candidates, but their rack is known.
    racks = [("a1", "h0 h1"), ("a2", "h2 h3")]
    scheduler = starting(cloud("soft-anti-affinity", 4, 1024, racks), "failure_domains = rack")
    assert place(scheduler, 4) == ["h3", "h1", "h2", "h0"]
