"""The examination of every host by every filter and weigher, one plugin after another."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence

from steelyard import plugins
from steelyard.cloud.host_state import HostState, Request
from steelyard.filters.base import FILTERS, Filter, answers
from steelyard.filters.trial import Filtered, TrialMode
from steelyard.scheduler.decision import Examined, Rejected, Weighed, Weight
from steelyard.weighers.base import WEIGHERS, Weigher


@dataclasses.dataclass(frozen=True)
class Examiner:
    """The enabled filters and weighers, with trial mode."""

    filters: Mapping[str, Filter]
    weighers: Mapping[str, Weigher]
    trial_mode: TrialMode

    @functools.cached_property
    def on_trial(self) -> frozenset[str]:
        """The filters that are on trial."""
        return self.trial_mode.on_trial(self.filters)

    @property
    def filters_of_each_server(self) -> dict[str, Filter]:
        """The filters that are applied again for each further server of a request."""
        return {
            name: each
            for name, each in self.filters.items()
            if not each.run_filter_once_per_request
        }

    def filtered(
        self,
        hosts: Sequence[HostState],
        request: Request,
        filters: Mapping[str, Filter],
        rejected: list[Rejected],
        *,
        logs: bool,
    ) -> list[HostState]:
        """Return the hosts that pass, and append those that a filter rejects to ``rejected``.

        A host that a filter on trial would reject is in both. If a filter on trial is applied
        again, its earlier answer is dropped.
        """
        rejected[:] = [each for each in rejected if not (each.on_trial and each.name in filters)]
        passed = list(hosts)
        for name, filter_ in filters.items():
            with plugins.blamed(FILTERS, name):
                found = (
                    self.trial_mode.apply(name, filter_, passed, request)
                    if logs
                    else Filtered(passed, answers(filter_, passed, request), name in self.on_trial)
                )
            states = tuple(found.rejected())
            if states:
                rejected.append(Rejected(name, filter_, states, request, found.on_trial))
            passed = list(found.passed())
        return passed

    def weighed(self, hosts: Sequence[HostState], request: Request) -> list[Weighed]:
        """Return the hosts with their weights, best first; hosts of equal weight keep order."""
        plain = [Weighed(state) for state in hosts]
        columns = []
        for name, weigher in self.weighers.items():
            raw = raw_weights(name, weigher, plain, request)
            columns.append(
                map(
                    Weight,
                    itertools.repeat(name),
                    raw,
                    normalise(raw, weigher.minval, weigher.maxval),
                    multipliers(name, weigher, hosts),
                )
            )
        rows = zip(*columns, strict=True) if columns else itertools.repeat(())
        weighed = [Weighed(state, weights) for state, weights in zip(hosts, rows, strict=False)]
        return sorted(weighed, key=lambda each: each.weight, reverse=True)

    def examined(
        self, hosts: Sequence[HostState], request: Request, rejected: Sequence[Rejected]
    ) -> Examined:
        """Return the result for the hosts that pass, with those that were rejected."""
        return Examined(
            tuple(self.weighed(hosts, request)),
            tuple(each for each in rejected if not each.on_trial),
            tuple(each for each in rejected if each.on_trial),
        )


def raw_weights(
    name: str, weigher: Weigher, hosts: Sequence[Weighed], request: Request
) -> list[float]:
    """Return the weigher's raw weights; raise PluginError if it fails."""
    with plugins.blamed(WEIGHERS, name):
        raw = list(map(float, weigher.weigh_objects(hosts, request)))
        # A finite sum has finite terms, and is faster to compute than a test of each of them.
        if not math.isfinite(sum(raw)) and not all(map(math.isfinite, raw)):
            raise ValueError("expected finite numbers as weights")
        if len(raw) != len(hosts):
            raise ValueError(f"expected {len(hosts)} weights, got {len(raw)}")
    return raw


def multipliers(name: str, weigher: Weigher, hosts: Sequence[HostState]) -> list[float]:
    """Return the weigher's multiplier for each host; raise PluginError if it fails."""
    with plugins.blamed(WEIGHERS, name):
        return [float(weigher.weight_multiplier(state)) for state in hosts]


def normalise(
    weights: Sequence[float], least: float | None = None, most: float | None = None
) -> list[float]:
    """Return the weights scaled to the range from 0 to 1; all 0 if they are all equal.

    ``least`` and ``most`` are scaled to 0 and 1 if they are given, instead of the lowest and the
    highest weight. Weights beyond them are not limited to the range.
    """
    if not weights:
        return []
    low = min(weights) if least is None else least
    high = max(weights) if most is None else most
    if low == high:
        return [0.0] * len(weights)
    return [(weight - low) / (high - low) for weight in weights]
