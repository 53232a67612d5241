"""What is wrong with a cloud's aggregates and flavors, found before it bites.

Each check is a function from what is there to findings; none of them changes anything.
"""

from oslo_config import cfg

from steelyard.desk.checks import fits, forced, near_misses, novas_keys, values
from steelyard.desk.checks.finding import Check, Finding
from steelyard.desk.checks.subject import Subject
from steelyard.desk.fitting import Fitting
from steelyard.filters.aggregate_instance_type import ignored_keys
from steelyard.scheduler import Cloud
from steelyard.severity import Severity

__all__ = ["Check", "Finding", "check"]

_OF_WHAT_IS_WRITTEN = (
    values.of_flavors,
    values.of_forced_aggregates,
    values.flags,
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
_OF_WHAT_FITS = (fits.flavors, fits.hosts)


def check(cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> list[Finding]:
    """Everything that is found, the worst first."""
    subject = Subject(cloud, ignored_keys(conf))
    found = [finding for look in _OF_WHAT_IS_WRITTEN for finding in look(subject)]
    reach = fits.Reach.of(Fitting(cloud, conf), list(cloud.flavors))
    found += [finding for look in _OF_WHAT_FITS for finding in look(reach)]
    return sorted(set(found), key=_order)


def _order(finding: Finding) -> tuple[int, str, str, str]:
    rank = list(Severity).index(finding.severity)
    return rank, finding.check, finding.where, finding.why
