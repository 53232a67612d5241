"""Checks of a cloud's aggregates, flavors, hosts and servers.

Each check is a function that reads the cloud and yields findings.
"""

from oslo_config import cfg

from steelyard.analysis.checks import fits, forced, near_misses, novas_keys, placed, values
from steelyard.analysis.checks.checked_cloud import CheckedCloud
from steelyard.analysis.fitting import Fitting
from steelyard.analysis.progress import Watching, unwatched
from steelyard.cloud import Cloud
from steelyard.filters.aggregate_instance_type import ignored_keys
from steelyard.findings import Check, Finding, Severity

__all__ = ["Check", "Finding", "check"]

_CHECKS_OF_TEXT = (
    values.of_flavors,
    values.of_forced_aggregates,
    values.flags,
    values.empty_aggregates,
    values.misplaced_flags,
    values.taken_literally,
    near_misses.flags,
    near_misses.namespaces,
    near_misses.keys,
    near_misses.values,
    near_misses.traits,
    forced.contradictions,
    novas_keys.of_aggregates,
    novas_keys.of_flavors,
    novas_keys.refused_by_api,
    fits.demands,
    fits.traits,
)


def check(
    cloud: Cloud, conf: cfg.ConfigOpts | None = None, watch: Watching = unwatched
) -> list[Finding]:
    """Return all findings, the most severe first."""
    checked = CheckedCloud(cloud, ignored_keys(conf))
    found = [finding for look in _CHECKS_OF_TEXT for finding in look(checked)]
    fitting = Fitting(cloud, conf)
    found += fits.flavors(fitting, watch(list(cloud.flavors), "flavors"))
    found += fits.hosts(fitting, list(cloud.flavors), watch)
    found += placed.groups(fitting)
    found += placed.servers(fitting)
    found += placed.hosts(fitting)
    return sorted(set(found), key=_order)


def _order(finding: Finding) -> tuple[int, str, str, str]:
    rank = list(Severity).index(finding.severity)
    return rank, finding.check, str(finding.subject), finding.message
