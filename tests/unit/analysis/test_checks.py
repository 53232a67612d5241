"""All checks together: clouds without findings, and the order of findings."""

from typing import Any

import pytest
from oslo_config import cfg

from steelyard.analysis.checks import check
from steelyard.findings import Severity
from support.analysis.small_clouds import FORCED, PLAIN, TRAIT, cloud, found


@pytest.mark.parametrize(
    ("aggregates", "flavors"),
    [
        ({}, {"f": {}}),
        ({"a": {"ssd": "nvme", "force_metadata_check": "false"}}, PLAIN),
        ({"a": {"ssd": "<or> nvme <or> ~", **FORCED}}, {"f": {"ssd": "<or> nvme <or> ~"}}),
        ({"a": {"ssd": "nvme, sata", "availability_zone": "north", **FORCED}}, PLAIN),
        # Values that differ by a digit are no typos.
        ({"a": {"gen": "1, 2"}, "b": {"gen": "12"}}, {"f": {"gen": "1"}, "g": {"gen": "12"}}),
        # Aggregates are not compared with keys of a namespace that none of them has.
        ({}, {"f": {"hw:cpu_policy": "dedicated", f"trait:{TRAIT}": "required"}}),
        ({"a": {"ssd": ">= 4", **FORCED}}, {"f": {"ssd": "8"}}),
        # An offered value that no flavor wants is no typo.
        ({"a": {"rack": "rack-a"}, "b": {"rack": "rack-b"}}, {"f": {"rack": "rack-a"}}),
        (
            {"a": {"pool": "nvme-a"}, "b": {"pool": "NVMe-A"}},
            {"f": {"pool": "nvme-a"}, "g": {"pool": "*"}},
        ),
        ({"a": {"contact": "ops"}, "b": {"contact": "Ops"}}, {"f": {}}),
        # The values of forced aggregates combine, so different ones are no contradiction.
        (
            {"a": {"gpu": "a", **FORCED}, "b": {"gpu": "c", **FORCED}},
            {"f": {"gpu": "a"}, "g": {"gpu": "c"}},
        ),
        ({"a": {"gpu": "!", **FORCED}, "b": {"gpu": "~", **FORCED}}, {"f": {}}),
        # Two spellings in one aggregate are not two aggregates.
        ({"a": {"x": "!", "aggregate_instance_extra_specs:x": "~", **FORCED}}, {"f": {}}),
        # The checks do not decide whether these expressions can both be satisfied.
        ({"a": {"x": "s> a", **FORCED}, "b": {"x": "<in> b", **FORCED}}, {"f": {"x": "s== ab"}}),
    ],
)
def test_check_finds_nothing_in_valid_cloud(aggregates: Any, flavors: Any) -> None:
    assert found(cloud(aggregates, flavors)) == {}


def test_finding_details_repeat_values_of_message() -> None:
    subject = cloud({"a": {"ssd": "nvme"}}, {"f": {"sdd": "nvme"}, "g": {"ssd": "NVMe"}})
    findings = found(subject)
    near = findings["near-miss-key", "flavor 'f', extra spec 'sdd'"]
    assert near.details == {"found": "sdd", "suggestions": ["ssd"]}
    offered = findings["not-offered", "flavor 'g', extra spec 'ssd'"]
    assert offered.details == {"value": "NVMe", "offered": ["nvme"]}
    nearest = findings["fits-no-host", "flavor 'f'"]
    assert nearest.details["nearest_host"] == "host"
    assert all(reason in nearest.message for reason in nearest.details["reasons"])


def test_check_sorts_findings_by_severity() -> None:
    subject = cloud({"a": {"ssd": "~"}, "b": {"force_metadata_check": "?"}}, {"f": {"ssd": "<or>"}})
    severities = [finding.severity for finding in check(subject, cfg.ConfigOpts())]
    assert severities == sorted(severities, key=list(Severity).index)
    assert len(set(severities)) > 1
