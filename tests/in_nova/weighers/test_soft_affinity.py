"""The same weights as Nova's own soft-affinity weighers, over generated hosts and groups.

Where the two differ by design, a test of its own shows both answers.
"""

import functools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nova import objects
from nova.scheduler import host_manager, weights
from nova.scheduler.weights import affinity
from oslo_config import cfg

import steelyard.nova
from steelyard import conf as options
from support.examples import examples

objects.register_all()

THEIRS: dict[str, Any] = {
    "soft-affinity": affinity.ServerGroupSoftAffinityWeigher(),
    "soft-anti-affinity": affinity.ServerGroupSoftAntiAffinityWeigher(),
}


@functools.cache
def ours(policy: str) -> Any:
    return {
        "soft-affinity": steelyard.nova.ServerGroupSoftAffinityWeigher,
        "soft-anti-affinity": steelyard.nova.ServerGroupSoftAntiAffinityWeigher,
    }[policy]()


@pytest.fixture(autouse=True, scope="module")
def _the_same_multipliers() -> Any:
    options.register(cfg.CONF)
    for policy in THEIRS:
        name = f"{policy.replace('-', '_')}_weight_multiplier"
        cfg.CONF.set_override(name, 2.0, group="filter_scheduler")
        cfg.CONF.set_override(name, 2.0, group=options.GROUP)
    yield
    for policy in THEIRS:
        name = f"{policy.replace('-', '_')}_weight_multiplier"
        cfg.CONF.clear_override(name, group="filter_scheduler")
        cfg.CONF.clear_override(name, group=options.GROUP)


uuids = st.sampled_from([f"u{number}" for number in range(10)])
keys = st.sampled_from(
    ["soft_affinity_weight_multiplier", "soft_anti_affinity_weight_multiplier", "rack"]
)
numbers = st.sampled_from(["0", "1.5", " 2", "-3", "1e3"])
metadata = st.dictionaries(keys, numbers, max_size=3)


@st.composite
def hosts(draw: st.DrawFn) -> list[Any]:
    made = [
        objects.Aggregate(id=index, name=f"a{index}", metadata=each, hosts=[])
        for index, each in enumerate(draw(st.lists(metadata, max_size=3)))
    ]
    states = []
    for index in range(draw(st.integers(2, 5))):
        state = host_manager.HostState(f"host{index}", f"node{index}", str(index))
        state.instances = dict.fromkeys(draw(st.lists(uuids, unique=True)))
        state.aggregates = draw(st.lists(st.sampled_from(made), unique_by=id)) if made else []
        states.append(state)
    return states


def spec(policy: str | None, members: list[str], itself: str = "me") -> Any:
    group = objects.InstanceGroup(policy=policy, members=members, hosts=[])
    return objects.RequestSpec(instance_group=group, instance_uuid=itself)


def weighed(weigher: Any, states: list[Any], request: Any) -> list[tuple[str, float]]:
    found = weights.HostWeightHandler().get_weighed_objects([weigher], states, request)
    return [(each.obj.host, each.weight) for each in found]


@settings(max_examples=examples(200))
@given(
    st.sampled_from(sorted(THEIRS)),
    st.sampled_from(["soft-affinity", "soft-anti-affinity", "affinity", None]),
    hosts(),
    st.lists(uuids, unique=True),
)
def test_hosts_have_the_same_order_and_weights_as_in_nova(
    weigher: str, policy: str | None, states: list[Any], members: list[str]
) -> None:
    request = spec(policy, members)
    assert weighed(ours(weigher), states, request) == weighed(THEIRS[weigher], states, request)


def test_request_without_a_group_has_the_same_weights() -> None:
    states = [host_manager.HostState(name, name, name) for name in "ab"]
    request = objects.RequestSpec(instance_group=None)
    for policy, theirs in THEIRS.items():
        assert weighed(ours(policy), states, request) == weighed(theirs, states, request)


def one_with(uuid: str) -> list[Any]:
    """Return two hosts; the second has the instance."""
    states = [host_manager.HostState(name, name, name) for name in "ab"]
    states[1].instances = {uuid: None}
    return states


def test_difference_server_being_placed_is_not_counted() -> None:
    states, request = one_with("me"), spec("soft-affinity", ["me"])
    assert weighed(THEIRS["soft-affinity"], states, request) == [("b", 2.0), ("a", 0.0)]
    assert weighed(ours("soft-affinity"), states, request) == [("a", 0.0), ("b", 0.0)]


def test_difference_invalid_multiplier_leaves_others_in_force() -> None:
    states, request = one_with("u1"), spec("soft-affinity", ["u1"])
    states[1].aggregates = [
        objects.Aggregate(
            name=text, metadata={"soft_affinity_weight_multiplier": text}, hosts=["b"]
        )
        for text in ("5", "many")
    ]
    assert weighed(THEIRS["soft-affinity"], states, request) == [("b", 2.0), ("a", 0.0)]
    assert weighed(ours("soft-affinity"), states, request) == [("b", 5.0), ("a", 0.0)]


def test_difference_infinite_multiplier_is_ignored() -> None:
    states, request = one_with("u1"), spec("soft-affinity", ["u1"])
    multiplier = {"soft_affinity_weight_multiplier": "inf"}
    states[1].aggregates = [objects.Aggregate(id=1, name="rack", metadata=multiplier, hosts=["b"])]
    assert weighed(THEIRS["soft-affinity"], states, request)[0] == ("b", float("inf"))
    assert weighed(ours("soft-affinity"), states, request) == [("b", 2.0), ("a", 0.0)]


def test_difference_default_multipliers_are_1000() -> None:
    fresh = cfg.ConfigOpts()
    group = options.register(fresh)
    assert group.soft_affinity_weight_multiplier == 1000.0
    assert group.soft_anti_affinity_weight_multiplier == 1000.0
