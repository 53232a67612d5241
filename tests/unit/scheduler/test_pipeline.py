"""Selection of hosts with filters and weighers, and the commit of a selection."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from oslo_config import cfg

from steelyard import conf as options
from steelyard.attributes import read
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.errors import BadRequest, Conflict, NotFound, PluginError, PolicyNotSupported
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import FilterScheduler, NoValidHost, Selection
from steelyard.scheduler.examination import normalise
from steelyard.weighers.base import Weigher
from support.scheduler.three_hosts import cloud


class ShortOfKeys(Weigher):
    """A weigher with a key for one host only."""

    def keys_without_members(self, hosts: Sequence[object]) -> list[str]:
        return ["one"]

    def _weigh_object(self, host: object, request: object) -> float:
        return 0.0


def hosts_of(
    scheduler: FilterScheduler, flavor: str, group: str | None = None, count: int = 1
) -> Any:
    selection = scheduler.select(scheduler.request(flavor, group), count)
    return [server.host for server in selection.servers]


@pytest.fixture
def scheduler(conf: Any) -> Any:
    return FilterScheduler(cloud(), conf)


def test_select_spreads_servers_by_free_ram(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured("enabled_weighers = RAMWeigher"))
    assert hosts_of(scheduler, "small", count=6) == ["b", "b", "b", "b", "a", "b"]


def test_select_spreads_servers_by_free_ram_vcpus_and_disk(scheduler: Any) -> None:
    assert hosts_of(scheduler, "small", count=6) == ["b", "b", "b", "a", "b", "a"]


def test_select_stacks_servers_with_negative_multiplier(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured("ram_weight_multiplier = -1"))
    assert hosts_of(scheduler, "small", count=3) == ["c", "c", "a"]


def test_aggregate_metadata_overrides_multiplier(conf: Any) -> None:
    found = cloud(b={"ram_weight_multiplier": "-1"})
    assert hosts_of(FilterScheduler(found, conf), "small") == ["a"]


def test_select_without_weighers_keeps_cloud_order(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured("enabled_weighers ="))
    assert hosts_of(scheduler, "small", count=5) == ["a", "a", "a", "a", "b"]


def test_select_applies_hard_group_policies(scheduler: Any) -> None:
    assert sorted(hosts_of(scheduler, "small", "apart", 3)) == ["a", "b", "c"]
    assert hosts_of(scheduler, "small", "together", 3) == ["b", "b", "b"]
    with pytest.raises(NoValidHost) as caught:
        hosts_of(scheduler, "small", "apart", 4)
    assert "no valid host for server 4 of 4: 0 of 3 hosts fit flavor 'small'" in str(caught.value)
    assert "      3 ServerGroupAntiAffinityFilter: " in str(caught.value)


def test_select_rejects_soft_policy_with_multiplier_0(configured: Any) -> None:
    # Not even a multiplier in the metadata of an aggregate makes the policy work.
    found = cloud(b={"soft_affinity_weight_multiplier": "2"})
    scheduler = FilterScheduler(found, configured("soft_affinity_weight_multiplier = 0"))
    with pytest.raises(PolicyNotSupported, match="set soft_affinity_weight_multiplier to another"):
        scheduler.select(scheduler.request("small", "softly"))
    assert hosts_of(scheduler, "small") == ["b"]


def test_select_rejects_soft_policy_without_its_weigher(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured("enabled_weighers = RAMWeigher"))
    with pytest.raises(PolicyNotSupported, match="ServerGroupSoftAffinityWeigher"):
        hosts_of(scheduler, "small", "softly")


def test_select_changes_nothing_before_commit(scheduler: Any) -> None:
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


def test_select_refreshes_group_members_of_request(scheduler: Any) -> None:
    request = scheduler.request("small", "apart")
    for _ in range(3):
        scheduler.commit(scheduler.select(request))
    assert {server.host for server in scheduler.cloud.servers.values()} == {"a", "b", "c"}
    with pytest.raises(NoValidHost):
        scheduler.select(request)


def test_seeded_schedulers_never_repeat_a_uuid(configured: Any) -> None:
    found = cloud()
    for _ in range(3):
        scheduler = FilterScheduler(found, configured("seed = 7"))
        scheduler.commit(scheduler.select(scheduler.request("small", "apart")))
        found = scheduler.cloud
    assert len(found.servers) == len(found.server_groups["apart"].members) == 3


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), "heavy"])
def test_select_names_failing_weigher(scheduler: Any, monkeypatch: Any, weight: Any) -> None:
    weigher = scheduler.weighers["RAMWeigher"]
    monkeypatch.setattr(weigher, "weigh_objects", lambda hosts, request: [weight] * len(hosts))
    with pytest.raises(PluginError, match="the weigher 'RAMWeigher' failed: "):
        scheduler.select(scheduler.request("small"))


def test_select_names_weigher_with_too_few_keys(configured: Any) -> None:
    made = FilterScheduler(cloud(), configured())
    made.weighers["Short"] = ShortOfKeys()
    with pytest.raises(PluginError, match=r"the weigher 'Short' failed: .*expected 3 keys, got 1"):
        made.select(made.request("small"))


def test_select_names_failing_filter(scheduler: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(scheduler.filters["CapacityFilter"], "passing", lambda *_: 1 / 0)
    with pytest.raises(PluginError, match="'CapacityFilter' failed: ZeroDivisionError"):
        scheduler.select(scheduler.request("small"))


def test_no_valid_host_summarises_rare_causes(configured: Any) -> None:
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


def test_select_skips_used_server_names(scheduler: Any) -> None:
    for number in (1, 2):
        selection = scheduler.select(scheduler.request("small"))
        assert selection.servers[0].name == f"small-{number}"
        scheduler.commit(selection)


@pytest.mark.parametrize("count", [0, -1])
def test_select_rejects_count_below_1(scheduler: Any, count: Any) -> None:
    with pytest.raises(BadRequest, match=f"invalid number of servers {count}: expected at least 1"):
        scheduler.select(scheduler.request("small"), count)


def test_request_rejects_unknown_names_with_suggestion(scheduler: Any) -> None:
    with pytest.raises(NotFound, match="no flavor 'smal'; did you mean 'small'"):
        scheduler.request("smal")
    with pytest.raises(NotFound, match="no server group 'aprt'; did you mean 'apart'"):
        scheduler.request("small", "aprt")


def test_select_in_empty_cloud_finds_no_valid_host(conf: Any) -> None:
    scheduler = FilterScheduler(Cloud({}, flavors={"small": Flavor("small", 1, 1, 1)}), conf)
    with pytest.raises(NoValidHost, match="0 of 0 hosts fit"):
        scheduler.select(scheduler.request("small"))


def test_seed_makes_random_choices_repeatable(configured: Any) -> None:
    lines = ("host_subset_size = 3", "seed = 7")
    runs = []
    for _ in range(2):
        scheduler = FilterScheduler(cloud(), configured(*lines))
        runs.append(scheduler.select(scheduler.request("small"), 4).servers)
    assert runs[0] == runs[1]
    assert {server.host for server in runs[0]} > {"b"}


def test_filters_keep_the_order_of_the_option(configured: Any) -> None:
    conf = configured("enabled_filters = AggregateInstanceTypeFilter, CapacityFilter")
    scheduler = FilterScheduler(cloud(), conf)
    assert list(scheduler.filters) == ["AggregateInstanceTypeFilter", "CapacityFilter"]
    with pytest.raises(PolicyNotSupported, match="ServerGroupAffinityFilter"):
        scheduler.select(scheduler.request("small", "together"))


def test_unknown_filter_is_rejected_with_list_of_installed(configured: Any) -> None:
    with pytest.raises(
        PluginError,
        match=r"no filter 'NoFilter'; installed: Aggregate.*CapacityFilter \(steelyard",
    ):
        FilterScheduler(cloud(), configured("enabled_filters = NoFilter"))


def test_constructor_rejects_invalid_option(configured: Any) -> None:
    with pytest.raises(cfg.ConfigFileValueError, match="ram_weight_multiplier"):
        FilterScheduler(cloud(), configured("ram_weight_multiplier = nan"))


def test_scheduler_uses_global_configuration_by_default() -> None:
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
def test_normalise_scales_weights(weights: Any, least: Any, most: Any, normalised: Any) -> None:
    assert normalise(weights, least, most) == normalised


def test_select_asks_again_after_a_plugin_has_failed(scheduler: Any, monkeypatch: Any) -> None:
    asked = scheduler.request("small")
    filter_ = scheduler.filters["CapacityFilter"]
    with monkeypatch.context() as broken:
        broken.setattr(filter_, "passing", lambda hosts, request: 1 / 0)
        with pytest.raises(PluginError):
            scheduler.select(asked)
    assert scheduler.select(asked).decisions[0].fitting == 3


def test_commit_of_an_unknown_host_changes_nothing(scheduler: Any) -> None:
    selection = scheduler.select(scheduler.request("small"), 2)
    first, second = selection.decisions
    lost = dataclasses.replace(second, server=dataclasses.replace(second.server, host="zzz"))
    before = scheduler.cloud
    with pytest.raises(NotFound, match="no host 'zzz'"):
        scheduler.commit(Selection(selection.version, (first, lost)))
    with pytest.raises(Conflict, match="already exists"):
        scheduler.commit(Selection(selection.version, (first, first)))
    assert scheduler.cloud is before


def test_multiplier_of_a_weigher_of_its_own_is_read_each_time(scheduler: Any) -> None:
    class Growing(Weigher):
        host_local = True
        multiplied = 1.0

        def _weigh_object(self, host: object, request: object) -> float:
            return float(read(host, "host") == "c")

        def weight_multiplier(self, host: object) -> float:
            return self.multiplied

    growing = Growing()
    scheduler.weighers.clear()
    scheduler.weighers["Growing"] = growing
    request = scheduler.request("small")
    hosts = [scheduler.select(request).servers[0].host]
    growing.multiplied = -1.0
    hosts.append(scheduler.select(request).servers[0].host)
    assert hosts[0] != hosts[1]


def test_full_host_in_another_aggregate_of_the_rack_counts(configured: Any) -> None:
    # The rack of a full host is known only from aggregates that also have candidates. So two hosts of
    # one rack have the same key only if they are in the same aggregates.
    hosts = {name: Host(name, 4, 8192, 100) for name in ("first", "second", "other", "full")}
    hosts["full"] = Host("full", 1, 1024, 10)
    aggregates = {
        "a": Aggregate("a", {"rack": "r1"}, ("second",)),
        "b": Aggregate("b", {"rack": "r1"}, ("first", "full")),
        "c": Aggregate("c", {"rack": "r2"}, ("other",)),
    }
    small = Flavor("small", 1, 1024, 10)
    group = ServerGroup("softly", Policy.SOFT_ANTI_AFFINITY)
    found = Cloud(hosts, aggregates, {"small": small}, {"softly": group})
    found = found.with_servers([Server("uuid-1", "member", small, "full", "softly")])
    made = FilterScheduler(found, configured("failure_domains = rack\nseed = 1"))
    assert hosts_of(made, "small", "softly") == ["other"]
