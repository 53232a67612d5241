"""Laws of the embedded scheduler, over generated clouds."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import FilterScheduler, NoValidHost, Selection
from steelyard.scheduler.examination import normalise
from support.examples import examples
from support.filters import strategies

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

sizes = st.integers(0, 8)
hosts = st.builds(
    lambda found: {f"h{i}": Host(f"h{i}", *size) for i, size in enumerate(found)},
    st.lists(st.tuples(sizes, sizes, sizes), max_size=6),
)


@st.composite
def clouds(draw: st.DrawFn) -> Cloud:
    found = draw(hosts)
    members = st.lists(st.sampled_from(sorted(found) or ["none"]), unique=True, max_size=4)
    aggregates = {
        name: Aggregate(name, draw(strategies.metadata(strategies.scribble)), tuple(draw(members)))
        for name in ("a", "b", "c")
        if found
    }
    flavor = Flavor(
        "f", draw(sizes), draw(sizes), draw(sizes), draw(strategies.mappings(strategies.scribble))
    )
    groups = {name: ServerGroup(name, Policy(name)) for name in ("affinity", "anti-affinity")}
    return Cloud(found, aggregates, {"f": flavor}, groups)


def scheduler(cloud: Cloud) -> FilterScheduler:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return FilterScheduler(cloud, conf)


@settings(max_examples=examples(25))
@given(clouds(), st.sampled_from([None, "affinity", "anti-affinity"]), st.integers(1, 4))
def test_selections_satisfy_capacity_and_policy(
    cloud: Cloud, group: str | None, count: int
) -> None:
    made = scheduler(cloud)
    selection: Selection | None = None
    with contextlib.suppress(NoValidHost):
        selection = made.select(made.request("f", group), count)
    assert made.cloud is cloud
    if selection is None:
        return
    assert len(selection.servers) == count
    made.commit(selection)
    flavor, placed = cloud.flavors["f"], [server.host for server in selection.servers]
    for name, host in cloud.hosts.items():
        here = placed.count(name)
        assert here == 0 or here * flavor.memory_mb <= host.ram_mb
        assert here == 0 or here * flavor.vcpus <= host.vcpus * 4
        assert here == 0 or here * flavor.root_gb <= host.disk_gb
    if group == "affinity":
        assert len(set(placed)) == 1
    if group == "anti-affinity":
        assert len(set(placed)) == count


@settings(max_examples=examples(25))
@given(clouds(), st.sampled_from([None, "anti-affinity"]), st.integers(1, 3))
def test_decision_explains_every_host_once(cloud: Cloud, group: str | None, count: int) -> None:
    made = scheduler(cloud)
    try:
        decisions = made.select(made.request("f", group), count).decisions
    except NoValidHost as error:
        decisions = error.decisions
    for decision in decisions:
        assert sorted(each.host for each in decision.hosts) == sorted(cloud.hosts)
        assert decision.considered == len(cloud.hosts)
        assert [each.host for each in decision.hosts if each.chosen] == (
            [decision.server.host] if decision.server else []
        )
        for each in decision.hosts:
            assert each.fits == (each.reason == "") == (each.passed == tuple(made.filters))
        assert sum(cause.count for cause in decision.causes) == sum(
            not each.fits for each in decision.hosts
        )
        counts = [cause.count for cause in decision.causes]
        assert counts == sorted(counts, reverse=True)


weights = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8)


@given(weights)
def test_normalised_weights_keep_order_and_fill_the_range(raw: list[float]) -> None:
    found = normalise(raw)
    assert all(0.0 <= weight <= 1.0 for weight in found)
    if len(set(raw)) > 1:
        assert min(found) == 0.0
        assert max(found) == 1.0
    order = sorted(range(len(raw)), key=lambda index: (raw[index], found[index]))
    assert [found[index] for index in order] == sorted(found)
