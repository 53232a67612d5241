"""Laws of the analysis of clouds."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard.analysis import capacity
from steelyard.analysis.checks import check
from steelyard.analysis.fitting import Fitting
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.cloud.host_state import host_states
from steelyard.errors import PluginError
from steelyard.filters.capacity import FreeCapacity
from steelyard.scheduler import FilterScheduler, NoValidHost
from steelyard.text.spelling import near_miss
from support.examples import examples
from support.filters import strategies

sizes = st.integers(0, 8)


@st.composite
def clouds(draw: st.DrawFn) -> Cloud:
    amounts = st.dictionaries(st.sampled_from(["vcpus", "ram_mb", "disk_gb"]), sizes)
    hosts = {
        f"h{i}": Host(f"h{i}", *size, reserved=reserved, used=used, out_of_service=out)
        for i, (size, reserved, used, out) in enumerate(
            draw(
                st.lists(
                    st.tuples(
                        st.tuples(sizes, sizes, sizes),
                        amounts,
                        amounts,
                        st.sampled_from(["", "", "", "disabled"]),
                    ),
                    min_size=1,
                    max_size=4,
                )
            )
        )
    }
    members = st.lists(st.sampled_from(sorted(hosts)), unique=True)
    aggregates = {
        name: Aggregate(name, draw(strategies.metadata(strategies.scribble)), tuple(draw(members)))
        for name in ("a", "b", "c")
    }
    flavors = {
        name: Flavor(
            name,
            draw(sizes),
            draw(sizes),
            draw(sizes),
            draw(strategies.mappings(strategies.scribble)),
        )
        for name in ("f", "g")
    }
    servers = st.lists(st.tuples(st.sampled_from(sorted(hosts)), st.sampled_from("fg")), max_size=3)
    return Cloud(hosts, aggregates, flavors).with_servers(
        Server(f"s{i}", f"s{i}", flavors[flavor], host)
        for i, (host, flavor) in enumerate(draw(servers))
    )


def configured() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return conf


def fits(scheduler: FilterScheduler, flavor: str) -> bool:
    try:
        scheduler.select(scheduler.request(flavor))
    except NoValidHost:
        return False
    return True


@settings(max_examples=examples(20))
@given(clouds())
def test_check_agrees_with_scheduler_about_fit(cloud: Cloud) -> None:
    findings = check(cloud, configured())
    told = {(each.check, str(each.subject)) for each in findings}
    scheduler = FilterScheduler(cloud, configured())
    for flavor in cloud.flavors:
        never = ("fits-no-host", f"flavor {flavor!r}") in told
        not_now = ("no-room", f"flavor {flavor!r}") in told
        assert fits(scheduler, flavor) is not (never or not_now)
        assert not (never and not_now)
        if never:
            emptied = {
                name: Host(name, host.vcpus, host.ram_mb, host.disk_gb, reserved=host.reserved)
                for name, host in cloud.hosts.items()
            }
            empty = Cloud(emptied, cloud.aggregates, cloud.flavors)
            assert not fits(FilterScheduler(empty, configured()), flavor)


@settings(max_examples=examples(20))
@given(clouds())
def test_missing_is_empty_exactly_for_fitting_hosts(cloud: Cloud) -> None:
    fitting = Fitting(cloud, configured())
    for flavor in cloud.flavors:
        taking = fitting.of(flavor, fitting.present, fitting.present.hosts)
        for host in fitting.present.hosts:
            missing = fitting.missing(flavor, host)
            assert (not missing.verdicts) is (host in taking)
            assert missing.count <= len(missing.verdicts)
            assert missing.dedicated or missing.count == len(missing.verdicts)


@settings(max_examples=examples(20))
@given(clouds(), st.integers(1, 8))
def test_rooms_count_servers_that_scheduler_places(cloud: Cloud, ram_mb: int) -> None:
    flavor = Flavor("more", 0, ram_mb, 0, cloud.flavors["f"].extra_specs)
    cloud = Cloud(
        cloud.hosts, cloud.aggregates, {**cloud.flavors, "more": flavor}, {}, cloud.servers
    )
    rooms = capacity.HostRooms(FilterScheduler(cloud, configured())).of("more")
    found = {room.host: room for room in rooms.rooms}
    assert list(found) == list(cloud.hosts)
    placed: dict[str, int] = dict.fromkeys(cloud.hosts, 0)
    scheduler = FilterScheduler(cloud, configured())
    while True:
        try:
            selection = scheduler.select(scheduler.request("more"))
        except NoValidHost as error:
            reasons = {each.host: each.reason for each in error.decision.hosts}
            break
        scheduler.commit(selection)
        placed[selection.servers[0].host] += 1
    assert {name: room.more for name, room in found.items()} == placed
    assert {name: room.verdict.reason for name, room in found.items()} == reasons
    assert sum(limit.hosts for limit in rooms.limits()) == len(cloud.hosts)
    assert sum(limit.more for limit in rooms.limits()) == sum(placed.values())
    fitting = sum(map(bool, placed.values()))
    assert rooms.total == (sum(placed.values()), False, fitting, len(cloud.hosts))


@given(st.text(max_size=6), st.text(max_size=6))
def test_near_miss_is_symmetric_and_irreflexive(one: str, other: str) -> None:
    assert not near_miss(one, one)
    assert near_miss(one, other) == near_miss(other, one)


def test_rooms_stop_counting_for_flavor_without_amounts() -> None:
    cloud = Cloud({"h": Host("h", 1, 1, 1)}, {}, {"f": Flavor("f", 0, 0, 0)})
    (room,) = capacity.HostRooms(FilterScheduler(cloud, configured())).of("f").rooms
    assert (room.more, room.verdict.reason) == (
        capacity.MOST,
        "at most 1000 servers are tried per host",
    )


def test_rooms_name_failing_filter(monkeypatch: Any) -> None:
    cloud = Cloud({"h": Host("h", 1, 1, 1)}, {}, {"f": Flavor("f", 0, 0, 0)})
    scheduler = FilterScheduler(cloud, configured())
    monkeypatch.setattr(scheduler.filters["CapacityFilter"], "server_limits", lambda *_: 1 / 0)
    with pytest.raises(PluginError, match="'CapacityFilter' failed: ZeroDivisionError"):
        capacity.HostRooms(scheduler).of("f")


@settings(max_examples=examples(20))
@given(clouds())
def test_kept_amounts_equal_computed_ones(cloud: Cloud) -> None:
    states = host_states(cloud)
    kept, computed = FreeCapacity(configured()), FreeCapacity(configured())
    kept.keep(states[1:])
    for host in states:  # the first one is not kept
        assert dict(kept.of(host)) == dict(computed.of(host))
    wanted = {"VCPU": 1, "MEMORY_MB": 2048}
    for hosts in (states, states[1:]):
        assert list(kept.demands(hosts, wanted)) == list(computed.demands(hosts, wanted))
