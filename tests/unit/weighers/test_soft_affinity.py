import concurrent.futures
import dataclasses
import logging
from typing import Any

import pytest
from oslo_config import cfg

from steelyard.weighers.soft_affinity import (
    ServerGroupSoftAffinityWeigher,
    ServerGroupSoftAntiAffinityWeigher,
)
from support.scheduler.plain_objects import Aggregate

KEY = "soft_affinity_weight_multiplier"
WEIGHERS = {
    "soft-affinity": ServerGroupSoftAffinityWeigher,
    "soft-anti-affinity": ServerGroupSoftAntiAffinityWeigher,
}


@dataclasses.dataclass(eq=False)
class Host:
    host: str
    instances: Any = None
    aggregates: Any = ()


@dataclasses.dataclass
class Group:
    policy: str
    members: Any = ()
    hosts: Any = ()


@dataclasses.dataclass
class Request:
    instance_group: Any
    instance_uuid: str = "me"
    ignore_hosts: Any = None


@dataclasses.dataclass
class Weighed:
    obj: Any


def host(name: str, *uuids: str, **places: str) -> Host:
    return Host(name, dict.fromkeys(uuids), [Aggregate(places, f"of {name}")])


def weigh(weigher: Any, hosts: list[Any], request: Any) -> dict[str, float]:
    weights = weigher.weigh_objects([Weighed(each) for each in hosts], request)
    return {each.host: weight for each, weight in zip(hosts, weights, strict=True)}


HOSTS = [host("empty"), host("one", "m1", "stranger"), host("two", "m2", "m3"), host("own", "me")]
MEMBERS = ["m1", "m2", "m3", "me", "deleted"]


def test_soft_affinity_weight_is_the_number_of_members(conf: Any) -> None:
    found = weigh(
        ServerGroupSoftAffinityWeigher(conf), HOSTS, Request(Group("soft-affinity", MEMBERS))
    )
    assert found == {"empty": 0, "one": 1, "two": 2, "own": 0}


def test_soft_anti_affinity_weight_is_minus_the_number_of_members(conf: Any) -> None:
    weigher = ServerGroupSoftAntiAffinityWeigher(conf)
    found = weigh(weigher, HOSTS, Request(Group("soft-anti-affinity", MEMBERS)))
    assert found == {"empty": 0, "one": -1, "two": -2, "own": 0}


@pytest.mark.parametrize("policy", WEIGHERS)
@pytest.mark.parametrize("other", ["affinity", "anti-affinity", "", None])
def test_requests_of_other_policies_get_equal_weights(conf: Any, policy: Any, other: Any) -> None:
    weigher = WEIGHERS[policy](conf)
    nothing = dict.fromkeys(["empty", "one", "two", "own"], 0.0)
    assert weigh(weigher, HOSTS, Request(Group(other, MEMBERS))) == nothing
    assert weigh(weigher, HOSTS, Request(None)) == nothing
    assert weigh(weigher, HOSTS, None) == nothing
    assert weigher._weigh_object(HOSTS[1], Request(Group(other, MEMBERS))) == 0.0


def test_weigh_object_weighs_a_single_host(conf: Any) -> None:
    request = Request(Group("soft-anti-affinity", MEMBERS))
    assert ServerGroupSoftAntiAffinityWeigher(conf)._weigh_object(HOSTS[2], request) == -2


@pytest.mark.parametrize("instances", [None, {}])
@pytest.mark.parametrize("members", [None, []])
def test_missing_instances_and_members_count_as_none(
    conf: Any, instances: Any, members: Any
) -> None:
    request = Request(Group("soft-affinity", members))
    hosts = [Host("a", instances), Host("b", {"m1": None})]
    assert weigh(ServerGroupSoftAffinityWeigher(conf), hosts, request) == {"a": 0, "b": 0}


def test_weight_multiplier_reads_option_and_aggregates(configured: Any) -> None:
    conf = configured("soft_affinity_weight_multiplier = 7")
    weigher = ServerGroupSoftAffinityWeigher(conf)
    plain = host("a", rack="r1")
    stating = host("b", soft_affinity_weight_multiplier="2")
    other = host("c", soft_anti_affinity_weight_multiplier="5")
    assert [weigher.weight_multiplier(each) for each in (plain, stating, other)] == [7, 2, 7]
    assert ServerGroupSoftAntiAffinityWeigher(conf).weight_multiplier(other) == 5
    assert ServerGroupSoftAntiAffinityWeigher(conf).weight_multiplier(plain) == 1000
    weigh(weigher, [plain, stating], Request(Group("soft-affinity")))
    assert [weigher.weight_multiplier(each) for each in (plain, stating, other)] == [7, 2, 7]
    weigh(weigher, [plain, stating], Request(None))
    assert [weigher.weight_multiplier(each) for each in (plain, stating, other)] == [7, 2, 7]


def test_weight_multiplier_changes_between_requests(tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nsoft_affinity_weight_multiplier = 2.0\n")
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
    weigher = ServerGroupSoftAffinityWeigher(conf)
    weigh(weigher, HOSTS, Request(None))
    assert weigher.weight_multiplier(HOSTS[1]) == 2.0
    path.write_text("[steelyard]\nsoft_affinity_weight_multiplier = 3.0\n")
    conf.mutate_config_files()
    assert weigher.weight_multiplier(HOSTS[0]) == 2.0
    weigh(weigher, HOSTS, Request(None))
    assert weigher.weight_multiplier(HOSTS[0]) == 3.0


@pytest.mark.parametrize("policy", WEIGHERS)
@pytest.mark.parametrize("value", ["nan", "inf", "", "many"])
def test_weigher_with_an_invalid_multiplier_raises_at_start(
    configured: Any, policy: Any, value: Any
) -> None:
    option = f"{policy.replace('-', '_')}_weight_multiplier"
    with pytest.raises(cfg.ConfigFileValueError, match=option):
        WEIGHERS[policy](configured(f"{option} = {value}"))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("rack, , room", "empty key"),
        ("host, rack", "'host' is always the nearest domain; leave it out"),
        ("rack, rack", "duplicate key 'rack'"),
    ],
)
def test_weigher_with_invalid_failure_domains_raises_at_start(
    configured: Any, keys: Any, message: Any
) -> None:
    with pytest.raises(cfg.ConfigFileValueError, match=message):
        ServerGroupSoftAffinityWeigher(configured(f"failure_domains = {keys}"))


# Room 1 has racks 1 and 2; room 2 has another rack called 1.
RACKS = [
    host("full", "m1", "m2", rack="1", room="1"),
    host("beside", rack="1", room="1"),
    host("near", "m3", rack="2", room="1"),
    host("far", rack="1", room="2"),
]


def test_soft_anti_affinity_spreads_over_the_farthest_domains_first(configured: Any) -> None:
    weigher = ServerGroupSoftAntiAffinityWeigher(configured("failure_domains = rack, room"))
    found = weigh(weigher, RACKS, Request(Group("soft-anti-affinity", MEMBERS)))
    assert found == {"far": 0, "near": -1, "beside": -2, "full": -3}


def test_soft_affinity_prefers_the_fullest_domains(configured: Any) -> None:
    weigher = ServerGroupSoftAffinityWeigher(configured("failure_domains = rack, room"))
    found = weigh(weigher, RACKS, Request(Group("soft-affinity", MEMBERS)))
    assert found == {"far": 0, "near": 1, "beside": 2, "full": 3}


def test_hosts_without_a_domain_form_one_domain(configured: Any) -> None:
    weigher = ServerGroupSoftAntiAffinityWeigher(configured("failure_domains = rack"))
    hosts = [host("a", "m1"), host("b"), host("c", rack="1"), Host("d", {}, None)]
    found = weigh(weigher, hosts, Request(Group("soft-anti-affinity", MEMBERS)))
    assert found == {"c": 0, "b": -1, "d": -1, "a": -2}


def racks(**hosts: tuple[str, ...]) -> dict[str, Any]:
    """Return an aggregate for each rack, with the names of its hosts."""
    made = {}
    for name, members in hosts.items():
        made[name] = Aggregate({"rack": name}, name)
        made[name].hosts = list(members)  # type: ignore[attr-defined]  # a field of Nova's
    return made


def test_hosts_that_are_not_candidates_count_in_their_domains(configured: Any) -> None:
    weigher = ServerGroupSoftAntiAffinityWeigher(configured("failure_domains = rack"))
    made = racks(r1=("a", "full"), r2=("b",))
    hosts = [Host("a", {}, [made["r1"]]), Host("b", {}, [made["r2"]])]
    # Nova may list a host twice within a request; no aggregate names the other host.
    group = Group("soft-anti-affinity", ["m1", "m2", "m3"], ["full", "full", "elsewhere"])
    assert weigh(weigher, hosts, Request(group)) == {"a": -1, "b": 0}
    group.hosts = None
    assert weigh(weigher, hosts, Request(group)) == {"a": 0, "b": 0}


def test_source_host_of_a_move_is_not_counted(configured: Any) -> None:
    weigher = ServerGroupSoftAntiAffinityWeigher(configured("failure_domains = rack"))
    made = racks(r1=("a", "left"), r2=("b",))
    hosts = [Host("a", {}, [made["r1"]]), Host("b", {}, [made["r2"]])]
    group = Group("soft-anti-affinity", ["me"], ["left"])
    moved = Request(group, ignore_hosts=["left"])
    assert weigh(weigher, hosts, moved) == {"a": 0, "b": 0}
    # A resize ignores no hosts.
    assert weigh(weigher, hosts, Request(group)) == {"a": 0, "b": 0}
    # Another member that is on no candidate must be on that host, so the host counts.
    group.members = ["m1", "me"]
    assert weigh(weigher, hosts, moved) == {"a": -1, "b": 0}


def test_ignored_hosts_except_the_source_are_counted(configured: Any) -> None:
    # A retried live migration also ignores the hosts on which it failed.
    weigher = ServerGroupSoftAntiAffinityWeigher(configured("failure_domains = rack"))
    made = racks(r1=("a", "left"), r2=("b", "failed"))
    hosts = [Host("a", {}, [made["r1"]]), Host("b", {}, [made["r2"]])]
    group = Group("soft-anti-affinity", ["m1", "me"], ["left", "failed"])
    moved = Request(group, ignore_hosts=["left", "failed"])
    assert weigh(weigher, hosts, moved) == {"a": 0, "b": -1}


@pytest.mark.parametrize("name", [None, "", "  "])
def test_empty_domain_name_counts_as_missing(configured: Any, name: Any) -> None:
    weigher = ServerGroupSoftAntiAffinityWeigher(configured("failure_domains = rack"))
    hosts = [host("a", "m1"), host("b", rack=name), host("c", rack="1")]
    found = weigh(weigher, hosts, Request(Group("soft-anti-affinity", MEMBERS)))
    assert found == {"c": 0, "b": -1, "a": -2}


@pytest.mark.parametrize(
    "metadata", [None, [], ["k"], "k", 5, {"rack": ["r"], KEY: ["1"]}, {KEY: {}}]
)
def test_malformed_metadata_raises_no_error(configured: Any, metadata: Any) -> None:
    weigher = ServerGroupSoftAffinityWeigher(configured("failure_domains = rack"))
    hosts = [Host("a", {"m1": None}, [Aggregate(metadata)]), host("b")]
    found = weigh(weigher, hosts, Request(Group("soft-affinity", MEMBERS)))
    assert found["a"] > found["b"]
    assert weigher.weight_multiplier(hosts[0]) == 1000


def test_invalid_multiplier_at_run_time_keeps_the_last_valid_one(
    tmp_path: Any, caplog: Any
) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text(f"[steelyard]\n{KEY} = 2.0\n")
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
    weigher = ServerGroupSoftAffinityWeigher(conf)
    path.write_text(f"[steelyard]\n{KEY} = many\n")
    conf.mutate_config_files()
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            weigh(weigher, HOSTS, Request(None))
            assert weigher.weight_multiplier(HOSTS[0]) == 2.0
    (record,) = [each for each in caplog.records if each.name == "steelyard.conf.values"]
    assert KEY in record.getMessage()
    assert "keeping 2.0" in record.getMessage()


def test_weight_multiplier_is_consistent_across_threads(conf: Any) -> None:
    weigher = ServerGroupSoftAffinityWeigher(conf)
    hosts = [host(str(n), **({KEY: "5"} if n % 2 else {})) for n in range(50)]
    expected = [5.0 if n % 2 else 1000.0 for n in range(50)]

    def ask(group: Any) -> bool:
        answers = []
        for _ in range(40):
            weigh(weigher, hosts, Request(group))
            answers.append([weigher.weight_multiplier(each) for each in hosts] == expected)
        return all(answers)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, [Group("soft-affinity", MEMBERS), None] * 4))


def test_host_in_two_domains_is_logged_once(configured: Any, caplog: Any) -> None:
    weigher = ServerGroupSoftAntiAffinityWeigher(configured("failure_domains = rack"))
    made = racks(r1=("a",), r2=("a", "b"))
    hosts = [Host("a", {"m1": None}, [made["r2"], made["r1"]]), Host("b", {}, [made["r2"]])]
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            found = weigh(weigher, hosts, Request(Group("soft-anti-affinity", MEMBERS)))
    assert found == {"a": -1, "b": 0}
    assert [record.getMessage() for record in caplog.records] == [
        "Aggregates 'r1', 'r2' share hosts, but differ in 'rack': 'r1', 'r2'; 'r1' applies to these "
        "hosts: put each host into one of the aggregates only"
    ]
