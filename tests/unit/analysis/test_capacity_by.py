"""Room by aggregate and by values of metadata keys."""

from typing import Any

from steelyard.analysis.capacity import HostRooms
from steelyard.analysis.capacity_by import Breakdown, metadata_keys
from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.scheduler import FilterScheduler

HOSTS = {f"h{n}": Host(f"h{n}", n, 1024, 10, allocation_ratios={"vcpus": 1.0}) for n in range(5)}
FLAVORS = {"f": Flavor("f", 1, 0, 0)}


def cloud(*aggregates: tuple[str, dict[str, str], str]) -> Cloud:
    """Return hosts with room for 0 to 4 servers in these aggregates."""
    return Cloud(
        HOSTS,
        {name: Aggregate(name, said, tuple(hosts.split())) for name, said, hosts in aggregates},
        FLAVORS,
    )


def counted(described: Cloud, breakdown: Breakdown, conf: Any) -> dict[str | None, Any]:
    found = HostRooms(FilterScheduler(described, conf)).of("f")
    return {
        name: (each.hosts, each.fitting_hosts, each.more) for name, each in breakdown.count(found)
    }


def test_breakdown_by_aggregate_counts_a_host_in_each_of_its_aggregates(conf: Any) -> None:
    described = cloud(("z", {}, "h0 h1"), ("a", {}, "h1 h4"), ("empty", {}, ""))
    found = counted(described, Breakdown.by_aggregate(described), conf)
    assert list(found.items()) == [
        ("z", (2, 1, 1)),
        ("a", (2, 2, 5)),
        ("empty", (0, 0, 0)),
        (None, (2, 2, 5)),
    ]


def test_breakdown_without_aggregates_has_all_hosts_in_none(conf: Any) -> None:
    assert counted(cloud(), Breakdown.by_aggregate(cloud()), conf) == {None: (5, 4, 10)}


def test_breakdown_by_key_counts_the_first_of_several_values(conf: Any) -> None:
    described = cloud(
        ("one", {"rack": "r2"}, "h0 h1 h3"),
        ("two", {"rack": " r1 "}, "h1 h2"),
        ("blank", {"rack": " "}, "h3 h4"),
        ("other", {"room": "r0"}, "h0 h1 h2 h3 h4"),
    )
    breakdown = Breakdown.by_key(described, "rack")
    found = counted(described, breakdown, conf)
    assert list(found.items()) == [("r1", (2, 2, 3)), ("r2", (2, 1, 3)), (None, (1, 1, 4))]
    assert breakdown.several_values == 1


def test_breakdown_of_hosts_in_sets_has_no_remaining_hosts(conf: Any) -> None:
    described = cloud(("all", {"zone": "z"}, "h4 h3 h2 h1 h0"))
    assert counted(described, Breakdown.by_key(described, "zone"), conf) == {"z": (5, 4, 10)}
    assert Breakdown.by_key(described, "zone").several_values == 0


def test_metadata_keys_are_those_of_all_aggregates() -> None:
    assert metadata_keys(cloud(("b", {"y": "1", "x": "2"}, ""), ("a", {"x": "3"}, ""))) == [
        "x",
        "y",
    ]
