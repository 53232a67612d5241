"""The check for forced aggregates that contradict each other."""

from typing import Any

import pytest

from steelyard.analysis.checks import check
from steelyard.cloud import Aggregate, Cloud, Host
from steelyard.findings import Severity, Subject, SubjectKind
from support.analysis.small_clouds import FORCED, PLAIN, Expected, check_reported, cloud, found


@pytest.mark.parametrize(
    "expected",
    [
        Expected(
            {"a": {"ssd": "nvme", **FORCED}, "b": {"ssd": "!", **FORCED}},
            PLAIN,
            "contradictory-aggregates",
            "aggregate 'b', key 'ssd'",
            Severity.ERROR,
            "'b' forbids the key with '!', 'a' offers 'nvme', on hosts 'host': no flavor fits there",
            "put the hosts into one of them only",
        ),
        Expected(
            {"a": {"ssd": "nvme"}, "b": {"ssd": "<or> !", **FORCED}},
            {"f": {"ssd": "<or> nvme <or> ~"}},
            "contradictory-aggregates",
            "aggregate 'b', key 'ssd'",
            Severity.WARNING,
            "on hosts 'host': no flavor that wants a value fits there",
            "remove the key from one of them",
        ),
        Expected(
            {"a": {"ssd": "<or> nvme <or> ~", **FORCED}, "b": {"ssd": "!", **FORCED}},
            PLAIN,
            "contradictory-aggregates",
            "aggregate 'b', key 'ssd'",
            Severity.WARNING,
            "no flavor that wants a value fits there",
            "remove the key from one of them",
        ),
    ],
)
def test_check_reports_contradictory_aggregates(expected: Expected) -> None:
    check_reported(expected)


def test_contradictions_of_one_severity_share_one_finding() -> None:
    metadata = {"a": {"ssd": "!", **FORCED}, "b": {"ssd": "nvme", **FORCED}, "c": {"ssd": "sata"}}
    members = {"a": ("h1", "h2", "h3"), "b": ("h1", "h2"), "c": ("h3",)}
    subject = Cloud(
        {name: Host(name, 8, 8192, 80) for name in ("h1", "h2", "h3")},
        {name: Aggregate(name, said, members[name]) for name, said in metadata.items()},
    )
    findings = [each for each in check(subject) if each.check == "contradictory-aggregates"]
    assert [(each.severity, each.subject, each.details) for each in findings] == [
        (
            Severity.ERROR,
            Subject(SubjectKind.AGGREGATE, "a", "ssd"),
            {"offered_by": ["b"], "hosts": ["h1", "h2"]},
        ),
        (
            Severity.WARNING,
            Subject(SubjectKind.AGGREGATE, "a", "ssd"),
            {"offered_by": ["c"], "hosts": ["h3"]},
        ),
    ]


def test_check_skips_ignored_keys(configured: Any) -> None:
    subject = cloud({"a": {"max_io_ops_per_host": ">= 8", **FORCED}}, {"f": {}})
    assert not found(subject)
    assert found(subject, configured("force_check_ignored_keys ="))
    rack = cloud({"a": {"rack": "a1", **FORCED}}, {"f": {}})
    assert found(rack)
    assert not found(rack, configured("failure_domains = rack"))
