"""Laws of the room for servers, by host, aggregate and metadata key, and in server groups."""

import collections

from hypothesis import event, given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard.analysis.capacity import FlavorRooms, HostRooms
from steelyard.analysis.capacity_by import Breakdown, metadata_keys
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.cloud.host_state import host_states
from steelyard.failure_domains import FailureDomains
from steelyard.filters.affinity import ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter
from steelyard.filters.base import Filter
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import FilterScheduler, NoValidHost, Request
from support.examples import draw_until, examples

KEYS = ("availability_zone", "rack")
values = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["a", "b", " a ", "", "a, b"]))


@st.composite
def groups(draw: st.DrawFn) -> ServerGroup:
    """Return a server group with any policy; with anti-affinity, it may have a rule."""
    policy = draw(st.sampled_from(Policy))
    most = draw(st.sampled_from([None, 1, 2, 3])) if policy == Policy.ANTI_AFFINITY else None
    return ServerGroup("g", policy, {} if most is None else {"max_server_per_host": most})


@st.composite
def clouds(draw: st.DrawFn) -> Cloud:
    """Return few hosts with room for few servers, in aggregates with keys, and a server group."""
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    hosts = {
        f"h{number}": Host(f"h{number}", 16, size, 100, traits=draw(st.sampled_from(TRAITS)))
        for number, size in enumerate(sizes)
    }
    members = st.lists(st.sampled_from(sorted(hosts)), unique=True)
    aggregates = {
        name: Aggregate(name, draw(values), tuple(draw(members)))
        for name in draw(st.lists(st.sampled_from("xyz"), unique=True))
    }
    flavors = {
        "f": Flavor("f", 1, 1, 1, draw(st.sampled_from(EXTRA_SPECS))),
        "other": Flavor("other", 0, 1, 0),
    }
    placed = draw(
        st.lists(
            st.tuples(st.sampled_from(sorted(hosts)), st.sampled_from(["g", None])), max_size=3
        )
    )
    return Cloud(hosts, aggregates, flavors, {"g": draw(groups())}).with_servers(
        Server(f"s{number}", f"s{number}", flavors["other"], host, group)
        for number, (host, group) in enumerate(placed)
    )


TRAITS = (frozenset[str](), frozenset({"FAST"}))
EXTRA_SPECS: tuple[dict[str, str], ...] = ({}, {"trait:FAST": "required"}, {"rack": "a"})


def configured() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return conf


def rooms(cloud: Cloud, group: str | None) -> FlavorRooms:
    return HostRooms(FilterScheduler(cloud, configured())).of("f", group)


def placed_one_by_one(cloud: Cloud, hosts: frozenset[str], group: str | None) -> dict[str, int]:
    """Return how many servers the scheduler places on each host until no host fits.

    Only these hosts are candidates.
    """
    scheduler = FilterScheduler(cloud, configured())
    joined = None if group is None else cloud.server_group(group)
    request = Request(cloud.flavor("f"), joined, ignore_hosts=frozenset(cloud.hosts) - hosts)
    found = dict.fromkeys(cloud.hosts, 0)
    while True:
        try:
            selection = scheduler.select(request)
        except NoValidHost:
            return found
        scheduler.commit(selection)
        found[selection.servers[0].host] += 1


@settings(max_examples=examples(60))
@given(clouds(), st.sampled_from(["g", None]))
def test_rooms_equal_servers_placed_one_by_one(cloud: Cloud, group: str | None) -> None:
    found = rooms(cloud, group)
    assert [room.host for room in found.rooms] == list(cloud.hosts)
    for room in found.rooms:
        alone = placed_one_by_one(cloud, frozenset({room.host}), group)
        assert alone[room.host] == room.more
    placed = placed_one_by_one(cloud, frozenset(cloud.hosts), group)
    if not found.on_one_host:
        assert placed == {room.host: room.more for room in found.rooms}
        assert found.total.more == sum(placed.values())
        return
    # All servers go to the host of the first one, which has as much room as any at best.
    event("all servers go to one host")
    assert sum(map(bool, placed.values())) <= 1
    assert found.total.more == max(room.more for room in found.rooms) >= sum(placed.values())


def test_clouds_of_the_laws_lead_to_several_outcomes() -> None:
    def has_choice(cloud: Cloud) -> bool:
        return sum(room.more > 1 for room in rooms(cloud, "g").rooms) > 1

    draw_until(clouds(), lambda cloud: rooms(cloud, "g").on_one_host and has_choice(cloud))
    draw_until(clouds(), lambda cloud: not rooms(cloud, "g").on_one_host and has_choice(cloud))
    draw_until(clouds(), lambda cloud: rooms(cloud, "g").total < rooms(cloud, None).total)


class TriedAffinityFilter(ServerGroupAffinityFilter):
    """The same filter, which does not compute how many servers a host accepts."""

    server_limits = Filter.server_limits


class TriedAntiAffinityFilter(ServerGroupAntiAffinityFilter):
    """As above."""

    server_limits = Filter.server_limits


@settings(max_examples=examples(40))
@given(clouds())
def test_rooms_of_a_group_are_the_same_if_servers_are_tried(cloud: Cloud) -> None:
    scheduler = FilterScheduler(cloud, configured())
    scheduler.filters["ServerGroupAffinityFilter"] = TriedAffinityFilter()
    scheduler.filters["ServerGroupAntiAffinityFilter"] = TriedAntiAffinityFilter()
    assert HostRooms(scheduler).of("f", "g").rooms == rooms(cloud, "g").rooms


@settings(max_examples=examples(40))
@given(clouds(), st.sampled_from(["g", None]))
def test_parts_of_a_breakdown_add_up_to_the_total(cloud: Cloud, group: str | None) -> None:
    found = rooms(cloud, group)
    hosts = {room.host: room.more for room in found.rooms}
    together = max if found.on_one_host else sum
    assert found.total.more == together(hosts.values())
    assert found.total.hosts == len(hosts)
    assert found.total.fitting_hosts == sum(map(bool, hosts.values()))
    limits = found.limits()
    assert together(limit.more for limit in limits) == found.total.more
    assert sum(limit.hosts for limit in limits) == found.total.hosts
    for key in metadata_keys(cloud):
        parts = Breakdown.by_key(cloud, key).count(found)
        assert len({name for name, _ in parts}) == len(parts)
        assert together(count.more for _, count in parts) == found.total.more
        assert sum(count.hosts for _, count in parts) == found.total.hosts
        assert sum(count.fitting_hosts for _, count in parts) == found.total.fitting_hosts


@settings(max_examples=examples(40))
@given(clouds())
def test_breakdown_by_key_has_the_values_of_failure_domains(cloud: Cloud) -> None:
    for key in KEYS:
        warned: list[str] = []
        places = FailureDomains([key], warned.append).of(host_states(cloud)).places
        breakdown = Breakdown.by_key(cloud, key)
        counts = {name: count.hosts for name, count in breakdown.count(rooms(cloud, None))}
        assert counts == collections.Counter(place[0] for place in places)
        assert bool(breakdown.several_values) is bool(warned)


@settings(max_examples=examples(40))
@given(clouds())
def test_breakdown_by_aggregate_counts_the_hosts_of_each(cloud: Cloud) -> None:
    found = rooms(cloud, None)
    more = {room.host: room.more for room in found.rooms}
    expected: dict[str | None, frozenset[str]] = {
        name: frozenset(aggregate.hosts) for name, aggregate in cloud.aggregates.items()
    }
    lonely = frozenset(cloud.hosts).difference(*expected.values())
    if lonely:
        expected[None] = lonely
    counts = dict(Breakdown.by_aggregate(cloud).count(found))
    assert list(counts) == list(expected)
    for name, count in counts.items():
        there = [more[host] for host in expected[name]]
        assert count == (sum(there), False, sum(map(bool, there)), len(there))
