import concurrent.futures
import dataclasses
import itertools
import logging
from typing import Any

import pytest

from steelyard.aggregates import Judge
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from support.scheduler.plain_objects import Aggregate, Flavor, Host, Request, host, request


@pytest.fixture
def plugin(conf: Any) -> Any:
    return AggregateInstanceTypeFilter(conf)


def test_filter_runs_once_per_request_and_not_on_rebuild(plugin: Any) -> None:
    assert plugin.run_filter_once_per_request
    assert not plugin.RUN_ON_REBUILD
    assert plugin.in_nova


def test_filter_all_yields_lazily_and_in_order(plugin: Any) -> None:
    good, bad = host({"ssd": "nvme"}), host({"ssd": "sata"})
    endless = itertools.cycle([good, bad])
    found = plugin.filter_all(endless, request(ssd="nvme"))
    assert list(itertools.islice(found, 3)) == [good] * 3


def test_filter_all_of_a_list_returns_an_iterator(plugin: Any) -> None:
    hosts = [host({"ssd": value}) for value in ("nvme", "sata", "nvme, sata", "~")]
    found = plugin.filter_all(hosts, request(ssd="nvme"))
    assert iter(found) is found
    assert list(found) == [hosts[0], hosts[2]]


@pytest.mark.parametrize(
    "empty", [object(), Host([]), Host(None), Host([Aggregate(None)]), Host([object()])]
)
def test_host_without_aggregates_or_metadata_lacks_every_key(plugin: Any, empty: Any) -> None:
    for hosts in ([empty], [empty, host({"ssd": "nvme"})]):
        assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == hosts[1:]
        assert list(plugin.filter_all(hosts, request(ssd="~"))) == [empty]
    assert not plugin.host_passes(empty, request(ssd="nvme"))
    assert "no aggregate of the host has the key" in plugin.examine(empty, request(ssd="x")).reason


@pytest.mark.parametrize(
    "asked", [object(), Request(None), Request(Flavor(None)), Request(Flavor({}))]
)
def test_request_without_extra_specs_passes_unforced_hosts(plugin: Any, asked: Any) -> None:
    open_host, forced = host({"a": "1"}), host({"a": "1", "force_metadata_check": "true"})
    assert list(plugin.filter_all([open_host, forced], asked)) == [open_host]


def test_metadata_changed_between_requests_takes_effect(plugin: Any) -> None:
    changing = host({"ssd": "nvme"})
    hosts = [changing, host({"ssd": "nvme"})]
    asked = request(ssd="nvme")
    assert list(plugin.filter_all(hosts, asked)) == hosts
    changing.aggregates[0].metadata["ssd"] = "sata"  # in place
    assert list(plugin.filter_all(hosts, asked)) == hosts[1:]
    changing.aggregates[0].metadata = {"ssd": "nvme"}
    assert list(plugin.filter_all(hosts, asked)) == hosts
    changing.aggregates.append(Aggregate({"x": "*", "force_metadata_check": "true"}))
    assert list(plugin.filter_all(hosts, asked)) == hosts[1:]
    changing.aggregates[:] = [Aggregate({"ssd": "nvme"})]
    assert list(plugin.filter_all(hosts, asked)) == hosts
    assert list(plugin.filter_all(hosts[::-1], asked)) == hosts[::-1]
    changing.aggregates[0].metadata = None
    assert list(plugin.filter_all(hosts, asked)) == hosts[1:]
    assert list(plugin.filter_all(hosts, asked)) == hosts[1:]


@dataclasses.dataclass
class ByValue:
    """An aggregate that is compared by value and cannot be hashed."""

    name: str
    metadata: dict[str, str] = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True)
class ByName:
    """An aggregate that is compared by name only."""

    name: str
    metadata: dict[str, str] = dataclasses.field(compare=False)


@pytest.mark.parametrize("kind", [ByValue, ByName])
def test_equal_aggregates_with_different_metadata_are_judged_separately(
    plugin: Any, kind: Any
) -> None:
    hosts = [Host([kind("x", {"ssd": value})]) for value in ("nvme", "sata", "nvme")]
    for _ in range(2):
        assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == [hosts[0], hosts[2]]


def test_metadata_changed_during_a_request_takes_effect_on_the_next(
    plugin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [host({"ssd": "nvme"}), host({"ssd": "nvme"})]
    asked, judged = request(ssd="nvme"), Judge.bits

    def meddle(judge: Judge, metadata: Any, aggregate: Any = None) -> int:
        bits = judged(judge, metadata, aggregate)
        aggregate.metadata["ssd"] = "sata"
        return bits

    with monkeypatch.context() as patch:
        patch.setattr(Judge, "bits", meddle)
        assert list(plugin.filter_all(hosts, asked)) == hosts
    assert list(plugin.filter_all(hosts, asked)) == []


def test_metadata_changed_by_threads_leaves_no_stale_verdict(plugin: Any) -> None:
    hosts = [host({"ssd": "nvme"}) for _ in range(50)]
    asked = request(ssd="nvme")

    def filter_often() -> None:
        for _ in range(200):
            list(plugin.filter_all(hosts, asked))

    def change_often() -> None:
        for number in range(2000):
            aggregate = hosts[number % len(hosts)].aggregates[0]
            aggregate.metadata["ssd"] = "sata" if number % 3 else "nvme"

    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(filter_often) for _ in range(3)] + [pool.submit(change_often)]:
            done.result()
    expected = [each for each in hosts if each.aggregates[0].metadata["ssd"] == "nvme"]
    assert list(plugin.filter_all(hosts, asked)) == expected


def test_values_that_are_not_text_are_compared_as_text(plugin: Any) -> None:
    changing = host({"n": 1}, {"forced": 1, "force_metadata_check": True})
    asked = request(n="1", forced="1")
    assert list(plugin.filter_all([changing], asked)) == [changing]
    changing.aggregates[0].metadata["n"] = True
    assert list(plugin.filter_all([changing], asked)) == []
    changing.aggregates[0].metadata["n"] = ["1"]
    assert list(plugin.filter_all([changing], request(n="['1']", forced="1"))) == [changing]


def test_metadata_changed_after_another_flavor_takes_effect(plugin: Any) -> None:
    hosts = [host({"ssd": "nvme", "net": 10}), host({"ssd": "nvme", "net": 25})]
    assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == hosts
    hosts[0].aggregates[0].metadata["net"] = 25
    assert list(plugin.filter_all(hosts, request(net="25"))) == hosts
    assert list(plugin.filter_all(hosts, request(net="1"))) == []
    hosts[0].aggregates[0].metadata["net"] = 1
    assert list(plugin.filter_all(hosts, request(net="1"))) == hosts[:1]
    hosts[0].aggregates[0].metadata["net"] = True  # equals 1, but not as text
    assert list(plugin.filter_all(hosts, request(net="1"))) == []
    assert list(plugin.filter_all(hosts, request(net="True"))) == hosts[:1]


def test_metadata_is_read_once_for_several_flavors(plugin: Any) -> None:
    class Counted(Aggregate):
        tests = 0

        def obj_attr_is_set(self, name: str) -> bool:
            Counted.tests += 1
            return True

    hosts = [Host([Counted({"ssd": "nvme"})]), Host([Counted({"ssd": "sata"})])]
    assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == hosts[:1]
    tests = Counted.tests
    assert list(plugin.filter_all(hosts, request(ssd="sata"))) == hosts[1:]
    assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == hosts[:1]
    assert Counted.tests == tests == len(hosts)


def test_aggregates_in_an_iterator_are_read_once(plugin: Any) -> None:
    class Iterated:
        def __init__(self, *metadata: Any) -> None:
            self._aggregates = [Aggregate(said) for said in metadata]

        @property
        def aggregates(self) -> Any:
            return iter(self._aggregates)

    hosts = [Iterated({"ssd": "nvme"}), Iterated({"ssd": "sata"})] * 2
    for _ in range(2):
        assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == hosts[::2]


@pytest.mark.parametrize("replacement", [[], [Aggregate({"ssd": "sata"})]])
def test_changed_lists_of_shared_aggregates_take_effect(
    plugin: Any, replacement: list[Aggregate]
) -> None:
    nvme = Aggregate({"ssd": "nvme"})
    hosts = [Host([nvme]) for _ in range(4)]
    assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == hosts
    hosts[0].aggregates[:] = replacement
    assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == hosts[1:]
    for each in hosts:
        each.aggregates[:] = replacement
    assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == []


@pytest.mark.parametrize("without", [None, (), "not there"])
def test_host_without_a_list_of_aggregates_is_judged(plugin: Any, without: Any) -> None:
    nvme = Aggregate({"ssd": "nvme"})
    odd = object() if without == "not there" else Host(without)
    hosts = [*(Host([nvme]) for _ in range(70)), odd]
    for _ in range(2):
        assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == hosts[:-1]


def test_options_ignore_keys_of_forced_aggregates(configured: Any) -> None:
    forced = host({"rack": "1", "availability_zone": "z", "force_metadata_check": "true"})
    assert "'rack'" in AggregateInstanceTypeFilter(configured()).examine(forced, request()).reason
    ours = AggregateInstanceTypeFilter(configured("force_check_ignored_keys = rack, avail*"))
    assert ours.examine(forced, request())
    domains = AggregateInstanceTypeFilter(configured("failure_domains = rack, room[1]"))
    assert domains.examine(forced, request())
    room = host({"room1": "1", "force_metadata_check": "true"})
    assert not domains.examine(room, request())  # names of domains are not patterns
    every_key = configured("force_check_ignored_keys =", "failure_domains = rack")
    assert not AggregateInstanceTypeFilter(every_key).examine(
        host({"rack": "1", "force_metadata_check": "true"}), request()
    )
    literal = AggregateInstanceTypeFilter(configured("force_check_ignored_keys ="))
    assert not literal.examine(forced, request(rack="1"))
    assert literal.examine(forced, request(rack="1", availability_zone="z"))


def test_malformed_value_is_logged_once(plugin: Any, caplog: Any) -> None:
    hosts = [host({"ssd": "nvme"}), host({"a": "<or>", "force_metadata_check": "true"})]
    asked = request(ssd=">= many")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert list(plugin.filter_all(hosts, asked)) == []
            plugin.examine(hosts[1], request(other=">= many", ssd="x"))
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(set(messages)) == 3
    assert "'>= many': 'many' is not a finite number" in messages[0]


def test_verdicts_of_many_flavors_are_kept_apart(plugin: Any) -> None:
    hosts = [host({"n": str(number)}) for number in range(40)]
    for _ in range(2):
        for number in range(40):
            assert list(plugin.filter_all(hosts, request(n=str(number)))) == [hosts[number]]
