"""Laws of the soft-affinity weighers, over generated hosts and groups."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard.weighers.soft_affinity import (
    ServerGroupSoftAffinityWeigher,
    ServerGroupSoftAntiAffinityWeigher,
)
from support.scheduler.plain_objects import Aggregate

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

uuids = st.sampled_from([f"u{number}" for number in range(12)])


@dataclasses.dataclass(eq=False)
class Host:
    host: str
    instances: dict[str, None]
    aggregates: list[Aggregate]


@dataclasses.dataclass
class Group:
    policy: str
    members: list[str]
    hosts: list[str]


@dataclasses.dataclass
class Request:
    instance_group: Group
    instance_uuid: str


@dataclasses.dataclass
class Weighed:
    obj: Host


@st.composite
def hosts(draw: st.DrawFn) -> list[Host]:
    """Draw hosts with instances, each in a rack, a room, both or neither."""
    names = draw(st.sampled_from([["h0"], ["h0", "h1"], ["h0", "h1", "h2", "h3", "h4"]]))
    where = draw(st.dictionaries(uuids, st.sampled_from(names)))
    places = st.fixed_dictionaries(
        {}, optional={"rack": st.sampled_from("12"), "room": st.sampled_from("12")}
    )
    return [
        Host(
            name,
            dict.fromkeys(uuid for uuid, host in where.items() if host == name),
            [Aggregate(draw(places), f"of {name}")],
        )
        for name in names
    ]


members = st.lists(uuids, unique=True)
levels = st.sampled_from(["", "rack", "rack, room"])
policies = st.sampled_from(["soft-affinity", "soft-anti-affinity"])


def weigh(policy: str, domains: str, found: list[Host], joined: list[str]) -> list[float]:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    kind: Any = {
        "soft-affinity": ServerGroupSoftAffinityWeigher,
        "soft-anti-affinity": ServerGroupSoftAntiAffinityWeigher,
    }[policy]
    kind(conf)  # registers the options
    conf.set_override("failure_domains", domains.split(", ") if domains else [], "steelyard")
    with_members = [host.host for host in found if host.instances.keys() & set(joined)]
    request = Request(Group(policy, joined, with_members), "me")
    weights: list[float] = kind(conf).weigh_objects([Weighed(host) for host in found], request)
    return weights


def counts(found: list[Host], joined: list[str]) -> list[int]:
    return [len(host.instances.keys() & set(joined)) for host in found]


@given(policies, hosts(), members)
def test_weights_are_the_counts_of_members(
    policy: str, found: list[Host], joined: list[str]
) -> None:
    sign = 1 if policy == "soft-affinity" else -1
    assert weigh(policy, "", found, joined) == [sign * count for count in counts(found, joined)]


@given(policies, levels, hosts(), members, st.data())
def test_unrelated_instance_changes_no_weight(
    policy: str, domains: str, found: list[Host], joined: list[str], data: st.DataObject
) -> None:
    before = weigh(policy, domains, found, joined)
    data.draw(st.sampled_from(found)).instances["stranger"] = None
    assert weigh(policy, domains, found, joined) == before


@given(policies, levels, hosts(), members, st.data())
def test_server_being_placed_changes_no_weight(
    policy: str, domains: str, found: list[Host], joined: list[str], data: st.DataObject
) -> None:
    before = weigh(policy, domains, found, joined)
    data.draw(st.sampled_from(found)).instances["me"] = None
    assert weigh(policy, domains, found, [*joined, "me"]) == before


@given(policies, levels, hosts(), members, st.randoms())
def test_permuted_hosts_have_permuted_weights(
    policy: str, domains: str, found: list[Host], joined: list[str], chance: Any
) -> None:
    before = dict(zip(found, weigh(policy, domains, found, joined), strict=True))
    permuted = list(found)
    chance.shuffle(permuted)
    assert dict(zip(permuted, weigh(policy, domains, permuted, joined), strict=True)) == before


@given(hosts(), members)
def test_host_with_the_most_members_has_the_highest_weight(
    found: list[Host], joined: list[str]
) -> None:
    here = counts(found, joined)
    together = weigh("soft-affinity", "", found, joined)
    assert here[together.index(max(together))] == max(here)
    apart = weigh("soft-anti-affinity", "", found, joined)
    assert here[apart.index(max(apart))] == min(here)


@given(levels, hosts(), members)
def test_soft_anti_affinity_negates_soft_affinity(
    domains: str, found: list[Host], joined: list[str]
) -> None:
    together = weigh("soft-affinity", domains, found, joined)
    apart = weigh("soft-anti-affinity", domains, found, joined)
    assert [-weight for weight in together] == apart


@given(hosts(), members)
def test_domains_take_precedence_over_hosts(found: list[Host], joined: list[str]) -> None:
    # The best host has the fewest members in its room, then in its rack, then on itself.

    def in_common(host: Host, other: Host, *keys: str) -> bool:
        mine, others = host.aggregates[0].metadata, other.aggregates[0].metadata
        return all(mine.get(key) == others.get(key) for key in keys)

    def fullness(host: Host) -> tuple[int, ...]:
        by_host = dict(zip(found, counts(found, joined), strict=True))
        return (
            sum(count for other, count in by_host.items() if in_common(host, other, "room")),
            sum(
                count for other, count in by_host.items() if in_common(host, other, "room", "rack")
            ),
            by_host[host],
        )

    weights = weigh("soft-anti-affinity", "rack, room", found, joined)
    order = sorted({fullness(host) for host in found})
    assert weights == [-order.index(fullness(host)) for host in found]
