"""Checks for keys that Nova reads itself, and values that its API rejects."""

import pytest

from steelyard.findings import Severity
from support.analysis.small_clouds import FORCED, PLAIN, Expected, check_reported

FLAVOR = "flavor 'f', extra spec"


@pytest.mark.parametrize(
    "expected",
    [
        Expected(
            {"a": {"os_type": "windows", **FORCED}},
            {"f": {}},
            "key-nova-reads",
            "aggregate 'a', key 'os_type'",
            Severity.WARNING,
            "the key is meant for AggregateImagePropertiesIsolation",
            "force_check_ignored_keys",
        ),
        Expected(
            {},
            {"f": {"group_policy": "none"}},
            "key-nova-reads",
            f"{FLAVOR} 'group_policy'",
            Severity.WARNING,
            "the key is meant for requests to Placement",
            "offer 'group_policy' in the aggregates",
        ),
        Expected(
            {"a": {"ssd": "nvme", "os_type": "linux", **FORCED}},
            PLAIN,
            "key-nova-reads",
            "aggregate 'a', key 'os_type'",
            Severity.WARNING,
            "the key is meant for AggregateImagePropertiesIsolation",
            "force_check_ignored_keys",
        ),
        Expected(
            {"a": {"host": "x"}},
            {"f": {"host": "*"}},
            "key-nova-reads",
            f"{FLAVOR} 'host'",
            Severity.WARNING,
            "ComputeCapabilitiesFilter",
            "write 'aggregate_instance_extra_specs:host'",
        ),
        Expected(
            {},
            {"f": {"hw:cpu_policy": "<or> dedicated <or> ~"}},
            "refused-by-nova",
            f"{FLAVOR} 'hw:cpu_policy'",
            Severity.ERROR,
            "Nova's API rejects '<or> dedicated <or> ~'",
            "write a plain value",
        ),
    ],
)
def test_check_reports_key_that_nova_uses(expected: Expected) -> None:
    check_reported(expected)
