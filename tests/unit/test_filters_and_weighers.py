import dataclasses
import logging
import types
from typing import Any

import pytest
from clouds import Aggregate
from oslo_config import cfg

from steelyard.filters.affinity import ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.filters.base import Filter
from steelyard.filters.capacity import CapacityFilter
from steelyard.filters.in_service import InServiceFilter
from steelyard.filters.traits import TraitsFilter
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import Flavor, HostState, Request
from steelyard.verdict import PASSED, Verdict
from steelyard.weighers.base import Weigher
from steelyard.weighers.ram import RAMWeigher

FLAVOR = Flavor("f", vcpus=2, memory_mb=1024, root_gb=10)


def state(**fields: Any) -> HostState:
    defaults: dict[str, Any] = {
        "host": "h",
        "aggregates": [],
        "instances": {},
        "traits": frozenset(),
        "vcpus_total": 4,
        "ram_mb_total": 4096,
        "disk_gb_total": 100,
    }
    return HostState(**(defaults | fields))


@dataclasses.dataclass
class Weighed:
    obj: object


class OnlyExamine(Filter):
    def examine(self, host: Any, request: Any) -> Any:
        return PASSED if host == request else Verdict.rejected("another")


def test_everything_follows_from_examine() -> None:
    plugin = OnlyExamine()
    assert plugin.host_passes(1, 1)
    assert list(plugin.filter_all(iter([1, 2, 1]), 1)) == [1, 1]
    assert not plugin.run_filter_once_per_request
    assert not plugin.RUN_ON_REBUILD


def test_what_has_one_verdict_has_one_reason() -> None:
    plugin = OnlyExamine()
    assert list(plugin.rejections(1, 1)) == []
    assert [verdict.reason for verdict in plugin.rejections(1, 2)] == ["another"]


def test_every_reason_of_every_filter() -> None:
    conf = cfg.ConfigOpts()
    host = state(vcpus_total=0, ram_mb_total=0, aggregates=[Aggregate({"ssd": "no", "gpu": "a"})])
    demands = {"ssd": "yes", "gpu": "b", "trait:CUSTOM_A": "required", "trait:CUSTOM_B": "required"}
    request = Request(Flavor("f", 1, 1, 1, demands))
    for filter_, subjects in (
        (CapacityFilter(conf), ["vCPUs", "MiB of RAM"]),
        (TraitsFilter(conf), ["CUSTOM_A", "CUSTOM_B"]),
        (AggregateInstanceTypeFilter(conf), ["'gpu'", "'ssd'"]),
    ):
        found = [verdict.reason for verdict in filter_.rejections(host, request)]
        assert len(found) == len(subjects)
        for reason, subject in zip(found, subjects, strict=True):
            assert subject in reason
        assert filter_.examine(host, request).reason == found[0]


def test_only_hosts_in_service_are_kept() -> None:
    filter_ = InServiceFilter()
    assert filter_.examine(state(), Request(FLAVOR))
    verdict = filter_.examine(state(out_of_service="disabled"), Request(FLAVOR))
    assert verdict.reason == "the host is out of service: disabled"


class Length(Weigher):
    minval = 2.0
    maxval = 4.0

    def _weigh_object(self, host: Any, request: Any) -> Any:
        return float(len(host))


def test_weights_are_clamped() -> None:
    assert Length().weigh_objects([Weighed("a"), Weighed("abc"), Weighed("abcde")], None) == [
        2,
        3,
        4,
    ]
    assert Length().weight_multiplier("a") == 1.0


@pytest.mark.parametrize(
    ("fields", "lines", "reason"),
    [
        ({"vcpus_used": 14}, [], ""),
        ({"vcpus_used": 15}, [], "vCPUs: flavor wants 2, the host has 1 of 16 left"),
        ({"vcpus_used": 3}, ["cpu_allocation_ratio = 1.0"], "the host has 1 of 4 left"),
        ({"vcpus_used": 3, "cpu_allocation_ratio": 1.0}, [], "the host has 1 of 4 left"),
        ({"cpu_allocation_ratio": 0.0}, [], "the host has 0 of 0 left"),
        ({"vcpus_used": 6, "vcpus_reserved": 2}, [], ""),
        ({"vcpus_used": 7, "vcpus_reserved": 2}, [], "the host has 1 of 8 left"),
        ({"vcpus_reserved": 5}, [], "the host has 0 of 0 left"),
        (
            {"ram_mb_used": 3073},
            [],
            "MiB of RAM: flavor wants 1024, the host has 1023 of 4096 left",
        ),
        ({"ram_mb_used": 3073}, ["ram_allocation_ratio = 1.5"], ""),
        ({"disk_gb_used": 91}, [], "GiB of disk: flavor wants 10, the host has 9 of 100 left"),
        ({"disk_gb_used": 200}, [], "the host has 0 of 100 left"),
        ({"disk_gb_used": 200}, ["disk_allocation_ratio = 3"], ""),
    ],
)
def test_capacity(configured: Any, fields: Any, lines: Any, reason: Any) -> None:
    plugin = CapacityFilter(configured(*lines))
    verdict = plugin.examine(state(**fields), Request(FLAVOR))
    assert reason in verdict.reason
    assert verdict.passed is (reason == "") is plugin.host_passes(state(**fields), Request(FLAVOR))
    if reason:
        assert verdict.cause.startswith("not enough ")
        assert "the host" not in verdict.cause


def test_capacity_of_hosts_that_say_nothing(conf: Any) -> None:
    assert not CapacityFilter(conf).host_passes(object(), Request(FLAVOR))
    assert CapacityFilter(conf).host_passes(object(), object())


@pytest.mark.parametrize(
    ("policy", "hosts", "reason"),
    [
        ("affinity", set(), ""),
        ("affinity", {"h"}, ""),
        ("affinity", {"x", "y"}, "server group 'g' is on 'x', 'y'"),
        ("anti-affinity", {"x"}, ""),
    ],
)
def test_affinity(policy: Any, hosts: Any, reason: Any) -> None:
    group = ServerGroup("g", Policy(policy), hosts=frozenset(hosts))
    assert ServerGroupAffinityFilter().examine(state(), Request(FLAVOR, group)).reason == reason
    assert ServerGroupAffinityFilter().examine(state(), Request(FLAVOR))


@pytest.mark.parametrize(
    ("policy", "members", "rules", "reason"),
    [
        ("anti-affinity", {"other"}, {}, ""),
        ("anti-affinity", {"a"}, {}, "server group 'g' has 1 of at most 1 servers here"),
        ("anti-affinity", {"a", "me"}, {"max_server_per_host": 2}, ""),
        ("anti-affinity", {"a", "b"}, {"max_server_per_host": 2}, "has 2 of at most 2"),
        ("anti-affinity", {"me"}, {}, ""),
        ("affinity", {"a"}, {}, ""),
    ],
)
def test_anti_affinity(policy: Any, members: Any, rules: Any, reason: Any) -> None:
    group = ServerGroup("g", Policy(policy), rules, frozenset(members))
    here = state(instances=dict.fromkeys(["a", "b", "me", "stranger"]))
    verdict = ServerGroupAntiAffinityFilter().examine(here, Request(FLAVOR, group, "me"))
    assert reason in verdict.reason
    assert verdict.passed is (reason == "")


def test_ram_weigher(configured: Any) -> None:
    weigher = RAMWeigher(configured("ram_weight_multiplier = -2"))
    hosts = [Weighed(state(ram_mb_used=used)) for used in (0, 1000, 5000)]
    assert weigher.weigh_objects(hosts, None) == [4096, 3096, 0]
    assert weigher.weight_multiplier(state()) == -2


def test_multipliers_of_aggregates(conf: Any, caplog: Any) -> None:
    weigher = RAMWeigher(conf)

    def multiplier(*stated: str) -> float:
        aggregates = [Aggregate({"ram_weight_multiplier": text}, "rack") for text in stated]
        return weigher.weight_multiplier(
            state(aggregates=[*aggregates, Aggregate({}), Aggregate(None)])
        )

    with caplog.at_level(logging.WARNING):
        assert multiplier() == 1.0
        assert multiplier("2", "1.5", "3") == 1.5
        assert multiplier("many", "3") == 3.0
        assert multiplier("many") == 1.0
        assert multiplier("inf") == 1.0
        assert multiplier("3, 2", "4") == 4.0
    assert [record.getMessage() for record in caplog.records] == [
        f"Aggregate 'rack' has 'ram_weight_multiplier' = {text}, which is not a finite number and "
        "is ignored; write a number such as 2.0"
        for text in ("'many'", "'inf'", "'3, 2'")
    ]


def test_multipliers_change_at_run_time(tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nram_weight_multiplier = 2.0\n")
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
    weigher = RAMWeigher(conf)
    path.write_text("[steelyard]\nram_weight_multiplier = 3.0\n")
    conf.mutate_config_files()
    weigher.weigh_objects([], None)
    assert weigher.weight_multiplier(state()) == 3.0


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "many", "1e999"])
@pytest.mark.parametrize(
    ("plugin", "option"),
    [(RAMWeigher, "ram_weight_multiplier"), (CapacityFilter, "cpu_allocation_ratio")],
)
def test_a_bad_number_stops_the_start(
    configured: Any, plugin: Any, option: Any, value: Any
) -> None:
    with pytest.raises(cfg.ConfigFileValueError, match=option):
        plugin(configured(f"{option} = {value}"))


def test_hosts_out_of_service_are_one_cause(conf: Any) -> None:
    hosts = [types.SimpleNamespace(out_of_service=why) for why in ("disabled: new disk", "down")]
    found = [InServiceFilter(conf).examine(host, None) for host in hosts]
    assert {each.cause for each in found} == {"the host is out of service"}
    assert found[0].reason == "the host is out of service: disabled: new disk"
