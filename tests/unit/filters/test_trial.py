"""Trial mode, and the log of rejections."""

import logging
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg

from steelyard.attributes import read
from steelyard.cli.outputs.columns import Causes, Why
from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.conf import InvalidOption
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.filters.base import Filter, Rejections
from steelyard.filters.trial import TrialMode
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import Decision, FilterScheduler, NoValidHost
from steelyard.scheduler.decision import Cause, TrialRejection
from steelyard.verdict import Verdict
from support.scheduler.plain_objects import host, request

NAME = "AggregateInstanceTypeFilter"
HOSTS = [host({"ssd": "sata"}), host({"ssd": "sata"}), host({})]
WHY = (
    "2 by key 'ssd': flavor wants 'nvme', aggregate 'aggregate 1' offers 'sata'; "
    "1 by key 'ssd': flavor wants 'nvme', no aggregate of the host has the key"
)


class NoFilter(Filter):
    """A filter that rejects every host."""

    def judge(self, request: object) -> Rejections:
        def rejections(host: object) -> Iterator[Verdict]:
            yield Verdict.rejected(f"{read(host, 'host')} is a host", "it is a host")

        return rejections


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def passed(conf: cfg.ConfigOpts, hosts: list[Any], **extra_specs: str) -> list[Any]:
    filter_ = AggregateInstanceTypeFilter(conf)
    return list(TrialMode(conf).apply(NAME, filter_, hosts, request(**extra_specs)).passed())


@pytest.mark.parametrize("lines", [[], ["log_no_host = false"]])
def test_filter_that_leaves_no_host_logs_a_summary(
    configured: Any, caplog: Any, lines: Any
) -> None:
    with caplog.at_level(logging.INFO):
        assert passed(configured(*lines), HOSTS, ssd="nvme") == []
        assert passed(configured(*lines), HOSTS, ssd="sata") == HOSTS[:2]
    message = [f"{NAME} rejects 3 of 3 hosts for server None: {WHY}"]
    assert messages(caplog, logging.INFO) == ([] if lines else message)


def test_reason_for_each_host_is_logged_at_debug_level(configured: Any, caplog: Any) -> None:
    hosts = [host({"ssd": "sata"}), host({"ssd": "nvme"})]
    with caplog.at_level(logging.DEBUG):
        assert passed(configured(), hosts, ssd="nvme") == hosts[1:]
    assert messages(caplog, logging.DEBUG) == [
        f"{NAME} rejects host 'host': key 'ssd': flavor wants 'nvme', "
        "aggregate 'aggregate 1' offers 'sata'"
    ]
    assert messages(caplog, logging.INFO) == []


def test_filter_on_trial_logs_rejections_and_passes_all_hosts(configured: Any, caplog: Any) -> None:
    conf = configured(f"trial_filters = {NAME}", "log_no_host = false")
    with caplog.at_level(logging.DEBUG):
        assert passed(conf, HOSTS, ssd="nvme") == HOSTS
        assert passed(conf, HOSTS[:1], ssd="sata") == HOSTS[:1]
    assert messages(caplog, logging.INFO) == [
        f"{NAME} would reject 3 of 3 hosts for server None: {WHY}"
    ]
    assert messages(caplog, logging.DEBUG)[0].startswith(f"{NAME} would reject host 'host': key")


def test_trial_mode_applies_to_filters_of_every_kind(configured: Any, caplog: Any) -> None:
    mode = TrialMode(configured(f"trial_filters = {NAME}, TraitsFilter"))
    with caplog.at_level(logging.INFO):
        on_trial = mode.apply("TraitsFilter", NoFilter(), HOSTS, None)
        enforced = mode.apply("NoFilter", NoFilter(), HOSTS, None)
    assert (list(on_trial.passed()), list(on_trial.rejected())) == (HOSTS, HOSTS)
    assert (list(enforced.passed()), list(enforced.rejected())) == ([], HOSTS)
    assert messages(caplog, logging.INFO) == [
        "TraitsFilter would reject 3 of 3 hosts for server None: 3 by it is a host",
        "NoFilter rejects 3 of 3 hosts for server None: 3 by it is a host",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("log_no_host = perhaps", "[steelyard] log_no_host = 'perhaps': expected true or false"),
        (
            "trial_filters = TraitsFilter, AggregateInstanceTypFilter",
            "[steelyard] trial_filters = 'TraitsFilter, AggregateInstanceTypFilter': no filter "
            "'AggregateInstanceTypFilter'; did you mean 'AggregateInstanceTypeFilter'?",
        ),
        (
            "enforce = false",
            "[steelyard] enforce = 'false': this option was removed; delete the line, and list the "
            "filters that must not reject hosts in trial_filters",
        ),
    ],
)
def test_scheduler_with_an_invalid_option_raises_at_start(
    configured: Any, line: str, message: str
) -> None:
    with pytest.raises(InvalidOption) as caught:
        FilterScheduler(Cloud({}, {}, {}), configured(line))
    assert str(caught.value).endswith(f":2: {message}")


def test_trial_mode_with_a_removed_option_in_the_environment_raises(
    configured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_STEELYARD__ENFORCE", "false")
    with pytest.raises(InvalidOption, match=r"list the filters .* in trial_filters"):
        TrialMode(configured())


def test_trial_filters_are_reloaded_and_invalid_ones_ignored(
    tmp_path: pathlib.Path, caplog: Any
) -> None:
    path = tmp_path / "steelyard.conf"
    conf = cfg.ConfigOpts()

    def write(*lines: str) -> None:
        path.write_text("\n".join(["[steelyard]", *lines]))

    def answer() -> list[Any]:
        return list(mode.apply(NAME, filter_, HOSTS, request(ssd="nvme")).passed())

    write()
    conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
    mode, filter_ = TrialMode(conf), AggregateInstanceTypeFilter(conf)
    assert answer() == []
    write(f"trial_filters = {NAME}")
    conf.mutate_config_files()
    assert answer() == HOSTS
    write("trial_filters = AggregateInstanceTypFilter", "enforce = true")
    caplog.clear()
    conf.mutate_config_files()
    for _ in range(2):
        assert answer() == HOSTS
    (message,) = messages(caplog, logging.ERROR)
    assert message == (
        f"Invalid option ignored: {path}:2: [steelyard] trial_filters = "
        f"'AggregateInstanceTypFilter': no filter 'AggregateInstanceTypFilter'; did you mean "
        f"'{NAME}'?; keeping ['{NAME}']"
    )
    write("trial_filters =")
    conf.mutate_config_files()
    assert answer() == []


FLAVOR = Flavor("f", 1, 1, 1, {"ssd": "nvme"})


def cloud() -> Cloud:
    """Return a cloud with a group and two hosts, one of which fits the flavor."""
    hosts = {name: Host(name, vcpus=8, ram_mb=64, disk_gb=64) for name in ("sata", "nvme")}
    return Cloud(
        hosts,
        {name: Aggregate(name, {"ssd": name}, (name,)) for name in hosts},
        {"f": FLAVOR},
        {"g": ServerGroup("g", Policy.ANTI_AFFINITY)},
    )


def test_decision_lists_rejections_of_filters_on_trial(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured(f"trial_filters = {NAME}"))
    (decision,) = scheduler.select(scheduler.request("f")).decisions
    reason = "key 'ssd': flavor wants 'nvme', aggregate 'sata' offers 'sata'"
    assert {each.host: each.trial_rejections for each in decision.hosts} == {
        "nvme": (),
        "sata": (TrialRejection(NAME, reason),),
    }
    assert all(each.fits for each in decision.hosts)
    assert decision.considered == 2
    assert decision.causes == []
    assert decision.trial_causes == [Cause(1, NAME, reason, on_trial=True)]


def decided_for_group(conf: cfg.ConfigOpts) -> list[Decision]:
    scheduler = FilterScheduler(cloud(), conf)
    return list(scheduler.select(scheduler.request("f", "g"), 3).decisions)


def test_decision_lists_trial_rejections_of_its_own_server(configured: Any) -> None:
    conf = configured(f"trial_filters = {NAME}, ServerGroupAntiAffinityFilter")
    found = [
        {
            each.host: sorted(rejection.filter for rejection in each.trial_rejections)
            for each in decision.hosts
        }
        for decision in decided_for_group(conf)
    ]
    assert [
        sum("ServerGroupAntiAffinityFilter" in filters for filters in each.values())
        for each in found
    ] == [0, 1, 2]
    assert [each["sata"].count(NAME) for each in found] == [1, 1, 1]
    assert all(len(filters) == len(set(filters)) for each in found for filters in each.values())


def test_decision_keeps_trial_rejections_of_a_rejected_host(configured: Any) -> None:
    conf = configured(f"trial_filters = {NAME}", f"enabled_filters = {NAME}, CapacityFilter")
    scheduler = FilterScheduler(Cloud({"h": Host("h", 0, 0, 0)}, {}, {"f": FLAVOR}), conf)
    with pytest.raises(NoValidHost) as caught:
        scheduler.select(scheduler.request("f"))
    (explained,) = caught.value.decision.hosts
    assert explained.rejected_by == "CapacityFilter"
    assert [each.filter for each in explained.trial_rejections] == [NAME]
    assert NAME not in str(caught.value)


def test_columns_show_rejections_of_filters_on_trial(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured(f"trial_filters = {NAME}"))
    (decision,) = scheduler.select(scheduler.request("f")).decisions
    reason = "key 'ssd': flavor wants 'nvme', aggregate 'sata' offers 'sata'"
    (explained,) = [each for each in decision.hosts if each.host == "sata"]
    why = Why(explained)
    assert why.human_readable().endswith(f"\n{NAME}, on trial, would reject it: {reason}")
    assert why.machine_readable()["rejected_by"] is None
    assert why.machine_readable()["trial_rejections"] == [{"filter": NAME, "reason": reason}]
    causes = Causes(decision.trial_causes, {})
    assert causes.human_readable() == f"1 by {NAME}, on trial: {reason}"
    assert causes.machine_readable() == [
        {"count": 1, "filter": NAME, "cause": reason, "on_trial": True, "suggestions": []}
    ]
