"""Trial mode, in which a filter reports the hosts that it would reject and lets them pass."""

import collections
import dataclasses
import functools
import itertools
import logging as levels
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard import plugins
from steelyard.attributes import read
from steelyard.filters.base import FILTERS, Filter, HostT, answers

LOG = logging.getLogger(__name__)

# The most causes that a summary in the log has.
_CAUSES_LOGGED = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Filtered(Generic[HostT]):
    """The answers of a filter for the hosts of a request."""

    hosts: Sequence[HostT]
    passing: Sequence[bool]
    on_trial: bool

    def passed(self) -> Iterator[HostT]:
        """Return the hosts that pass, in their order; on trial, all of them."""
        return iter(self.hosts) if self.on_trial else itertools.compress(self.hosts, self.passing)

    def rejected(self) -> Iterator[HostT]:
        """Return the hosts that the filter rejects; on trial, those that it would reject."""
        return itertools.compress(self.hosts, map(operator.not_, self.passing))


class TrialMode:
    """The application of filters to hosts, with trial mode and logging.

    A filter on trial lets every host pass. The options are re-read for each request. An unknown
    name in ``trial_filters`` stops the service at start, because the filter that was meant would
    reject hosts. At run time, the name is logged and the previous filters stay on trial.
    """

    def __init__(
        self, conf: cfg.ConfigOpts | None = None, *, are_all_enforced: bool = False
    ) -> None:
        """Read the options. If all filters are enforced, none is on trial."""
        group = options.register(conf)
        for removed in options.REMOVED_OPTS:
            getattr(group, removed.dest)  # raises if the option is still set
        on_trial = options.Latest(group, "trial_filters", self._unknown)
        self._trial_filters = list if are_all_enforced else on_trial
        self._log_no_host = options.Latest(group, "log_no_host")

    def on_trial(self, names: Iterable[str]) -> frozenset[str]:
        """Return which of the filters are on trial."""
        return frozenset(names) & frozenset(self._trial_filters())

    def logs_passing(self, names: Iterable[str]) -> bool:
        """Return whether rejections by these filters are logged even if other hosts pass."""
        return LOG.isEnabledFor(levels.DEBUG) or (
            LOG.isEnabledFor(levels.INFO) and bool(self.on_trial(names))
        )

    def apply(
        self, name: str, filter_: Filter, hosts: Sequence[HostT], request: object
    ) -> Filtered[HostT]:
        """Return the filter's answers for the hosts, and log the rejections.

        ``name`` is the name under which the filter is registered.
        """
        on_trial = name in self._trial_filters()
        filtered = Filtered(hosts, answers(filter_, hosts, request), on_trial)
        if not all(filtered.passing):
            self._log(name, filter_, filtered, request)
        return filtered

    def _log(self, name: str, filter_: Filter, filtered: Filtered[HostT], request: object) -> None:
        """Log each rejection at debug level, and a summary of the causes at info level.

        The summary is logged for a filter on trial, and if ``log_no_host`` is set and no host
        passes.
        """
        wanted = filtered.on_trial or (not any(filtered.passing) and self._log_no_host())
        summed_up = wanted and LOG.isEnabledFor(levels.INFO)
        if not summed_up and not LOG.isEnabledFor(levels.DEBUG):
            return
        rejects = "would reject" if filtered.on_trial else "rejects"
        causes: collections.Counter[str] = collections.Counter()
        verdicts = filter_.first_rejections(filtered.rejected(), request)
        for host, verdict in zip(filtered.rejected(), verdicts, strict=True):
            causes[verdict.cause] += 1
            LOG.debug(
                "%(filter)s %(rejects)s host %(host)r: %(reason)s",
                {
                    "filter": name,
                    "rejects": rejects,
                    "host": read(host, "host"),
                    "reason": verdict.reason,
                },
            )
        if summed_up:
            LOG.info(
                "%(filter)s %(rejects)s %(rejected)d of %(all)d hosts for server %(server)s: "
                "%(causes)s",
                {
                    "filter": name,
                    "rejects": rejects,
                    "rejected": causes.total(),
                    "all": len(filtered.hosts),
                    "server": read(request, "instance_uuid"),
                    "causes": _listed(causes),
                },
            )

    def _unknown(self, names: Iterable[str]) -> str:
        """Return an error about the first name that no installed filter has, or an empty text."""
        for name in names:
            if name not in self._installed:
                return f"no filter {name!r}{plugins.suggestion(name, self._installed)}"
        return ""

    @functools.cached_property
    def _installed(self) -> frozenset[str]:
        return frozenset(plugin.name for plugin in plugins.installed(FILTERS))


def _listed(causes: collections.Counter[str]) -> str:
    ranked = sorted(causes.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(f"{count} by {cause}" for cause, count in ranked[:_CAUSES_LOGGED])
