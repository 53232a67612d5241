"""Checks for malformed and ambiguous values, and for flags."""

import pytest

from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.findings import Severity
from support.analysis.small_clouds import FORCED, PLAIN, Expected, check_reported, found

FLAVOR = "flavor 'f', extra spec"


@pytest.mark.parametrize(
    "expected",
    [
        Expected(
            {"a": {"ssd": "nvme"}},
            {"f": {"ssd": ">= many"}},
            "malformed-value",
            f"{FLAVOR} 'ssd'",
            Severity.ERROR,
            "'many' is not a finite number",
            "until then the flavor fits no host",
        ),
        Expected(
            {"a": {"hw:cpu_policy": "dedicated"}},
            {"f": {"hw:cpu_policy": "<or>"}},
            "malformed-value",
            f"{FLAVOR} 'hw:cpu_policy'",
            Severity.ERROR,
            "'<or>' is not followed by a value",
            "the flavor fits no host",
        ),
        Expected(
            {"a": {"ssd": "nvme", **FORCED, "gpu": "<or>"}},
            PLAIN,
            "malformed-value",
            "aggregate 'a', key 'gpu'",
            Severity.ERROR,
            "'<or>' is not followed by a value",
            "until then no flavor fits its hosts",
        ),
        Expected(
            {"a": {"ssd": "nvme", **FORCED, "availability_zone": "= x"}},
            PLAIN,
            "malformed-value",
            "aggregate 'a', key 'availability_zone'",
            Severity.ERROR,
            "'x' is not a finite number",
            "until then no flavor with the key fits its hosts",
        ),
        Expected(
            {"a": {"ssd": "<or>"}},
            {"f": {"ssd": "<or>= 4"}},
            "doubtful-value",
            f"{FLAVOR} 'ssd'",
            Severity.WARNING,
            "is taken literally",
            "unambiguous form",
        ),
        Expected(
            {"a": {"ssd": "nvme", "force_metadata_check": "yes please"}},
            PLAIN,
            "unrecognised-flag",
            "aggregate 'a', key 'force_metadata_check'",
            Severity.WARNING,
            "'yes please' is neither true nor false",
            "write 'true' or 'false'",
        ),
        Expected(
            {"a": {"ssd": "nvme, <or> sata <or> ~"}},
            PLAIN,
            "expression-not-forced",
            "aggregate 'a', key 'ssd'",
            Severity.WARNING,
            "'<or> sata <or> ~' is taken literally",
            "set force_metadata_check to 'true'",
        ),
        Expected(
            {"a": {"aggregate_instance_extra_specs:ssd": "nvme"}},
            PLAIN,
            "scope-not-forced",
            "aggregate 'a', key 'aggregate_instance_extra_specs:ssd'",
            Severity.WARNING,
            "is part of its key",
            "rename the key to 'ssd'",
        ),
        Expected(
            {},
            {"f": {"force_metadata_check": "true"}},
            "misplaced-flag",
            f"{FLAVOR} 'force_metadata_check'",
            Severity.WARNING,
            "the key belongs to aggregates",
            "remove it from the flavor",
        ),
    ],
)
def test_check_reports_invalid_or_ambiguous_value(expected: Expected) -> None:
    check_reported(expected)


def test_check_reports_an_aggregate_without_hosts() -> None:
    hosts = {"h": Host("h", 8, 8192, 80)}
    aggregates = {
        name: Aggregate(name, {}, members) for name, members in (("a", ("h",)), ("b", ()))
    }
    findings = found(Cloud(hosts, aggregates, {"f": Flavor("f", 1, 1024, 10)}))
    assert list(findings) == [("empty-aggregate", "aggregate 'b'")]
    assert findings["empty-aggregate", "aggregate 'b'"].severity is Severity.NOTE
