"""Checks for possible typos in keys, values and traits."""

import pytest

from steelyard.findings import Severity
from support.analysis.small_clouds import PLAIN, TRAIT, Expected, check_reported, cloud, found

FLAVOR = "flavor 'f', extra spec"


@pytest.mark.parametrize(
    "expected",
    [
        Expected(
            {"a": {"ssd": "nvme"}},
            {"f": {"sdd": "nvme"}},
            "near-miss-key",
            f"{FLAVOR} 'sdd'",
            Severity.WARNING,
            "no aggregate has the key 'sdd'; did you mean 'ssd'?",
            "write 'ssd'",
        ),
        Expected(
            {"a": {"ssd": "nvme"}, "b": {"SSD": "nvme"}},
            PLAIN,
            "near-miss-key",
            "aggregate 'b', key 'SSD'",
            Severity.WARNING,
            "no flavor has the key 'SSD'; did you mean 'ssd'?",
            "write 'ssd'",
        ),
        Expected(
            {"a": {"ssd": "true"}},
            {"f": {"ssd": "<or> True <or> ~"}},
            "near-miss-value",
            f"{FLAVOR} 'ssd'",
            Severity.WARNING,
            "no aggregate has the value 'True'; did you mean 'true'?",
            "write 'true'",
        ),
        Expected(
            {"a": {"ssd": "nvme"}},
            {"f": {"ssd": "<or> nvem <or> ~"}},
            "near-miss-value",
            f"{FLAVOR} 'ssd'",
            Severity.WARNING,
            "no aggregate has the value 'nvem'; did you mean 'nvme'?",
            "write 'nvme'",
        ),
        Expected(
            {"a": {"stroage": "fast"}},
            {"f": {"storage": "fast"}},
            "near-miss-key",
            f"{FLAVOR} 'storage'",
            Severity.WARNING,
            "no aggregate has the key 'storage'; did you mean 'stroage'?",
            "write 'stroage' if it is a typo, or 'storage' in aggregate 'a' if the typo is there",
        ),
        Expected(
            {"a": {"storage": "fsat"}, "b": {"storage": "fsat"}},
            {"f": {"storage": "fast"}},
            "near-miss-value",
            f"{FLAVOR} 'storage'",
            Severity.WARNING,
            "no aggregate has the value 'fast'; did you mean 'fsat'?",
            "or 'fast' in aggregate 'a' and 1 more if the typo is there",
        ),
        Expected(
            {"a": {"force_metadta_check": "true"}},
            {"f": {}},
            "near-miss-key",
            "aggregate 'a', key 'force_metadta_check'",
            Severity.WARNING,
            "the key 'force_metadta_check' does not force the aggregate",
            "write 'force_metadata_check'",
        ),
        Expected(
            {"a": {"rack": "r1"}},
            {"f": {"aggregate_instance_extra_spec:rack": "r1"}},
            "near-miss-key",
            f"{FLAVOR} 'aggregate_instance_extra_spec:rack'",
            Severity.WARNING,
            "unknown namespace 'aggregate_instance_extra_spec'",
            "write 'aggregate_instance_extra_specs'",
        ),
        Expected(
            {},
            {"f": {"Trait:CUSTOM_FAST": "required"}},
            "near-miss-key",
            f"{FLAVOR} 'Trait:CUSTOM_FAST'",
            Severity.WARNING,
            "unknown namespace 'Trait'",
            "write 'trait'",
        ),
        Expected(
            {"a": {"hw:cpu_polcy": "dedicated"}},
            {"f": {"hw:cpu_policy": "dedicated"}},
            "near-miss-key",
            f"{FLAVOR} 'hw:cpu_policy'",
            Severity.WARNING,
            "no aggregate has the key 'hw:cpu_policy'; did you mean 'hw:cpu_polcy'?",
            "if it is a typo",
        ),
        Expected(
            {"a": {"zone": "north"}, "b": {"zone": "North"}},
            {"f": {"zone": "north"}},
            "near-miss-value",
            "aggregate 'b', key 'zone'",
            Severity.WARNING,
            "no flavor has the value 'North'; did you mean 'north'?",
            "write 'north'",
        ),
        Expected(
            {},
            {"f": {"trait:HW_CPU_X86_AVX_2": "required"}},
            "near-miss-trait",
            "flavor 'f', extra spec 'trait:HW_CPU_X86_AVX_2'",
            Severity.WARNING,
            f"did you mean '{TRAIT}'?",
            f"write '{TRAIT}'",
        ),
    ],
)
def test_check_reports_near_miss(expected: Expected) -> None:
    check_reported(expected)


@pytest.mark.parametrize(
    ("flavors", "check"),
    [
        ({"f": {"sdd": "nvme"}, "g": {"ssd": "nvme"}}, "near-miss-key"),
        ({"f": {"ssd": "nvem"}, "g": {"ssd": "nvme"}}, "near-miss-value"),
    ],
)
def test_remedy_names_no_aggregate_if_another_flavor_uses_its_word(
    flavors: dict[str, dict[str, str]], check: str
) -> None:
    findings = found(cloud({"a": {"ssd": "nvme"}}, flavors))
    remedies = [each.remedy for (name, _), each in findings.items() if name == check]
    assert remedies
    assert not any("aggregate" in remedy for remedy in remedies)
