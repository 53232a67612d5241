"""Small clouds, and the findings of the checks in them."""

from typing import NamedTuple

from oslo_config import cfg

from steelyard.analysis.checks import Finding, check
from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.findings import Severity

TRAIT = "HW_CPU_X86_AVX2"
"""The trait that the default host has."""

FORCED = {"force_metadata_check": "true"}
"""The metadata that forces an aggregate."""

PLAIN = {"f": {"ssd": "nvme"}}
"""One flavor that wants a plain value."""


def cloud(
    aggregates: dict[str, dict[str, str]], flavors: dict[str, dict[str, str]], **hosts: Host
) -> Cloud:
    """Return a cloud of aggregates and flavors by their metadata and extra specs.

    An aggregate contains the host of its name, or all hosts if there is no such host.
    """
    hosts = hosts or {"host": Host("host", 8, 8192, 80, frozenset({TRAIT}))}
    return Cloud(
        hosts,
        {
            name: Aggregate(name, said, tuple(hosts if name not in hosts else [name]))
            for name, said in aggregates.items()
        },
        {name: Flavor(name, 1, 1024, 10, specs) for name, specs in flavors.items()},
    )


def found(subject: Cloud, conf: cfg.ConfigOpts | None = None) -> dict[tuple[str, str], Finding]:
    """Return the findings by check and subject; these pairs must be unique."""
    findings = check(subject, conf or cfg.ConfigOpts())
    by_subject = {(str(finding.check), str(finding.subject)): finding for finding in findings}
    assert len(by_subject) == len(findings)
    return by_subject


class Expected(NamedTuple):
    """A cloud, by its aggregates and flavors, and a finding that a check reports in it."""

    aggregates: dict[str, dict[str, str]]
    flavors: dict[str, dict[str, str]]
    check: str
    subject: str
    severity: Severity
    message: str
    remedy: str


def check_reported(expected: Expected) -> None:
    """Check that the finding is reported, with its severity and these texts."""
    finding = found(cloud(expected.aggregates, expected.flavors))[expected.check, expected.subject]
    assert finding.severity == expected.severity
    assert expected.message in finding.message
    assert expected.remedy in finding.remedy
