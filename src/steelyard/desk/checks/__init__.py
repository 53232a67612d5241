"""What is wrong with a cloud's aggregates and flavors, found before it bites.

Each check is a function from what is there to findings; none of them changes anything.
"""

from collections.abc import Iterable

from oslo_config import cfg

from steelyard import conf as options
from steelyard.desk.checks import fits, forced, near_misses, novas_keys, values
from steelyard.desk.checks.finding import Finding
from steelyard.desk.checks.subject import Subject
from steelyard.desk.fitting import Fitting
from steelyard.scheduler import Cloud
from steelyard.severity import Severity

__all__ = ["Finding", "check"]

_OF_WHAT_IS_WRITTEN = (
    values.of_flavors,
    values.of_forced_aggregates,
    values.flags,
    values.taken_literally,
    near_misses.keys,
    near_misses.values,
    near_misses.traits,
    forced.contradictions,
    novas_keys.of_aggregates,
    novas_keys.of_flavors,
    novas_keys.refused_by_api,
    fits.traits,
)
_OF_WHAT_FITS = (fits.flavors, fits.hosts)


def check(cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> list[Finding]:
    """Everything that is found, the worst first."""
    subject = Subject(cloud, tuple(sorted(set(options.register(conf).force_check_ignored_keys))))
    found = [finding for look in _OF_WHAT_IS_WRITTEN for finding in look(subject)]
    found += _unexplained(fits.demands(subject), found)
    reach = fits.Reach.of(Fitting(cloud, conf), list(cloud.flavors))
    found += [finding for look in _OF_WHAT_FITS for finding in look(reach)]
    ranks = list(Severity)
    return sorted(set(found), key=lambda each: (ranks.index(each.severity), each.check, each.where))


def _unexplained(found: Iterable[Finding], explained: list[Finding]) -> list[Finding]:
    """The findings about places of which nothing has been said yet."""
    places = {finding.where for finding in explained}
    return [finding for finding in found if finding.where not in places]
