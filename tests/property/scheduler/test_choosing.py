"""The scheduler chooses as a naive one that asks every plugin about every host each time."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard import conf as options
from steelyard.attributes import read
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.filters.base import Filter, Rejections
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import Decision, FilterScheduler, NoValidHost, arithmetic
from steelyard.verdict import Verdict
from steelyard.weighers.base import Weigher
from support.examples import examples
from support.scheduler.naive_scheduler import NaiveChoice, NaiveScheduler

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

FLAVORS = {
    "small": Flavor("small", 1, 1024, 1),
    "large": Flavor("large", 2, 3072, 2),
    "fast": Flavor("fast", 1, 512, 1, {"ssd": "nvme"}),
    "trait": Flavor("trait", 1, 512, 1, {"trait:CUSTOM_A": "required"}),
}


class FewServersFilter(Filter):
    """A host-local filter that reads the servers on a host."""

    host_local = True

    def judge(self, request: object) -> Rejections:
        def rejections(host: object) -> Iterator[Verdict]:
            if len(read(host, "instances")) > 3:
                yield Verdict.rejected(f"{read(host, 'host')} has 4 servers")

        return rejections


class OnceFewServersFilter(FewServersFilter):
    """The same filter, applied once for each request."""

    run_filter_once_per_request = True


class UnmarkedFewServersFilter(FewServersFilter):
    """The same filter, without saying that its answers can be kept."""

    host_local = False


class ServersWeigher(Weigher):
    """A host-local weigher that prefers hosts with fewer servers."""

    host_local = True

    def _weigh_object(self, host: object, request: object) -> float:
        return -float(len(read(host, "instances")))


class RelativeWeigher(Weigher):
    """A weigher whose raw weights depend on the other hosts."""

    maxval = 2.0

    def weigh_objects(self, weighed_hosts: Any, request: object) -> list[float]:
        free = [each.obj.free_ram_mb for each in weighed_hosts]
        return [float(each == max(free)) for each in free]

    def _weigh_object(self, host: object, request: object) -> float:
        return 0.0

    def weight_multiplier(self, host: object) -> float:
        return 0.5 if str(read(host, "host")).endswith("1") else 0.25


class TraitsWeigher(Weigher):
    """A weigher by kind, with a multiplier in aggregate metadata."""

    multiplier_key = "rack_weight"

    def by_kind(self, request: object) -> bool:
        return True

    def _weigh_object(self, host: object, request: object) -> float:
        return float(len(read(host, "traits")))


class AggregatesWeigher(Weigher):
    """A weigher that prefers hosts in few aggregates, and hosts without servers of the group."""

    def keys_without_members(self, hosts: Sequence[object]) -> list[int]:
        return [len(read(host, "aggregates")) for host in hosts]

    def _weigh_object(self, host: object, request: object) -> float:
        members = read(read(request, "instance_group"), "members") or set()
        return -float(len(read(host, "aggregates")) + 2 * len(members & {*read(host, "instances")}))


MORE_FILTERS: Mapping[str, type[Filter]] = {
    each.__name__: each
    for each in (FewServersFilter, OnceFewServersFilter, UnmarkedFewServersFilter)
}
MORE_WEIGHERS: Mapping[str, type[Weigher]] = {
    each.__name__: each
    for each in (ServersWeigher, RelativeWeigher, TraitsWeigher, AggregatesWeigher)
}

host_values = st.builds(
    lambda vcpus, ram, disk, traits, out: Host(
        "", vcpus, ram * 1024, disk, frozenset(traits), out_of_service="down" if out else ""
    ),
    st.sampled_from([2, 4]),
    st.sampled_from([2, 6, 8]),
    st.sampled_from([4, 20]),
    st.sampled_from([(), ("CUSTOM_A",)]),
    st.sampled_from([False] * 5 + [True]),
)


@st.composite
def clouds(draw: st.DrawFn) -> Cloud:
    hosts = {
        f"h{index}": dataclasses.replace(host, name=f"h{index}")
        for index, host in enumerate(draw(st.lists(host_values, min_size=1, max_size=9)))
    }
    members = st.lists(st.sampled_from(sorted(hosts)), unique=True)
    aggregates = {}
    for number, metadata in enumerate(
        [
            {"rack": "r1"},
            {"rack": "r1"},
            {"rack": "r2", "rack_weight": "0.5"},
            {"room": "a"},
            {"ssd": "nvme"},
            {"ram_weight_multiplier": "-1"},
        ]
    ):
        aggregates[f"a{number}"] = Aggregate(f"a{number}", metadata, tuple(draw(members)))
    groups = {policy.value: ServerGroup(policy.value, policy) for policy in Policy}
    cloud = Cloud(hosts, aggregates, FLAVORS, groups)
    placed = st.tuples(
        st.sampled_from(sorted(hosts)),
        st.sampled_from(sorted(FLAVORS)),
        st.sampled_from([None, None, *groups]),
    )
    return cloud.with_servers(
        Server(f"uuid-{number}", f"s-{number}", FLAVORS[flavor], host, group)
        for number, (host, flavor, group) in enumerate(draw(st.lists(placed, max_size=8)))
    )


requests = st.one_of(
    st.tuples(
        st.sampled_from(sorted(FLAVORS)),
        st.sampled_from([None, None, *(policy.value for policy in Policy)]),
        st.integers(1, 5),
        st.booleans(),
    ),
    st.integers(0, 9),
)


@st.composite
def schedulers(draw: st.DrawFn) -> tuple[FilterScheduler, NaiveScheduler]:
    seed, size = draw(st.integers(0, 3)), draw(st.integers(1, 4))
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    conf.set_override("seed", seed, "steelyard")
    conf.set_override("host_subset_size", size, "steelyard")
    conf.set_override("failure_domains", draw(st.sampled_from([[], ["rack", "room"]])), "steelyard")
    trials = draw(st.sets(st.sampled_from(["CapacityFilter", "AggregateInstanceTypeFilter"])))
    conf.set_override("trial_filters", sorted(trials), "steelyard")
    made = FilterScheduler(draw(clouds()), conf)
    for name in draw(st.sets(st.sampled_from(sorted(MORE_FILTERS)))):
        made.filters[name] = MORE_FILTERS[name]()
    for name in draw(st.sets(st.sampled_from(sorted(MORE_WEIGHERS)))):
        made.weighers[name] = MORE_WEIGHERS[name]()
    return made, NaiveScheduler(made, seed, size, trials)


def assert_same(decision: Decision, naive: NaiveChoice) -> None:
    assert decision.server == naive.server
    assert decision.fitting == len(naive.weights)
    assert [(each.obj.host, each.weight) for each in decision.weighed] == naive.weights
    if decision.chosen is not None:
        shown = {each.obj.host: each for each in decision.weighed}[decision.chosen.obj.host]
        assert decision.chosen.weights == shown.weights
        assert decision.chosen.obj is shown.obj
    rejections = {
        each.host: (each.rejected_by, each.reason) for each in decision.hosts if not each.fits
    }
    assert rejections == naive.rejections
    # Hosts that were rejected for an earlier server are compared without filters on trial.
    for each in decision.hosts:
        found = {trial.filter: trial.reason for trial in each.trial_rejections if each.fits}
        for name, reasons in naive.trials.items():
            assert not each.fits or found.get(name) == reasons.get(each.host)
    assert decision.considered == len(naive.weights) + len(naive.rejections)


@pytest.mark.parametrize("size_of_large", [1, 1_000], ids=["arrays", "lists"])
@settings(max_examples=examples(100))
@given(made=schedulers(), asked=st.lists(requests, min_size=1, max_size=6))
def test_choices_equal_those_of_a_naive_scheduler(
    size_of_large: int,
    made: tuple[FilterScheduler, NaiveScheduler],
    asked: list[Any],
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(arithmetic, "LARGE", size_of_large)
        scheduler, naive = made
        for each in asked:
            if isinstance(each, int):
                compare_moves(scheduler, naive, each)
            else:
                compare_selections(scheduler, naive, *each)
            assert scheduler.cloud.servers == naive.cloud.servers
            assert scheduler.cloud.server_groups == naive.cloud.server_groups


def compare_selections(
    scheduler: FilterScheduler,
    naive: NaiveScheduler,
    flavor: str,
    group: str | None,
    count: int,
    commit: bool,
) -> None:
    expected = naive.select(flavor, group, count)
    try:
        selection = scheduler.select(scheduler.request(flavor, group), count)
        decisions: Any = selection.decisions
    except NoValidHost as error:
        selection, decisions = None, error.decisions
    if selection is not None and commit:
        scheduler.commit(selection)
        naive.commit(expected)
    # Decisions are read after the commit: they are about the hosts before it.
    for decision, choice in zip(decisions, expected, strict=True):
        assert_same(decision, choice)


def compare_moves(scheduler: FilterScheduler, naive: NaiveScheduler, number: int) -> None:
    servers = list(naive.cloud.servers.values())
    if not servers:
        return
    server = servers[number % len(servers)]
    expected = naive.select_move(server)
    try:
        selection = scheduler.select_move(server.uuid)
    except NoValidHost as error:
        assert_same(error.decision, expected)
        return
    scheduler.commit(selection)
    naive.commit([expected])
    assert_same(selection.decisions[0], expected)
