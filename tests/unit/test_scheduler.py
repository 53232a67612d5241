import dataclasses
from typing import Any

import pytest
from oslo_config import cfg

from steelyard import conf as options
from steelyard.errors import BadRequest, Conflict, NotFound, PluginError, PolicyNotSupported
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import (
    Aggregate,
    Cloud,
    FilterScheduler,
    Flavor,
    Host,
    NoValidHost,
    Server,
)
from steelyard.scheduler.pipeline import normalise


def cloud(**metadata: dict[str, str]) -> Cloud:
    """Three hosts of different size, each in an aggregate of its own."""
    hosts = {name: Host(name, 4, ram, 100) for name, ram in (("a", 4096), ("b", 8192), ("c", 2048))}
    return Cloud(
        hosts,
        {name: Aggregate(f"rack-{name}", metadata.get(name, {}), (name,)) for name in hosts},
        {
            "small": Flavor("small", 1, 1024, 10),
            "nvme": Flavor("nvme", 1, 1024, 10, {"ssd": "nvme"}),
            "huge": Flavor("huge", 1, 99999, 10),
        },
        {
            "apart": ServerGroup("apart", Policy.ANTI_AFFINITY),
            "together": ServerGroup("together", Policy.AFFINITY),
            "softly": ServerGroup("softly", Policy.SOFT_AFFINITY),
        },
    )


def hosts_of(
    scheduler: FilterScheduler, flavor: str, group: str | None = None, count: int = 1
) -> Any:
    selection = scheduler.select(scheduler.request(flavor, group), count)
    return [server.host for server in selection.servers]


@pytest.fixture
def scheduler(conf: Any) -> Any:
    return FilterScheduler(cloud(), conf)


def test_plain_requests_spread_by_free_ram(scheduler: Any) -> None:
    assert hosts_of(scheduler, "small", count=6) == ["b", "b", "b", "b", "a", "b"]


def test_stacking_with_a_negative_multiplier(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured("ram_weight_multiplier = -1"))
    assert hosts_of(scheduler, "small", count=3) == ["c", "c", "a"]


def test_an_aggregate_overrides_the_multiplier(conf: Any) -> None:
    found = cloud(b={"ram_weight_multiplier": "-1"})
    assert hosts_of(FilterScheduler(found, conf), "small") == ["a"]


def test_without_weighers_the_order_of_the_cloud_decides(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured("enabled_weighers ="))
    assert hosts_of(scheduler, "small", count=5) == ["a", "a", "a", "a", "b"]


def test_groups(scheduler: Any) -> None:
    assert sorted(hosts_of(scheduler, "small", "apart", 3)) == ["a", "b", "c"]
    assert hosts_of(scheduler, "small", "together", 3) == ["b", "b", "b"]
    with pytest.raises(NoValidHost) as caught:
        hosts_of(scheduler, "small", "apart", 4)
    assert "no valid host for server 4 of 4: of 3 hosts none fits flavor 'small'" in str(
        caught.value
    )
    assert "      3 ServerGroupAntiAffinityFilter: " in str(caught.value)


def test_soft_policy_with_multiplier_0_is_rejected(configured: Any) -> None:
    """Even where an aggregate has a multiplier of its own."""
    found = cloud(b={"soft_affinity_weight_multiplier": "2"})
    scheduler = FilterScheduler(found, configured("soft_affinity_weight_multiplier = 0"))
    with pytest.raises(PolicyNotSupported, match="set soft_affinity_weight_multiplier to another"):
        scheduler.select(scheduler.request("small", "softly"))
    assert hosts_of(scheduler, "small") == ["b"]


def test_a_soft_policy_needs_its_weigher(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured("enabled_weighers = RAMWeigher"))
    with pytest.raises(PolicyNotSupported, match="ServerGroupSoftAffinityWeigher"):
        hosts_of(scheduler, "small", "softly")


def test_nothing_changes_until_it_is_committed(scheduler: Any) -> None:
    before = scheduler.cloud
    selection = scheduler.select(scheduler.request("small", "apart"), 2)
    with pytest.raises(NoValidHost):
        scheduler.select(scheduler.request("huge"))
    assert scheduler.cloud is before
    assert not before.servers
    scheduler.commit(selection)
    assert [server.host for server in scheduler.cloud.servers.values()] == ["b", "a"]
    assert scheduler.cloud.server_groups["apart"].hosts == {"a", "b"}
    assert hosts_of(scheduler, "small", "apart") == ["c"]
    with pytest.raises(Conflict, match="select again"):
        scheduler.commit(selection)


def test_a_request_sees_who_has_joined_its_group_since(scheduler: Any) -> None:
    request = scheduler.request("small", "apart")
    for _ in range(3):
        scheduler.commit(scheduler.select(request))
    assert {server.host for server in scheduler.cloud.servers.values()} == {"a", "b", "c"}
    with pytest.raises(NoValidHost):
        scheduler.select(request)


def test_a_seed_draws_no_uuid_twice(configured: Any) -> None:
    found = cloud()
    for _ in range(3):
        scheduler = FilterScheduler(found, configured("seed = 7"))
        scheduler.commit(scheduler.select(scheduler.request("small", "apart")))
        found = scheduler.cloud
    assert len(found.servers) == len(found.server_groups["apart"].members) == 3


def test_servers_that_do_not_fit_the_cloud_are_refused() -> None:
    found = cloud()
    server = Server("u", "s", found.flavors["small"], "a", "apart")
    with pytest.raises(Conflict, match="already a server with the UUID 'u'"):
        found.with_servers([server, server])
    with pytest.raises(NotFound, match="there is no host 'z'"):
        found.with_servers([dataclasses.replace(server, host="z")])
    with pytest.raises(NotFound, match="there is no server group 'apar'; did you mean 'apart'"):
        found.with_servers([dataclasses.replace(server, group="apar")])


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), "heavy"])
def test_a_weigher_that_fails_is_named(scheduler: Any, monkeypatch: Any, weight: Any) -> None:
    weigher = scheduler.weighers["RAMWeigher"]
    monkeypatch.setattr(weigher, "weigh_objects", lambda hosts, request: [weight] * len(hosts))
    with pytest.raises(PluginError, match="the weigher 'RAMWeigher' has failed: "):
        scheduler.select(scheduler.request("small"))


def test_a_filter_that_fails_is_named(scheduler: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(scheduler.filters["CapacityFilter"], "filter_all", lambda *_: 1 / 0)
    with pytest.raises(PluginError, match="'CapacityFilter' has failed: ZeroDivisionError"):
        scheduler.select(scheduler.request("small"))


def test_a_long_list_of_causes_is_cut(configured: Any) -> None:
    hosts = {f"h{i}": Host(f"h{i}", 1, 1, 1) for i in range(14)}
    racks = {
        name: Aggregate(name, {f"k{name}": "1", "force_metadata_check": "true"}, (name,))
        for name in hosts
    }
    found = Cloud(hosts, racks, {"small": Flavor("small", 1, 1, 1)})
    with pytest.raises(NoValidHost) as caught:
        hosts_of(FilterScheduler(found, configured()), "small")
    lines = str(caught.value).splitlines()
    assert len(lines) == 12
    assert lines[-1] == "      4 for 4 other causes"


def test_names_of_servers_are_free_ones(scheduler: Any) -> None:
    for number in (1, 2):
        selection = scheduler.select(scheduler.request("small"))
        assert selection.servers[0].name == f"small-{number}"
        scheduler.commit(selection)


def test_a_decision_explains_itself(conf: Any) -> None:
    found = cloud(a={"ssd": "nvme"}, b={"ssd": "sata"}, c={"ssd": "nvme"})
    scheduler = FilterScheduler(found, conf)
    (decision,) = scheduler.select(scheduler.request("nvme")).decisions
    chosen, other, rejected = decision.hosts
    filters = (
        "InServiceFilter",
        "CapacityFilter",
        "TraitsFilter",
        "AggregateInstanceTypeFilter",
        "ServerGroupAffinityFilter",
        "ServerGroupAntiAffinityFilter",
    )
    assert (chosen.host, chosen.chosen, chosen.passed) == ("a", True, filters)
    assert (other.host, other.chosen, other.fits) == ("c", False, True)
    assert [
        (w.weigher, w.raw, w.normalised, w.multiplier, w.multiplied) for w in chosen.weights
    ] == [
        ("RAMWeigher", 4096.0, 1.0, 1.0, 1.0),
        ("ServerGroupSoftAffinityWeigher", 0.0, 0.0, 1000.0, 0.0),
        ("ServerGroupSoftAntiAffinityWeigher", 0.0, 0.0, 1000.0, 0.0),
    ]
    assert (other.weight, chosen.weight, rejected.weight) == (0.5, 1.0, None)
    assert rejected.passed == ("InServiceFilter", "CapacityFilter", "TraitsFilter")
    assert rejected.rejected_by == "AggregateInstanceTypeFilter"
    assert rejected.reason == "key 'ssd': flavor wants 'nvme', aggregate 'rack-b' offers 'sata'"
    assert decision.considered == 3


def test_a_failure_counts_its_causes_most_frequent_first(conf: Any) -> None:
    racks = {
        "fast": Aggregate("fast", {"ssd": "nvme"}, ("a",)),
        "slow": Aggregate("slow", {"ssd": "sata"}, ("b", "c")),
    }
    scheduler = FilterScheduler(dataclasses.replace(cloud(), aggregates=racks), conf)
    with pytest.raises(NoValidHost) as caught:
        scheduler.select(scheduler.request("nvme"), 5)
    assert [(c.count, c.filter, c.cause) for c in caught.value.decision.causes] == [
        (
            2,
            "AggregateInstanceTypeFilter",
            "key 'ssd': flavor wants 'nvme', aggregate 'slow' offers 'sata'",
        ),
        (1, "CapacityFilter", "not enough MiB of RAM: flavor wants 1024"),
    ]
    assert len(caught.value.decisions) == 5
    # what earlier servers were told still holds for them
    assert caught.value.decisions[0].hosts[0].host == "a"
    assert len(caught.value.decisions[0].rejected) == 1


@pytest.mark.parametrize("count", [0, -1])
def test_a_request_is_for_at_least_one_server(scheduler: Any, count: Any) -> None:
    with pytest.raises(BadRequest, match=f"at least 1, not {count}"):
        scheduler.select(scheduler.request("small"), count)


def test_unknown_names(scheduler: Any) -> None:
    with pytest.raises(NotFound, match="there is no flavor 'smal'; did you mean 'small'"):
        scheduler.request("smal")
    with pytest.raises(NotFound, match="there is no server group 'aprt'; did you mean 'apart'"):
        scheduler.request("small", "aprt")


def test_an_empty_cloud(conf: Any) -> None:
    scheduler = FilterScheduler(Cloud({}, flavors={"small": Flavor("small", 1, 1, 1)}), conf)
    with pytest.raises(NoValidHost, match="of 0 hosts none fits"):
        scheduler.select(scheduler.request("small"))


def test_a_seed_makes_random_choices_repeatable(configured: Any) -> None:
    lines = ("host_subset_size = 3", "seed = 7")
    runs = []
    for _ in range(2):
        scheduler = FilterScheduler(cloud(), configured(*lines))
        runs.append(scheduler.select(scheduler.request("small"), 4).servers)
    assert runs[0] == runs[1]
    assert {server.host for server in runs[0]} > {"b"}


def test_filters_run_in_the_order_of_the_option(configured: Any) -> None:
    conf = configured("enabled_filters = AggregateInstanceTypeFilter, CapacityFilter")
    scheduler = FilterScheduler(cloud(), conf)
    assert list(scheduler.filters) == ["AggregateInstanceTypeFilter", "CapacityFilter"]
    with pytest.raises(PolicyNotSupported, match="ServerGroupAffinityFilter"):
        scheduler.select(scheduler.request("small", "together"))


def test_an_unknown_plugin_is_an_error_with_a_list(configured: Any) -> None:
    with pytest.raises(
        PluginError,
        match=r"no filter 'NoFilter'; installed are Aggregate.*CapacityFilter \(steelyard",
    ):
        FilterScheduler(cloud(), configured("enabled_filters = NoFilter"))


def test_a_bad_option_stops_the_start(configured: Any) -> None:
    with pytest.raises(cfg.ConfigFileValueError, match="ram_weight_multiplier"):
        FilterScheduler(cloud(), configured("ram_weight_multiplier = nan"))


def test_the_global_configuration_is_the_default() -> None:
    assert FilterScheduler(cloud()).filters.keys() == set(cfg.CONF[options.GROUP].enabled_filters)


@pytest.mark.parametrize(
    ("weights", "least", "most", "normalised"),
    [
        ([], None, None, []),
        ([5.0], None, None, [0.0]),
        ([5.0, 5.0], None, None, [0.0, 0.0]),
        ([1.0, 3.0, 2.0], None, None, [0.0, 1.0, 0.5]),
        ([1.0, 3.0], 0.0, None, [1 / 3, 1.0]),
        ([1.0, 3.0], 0.0, 4.0, [0.25, 0.75]),
        ([-3.0, 0.0], None, None, [0.0, 1.0]),
    ],
)
def test_normalising(weights: Any, least: Any, most: Any, normalised: Any) -> None:
    assert normalise(weights, least, most) == normalised
