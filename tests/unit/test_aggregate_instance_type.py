import concurrent.futures
import dataclasses
import itertools
import logging
from typing import Any

import pytest
from clouds import Aggregate, Flavor, Host, Request, host, request
from oslo_config import cfg

from steelyard.aggregates import Judge
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter


@pytest.fixture
def plugin(conf: Any) -> Any:
    return AggregateInstanceTypeFilter(conf)


def test_it_runs_once_per_request_and_not_on_rebuild(plugin: Any) -> None:
    assert plugin.run_filter_once_per_request
    assert not plugin.RUN_ON_REBUILD
    assert plugin.in_nova


def test_it_yields_lazily_and_in_order(plugin: Any) -> None:
    good, bad = host({"ssd": "nvme"}), host({"ssd": "sata"})
    endless = itertools.cycle([good, bad])
    found = plugin.filter_all(endless, request(ssd="nvme"))
    assert list(itertools.islice(found, 3)) == [good] * 3


def test_a_list_of_hosts_is_judged_alike(plugin: Any) -> None:
    hosts = [host({"ssd": value}) for value in ("nvme", "sata", "nvme, sata", "~")]
    found = plugin.filter_all(hosts, request(ssd="nvme"))
    assert iter(found) is found
    assert list(found) == [hosts[0], hosts[2]]


@pytest.mark.parametrize(
    "empty", [object(), Host([]), Host(None), Host([Aggregate(None)]), Host([object()])]
)
def test_what_a_host_does_not_have_counts_as_none(plugin: Any, empty: Any) -> None:
    for hosts in ([empty], [empty, host({"ssd": "nvme"})]):
        assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == hosts[1:]
        assert list(plugin.filter_all(hosts, request(ssd="~"))) == [empty]
    assert not plugin.host_passes(empty, request(ssd="nvme"))
    assert "no aggregate of the host has the key" in plugin.examine(empty, request(ssd="x")).reason


@pytest.mark.parametrize(
    "asked", [object(), Request(None), Request(Flavor(None)), Request(Flavor({}))]
)
def test_a_request_without_extra_specs_passes_where_nothing_is_forced(
    plugin: Any, asked: Any
) -> None:
    open_host, forced = host({"a": "1"}), host({"a": "1", "force_metadata_check": "true"})
    assert list(plugin.filter_all([open_host, forced], asked)) == [open_host]


def test_metadata_that_changes_between_requests_takes_effect(plugin: Any) -> None:
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
    """Compares by value, and cannot be hashed."""

    name: str
    metadata: dict[str, str] = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True)
class ByName:
    """Compares by name alone."""

    name: str
    metadata: dict[str, str] = dataclasses.field(compare=False)


@pytest.mark.parametrize("kind", [ByValue, ByName])
def test_aggregates_that_are_equal_but_differ_are_told_apart(plugin: Any, kind: Any) -> None:
    hosts = [Host([kind("x", {"ssd": value})]) for value in ("nvme", "sata", "nvme")]
    for _ in range(2):
        assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == [hosts[0], hosts[2]]


def test_what_changes_while_it_is_judged_is_noticed_next_time(
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


def test_threads_that_change_metadata_leave_no_stale_verdict(plugin: Any) -> None:
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


def test_values_that_are_no_text_are_not_compared_as_numbers(plugin: Any) -> None:
    changing = host({"n": 1}, {"forced": 1, "force_metadata_check": True})
    asked = request(n="1", forced="1")
    assert list(plugin.filter_all([changing], asked)) == [changing]
    changing.aggregates[0].metadata["n"] = True
    assert list(plugin.filter_all([changing], asked)) == []
    changing.aggregates[0].metadata["n"] = ["1"]
    assert list(plugin.filter_all([changing], request(n="['1']", forced="1"))) == [changing]


def test_aggregates_that_can_be_read_once_only(plugin: Any) -> None:
    class Spring:
        def __init__(self, *metadata: Any) -> None:
            self._aggregates = [Aggregate(said) for said in metadata]

        @property
        def aggregates(self) -> Any:
            return iter(self._aggregates)

    hosts = [Spring({"ssd": "nvme"}), Spring({"ssd": "sata"})] * 2
    for _ in range(2):
        assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == hosts[::2]


def test_options_decide_what_forced_aggregates_demand(configured: Any) -> None:
    forced = host({"rack": "1", "availability_zone": "z", "force_metadata_check": "true"})
    assert "'rack'" in AggregateInstanceTypeFilter(configured()).examine(forced, request()).reason
    ours = AggregateInstanceTypeFilter(configured("force_check_ignored_keys = rack, avail*"))
    assert ours.examine(forced, request())
    domains = AggregateInstanceTypeFilter(configured("failure_domains = rack, room[1]"))
    assert domains.examine(forced, request())
    room = host({"room1": "1", "force_metadata_check": "true"})
    assert not domains.examine(room, request())  # the name of a key is no pattern
    every_key = configured("force_check_ignored_keys =", "failure_domains = rack")
    assert not AggregateInstanceTypeFilter(every_key).examine(
        host({"rack": "1", "force_metadata_check": "true"}), request()
    )
    literal = AggregateInstanceTypeFilter(configured("force_check_ignored_keys ="))
    assert not literal.examine(forced, request(rack="1"))
    assert literal.examine(forced, request(rack="1", availability_zone="z"))


def test_malformed_text_is_logged_once(plugin: Any, caplog: Any) -> None:
    hosts = [host({"ssd": "nvme"}), host({"a": "<or>", "force_metadata_check": "true"})]
    asked = request(ssd=">= many")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert list(plugin.filter_all(hosts, asked)) == []
            plugin.examine(hosts[1], request(other=">= many", ssd="x"))
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(set(messages)) == 3
    assert "'>= many': 'many' is not a finite number" in messages[0]


def test_many_flavors_do_not_disturb_each_other(plugin: Any) -> None:
    hosts = [host({"n": str(number)}) for number in range(40)]
    for _ in range(2):
        for number in range(40):
            assert list(plugin.filter_all(hosts, request(n=str(number)))) == [hosts[number]]


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


@pytest.mark.parametrize("lines", [[], ["log_no_host = false"]])
def test_why_no_host_is_left_is_summed_up(configured: Any, caplog: Any, lines: Any) -> None:
    plugin = AggregateInstanceTypeFilter(configured(*lines))
    hosts = [host({"ssd": "sata"}), host({"ssd": "sata"}), host({})]
    with caplog.at_level(logging.INFO):
        assert list(plugin.filter_all(hosts, request(ssd="nvme"))) == []
        assert list(plugin.filter_all(hosts, request(ssd="sata"))) == hosts[:2]
    assert (
        messages(caplog, logging.INFO)
        == [
            "AggregateInstanceTypeFilter rejects 3 of 3 hosts for server None: "
            "2 by key 'ssd': flavor wants 'nvme', aggregate 'aggregate 1' offers 'sata'; "
            "1 by key 'ssd': flavor wants 'nvme', no aggregate of the host has the key"
        ][: 0 if lines else 1]
    )


def test_the_reason_for_each_host_is_said_at_debug_level(plugin: Any, caplog: Any) -> None:
    hosts = [host({"ssd": "sata"}), host({"ssd": "nvme"})]
    with caplog.at_level(logging.DEBUG):
        list(plugin.filter_all(hosts, request(ssd="nvme")))
    assert messages(caplog, logging.DEBUG) == [
        "AggregateInstanceTypeFilter rejects host 'host': key 'ssd': flavor wants 'nvme', "
        "aggregate 'aggregate 1' offers 'sata'"
    ]


@pytest.mark.parametrize("option", ["enforce", "log_no_host"])
def test_a_bad_option_stops_the_start(configured: Any, option: str) -> None:
    with pytest.raises(cfg.ConfigFileValueError, match=option):
        AggregateInstanceTypeFilter(configured(f"{option} = perhaps"))


def test_it_can_be_tried_without_risk(tmp_path: Any, caplog: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nenforce = false\n")
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
    plugin = AggregateInstanceTypeFilter(conf)
    hosts, asked = [host({"ssd": "sata"}), host({"ssd": "nvme"})], request(ssd="nvme")
    with caplog.at_level(logging.INFO):
        assert list(plugin.filter_all(hosts, asked)) == hosts
        assert list(plugin.filter_all(iter(hosts), asked)) == hosts
        assert list(plugin.filter_all(hosts[1:], asked)) == hosts[1:]
    assert messages(caplog, logging.INFO) == [
        "AggregateInstanceTypeFilter would reject 1 of 2 hosts for server None: "
        "1 by key 'ssd': flavor wants 'nvme', aggregate 'aggregate 1' offers 'sata'"
    ]
    path.write_text("[steelyard]\nenforce = true\n")
    conf.mutate_config_files()
    assert list(plugin.filter_all(hosts, asked)) == hosts[1:]
