"""The decision on one server, and the reasons for it."""

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from steelyard.cloud import Server
from steelyard.cloud.host_state import HostState, Request
from steelyard.filters.base import Filter
from steelyard.verdict import Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Weight:
    """The weight that one weigher gives one host."""

    weigher: str
    raw: float
    normalised: float
    multiplier: float

    @property
    def multiplied(self) -> float:
        return self.normalised * self.multiplier


@dataclasses.dataclass(frozen=True, slots=True)
class Weighed:
    """A host that passed all filters, with its weights."""

    obj: HostState
    weights: tuple[Weight, ...] = ()

    @property
    def weight(self) -> float:
        return total(self.weights)


def total(weights: Iterable[Weight]) -> float:
    """Return the sum of the multiplied weights, added up from first to last."""
    # The result of sum() differs between versions of Python.
    return functools.reduce(operator.add, (each.multiplied for each in weights), 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Rejected:
    """The hosts that one filter rejects for a request; on trial, those that it would reject."""

    name: str
    filter: Filter
    hosts: tuple[HostState, ...]
    request: Request
    on_trial: bool = False

    def verdicts(self) -> Iterator[tuple[HostState, Verdict]]:
        """Yield each host with the filter's verdict."""
        verdicts = self.filter.first_rejections(self.hosts, self.request)
        yield from zip(self.hosts, verdicts, strict=True)


@dataclasses.dataclass(frozen=True, slots=True)
class TrialRejection:
    """A filter on trial that would have rejected a host, and the reason."""

    filter: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class HostExplanation:
    """The explanation why one host was chosen, fits but was not chosen, or was rejected."""

    host: str
    chosen: bool
    passed: tuple[str, ...]
    rejected_by: str = ""
    reason: str = ""
    weights: tuple[Weight, ...] = ()
    trial_rejections: tuple[TrialRejection, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.rejected_by

    @property
    def weight(self) -> float | None:
        return total(self.weights) if self.fits else None


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """The number of hosts that one filter rejects, or on trial would reject, for one cause."""

    count: int
    filter: str
    cause: str
    on_trial: bool = False


RejectedHost = tuple[str, HostState, Verdict]
"""The name of a filter, a host that it rejects, and its verdict."""


class Examined(NamedTuple):
    """The answers of all plugins for one server."""

    weighed: tuple[Weighed, ...]
    """The hosts that passed all filters, best first."""

    rejected: tuple[Rejected, ...]

    trial_rejected: tuple[Rejected, ...]
    """The hosts that filters on trial would have rejected.

    Each of them fits, or another filter rejects it.
    """


@dataclasses.dataclass(frozen=True)
class Decision:
    """The decision on one server; ``server`` is None if no host fits.

    The weights of the other hosts and the reasons of rejections are computed when they are first
    read, from the states of the hosts at the time of the decision.
    """

    request: Request
    filters: Sequence[str]
    considered: int
    """The number of hosts that were candidates."""
    fitting: int
    """The number of hosts that passed all filters."""
    chosen: Weighed | None
    server: Server | None
    on_trial: frozenset[str]
    """The filters that were on trial."""
    examine: Callable[[], Examined] = dataclasses.field(repr=False, compare=False)

    @functools.cached_property
    def _examined(self) -> Examined:
        return self.examine()

    @property
    def weighed(self) -> Sequence[Weighed]:
        """The hosts that passed all filters, best first."""
        return self._examined.weighed

    @property
    def rejected(self) -> Sequence[Rejected]:
        return self._examined.rejected

    @property
    def trial_rejected(self) -> Sequence[Rejected]:
        """The hosts that filters on trial would have rejected."""
        return self._examined.trial_rejected if self.on_trial else ()

    @functools.cached_property
    def hosts(self) -> list[HostExplanation]:
        """The explanations of all considered hosts.

        The chosen host comes first, then the other hosts that fit, then the rejected ones.
        """
        chosen = self.server.host if self.server else None
        fit = [
            HostExplanation(
                weighed.obj.host,
                weighed.obj.host == chosen,
                tuple(self.filters),
                weights=weighed.weights,
                trial_rejections=self._trial_rejections.get(weighed.obj.host, ()),
            )
            for weighed in self.weighed
        ]
        fit.sort(key=lambda explanation: not explanation.chosen)
        return fit + [
            HostExplanation(
                state.host,
                False,
                tuple(self.filters[: self.filters.index(name)]),
                name,
                verdict.reason,
                trial_rejections=self._trial_rejections.get(state.host, ()),
            )
            for name, state, verdict in self.verdicts
        ]

    @functools.cached_property
    def causes(self) -> list[Cause]:
        """The causes of rejections, the most frequent first."""
        return _causes(self.verdicts, on_trial=False)

    @functools.cached_property
    def trial_causes(self) -> list[Cause]:
        """The causes of rejections by filters on trial, the most frequent first."""
        return _causes(self.trial_verdicts, on_trial=True)

    @functools.cached_property
    def _trial_rejections(self) -> Mapping[str, tuple[TrialRejection, ...]]:
        """The rejections by filters on trial, by host."""
        found: dict[str, list[TrialRejection]] = collections.defaultdict(list)
        for name, state, verdict in self.trial_verdicts:
            found[state.host].append(TrialRejection(name, verdict.reason))
        return {host: tuple(rejections) for host, rejections in found.items()}

    @functools.cached_property
    def verdicts(self) -> list[RejectedHost]:
        """The verdict on each rejected host."""
        return _explained(self.rejected)

    @functools.cached_property
    def trial_verdicts(self) -> list[RejectedHost]:
        """The verdicts of filters on trial on the hosts that they would have rejected."""
        return _explained(self.trial_rejected)


def _explained(rejected: Iterable[Rejected]) -> list[RejectedHost]:
    """Return each rejected host with the filter that rejects it and its verdict."""
    return [(each.name, state, verdict) for each in rejected for state, verdict in each.verdicts()]


def _causes(explained: Iterable[RejectedHost], *, on_trial: bool) -> list[Cause]:
    """Return the causes of rejections, the most frequent first."""
    counts = collections.Counter((name, verdict.cause) for name, _, verdict in explained)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [Cause(count, name, cause, on_trial) for (name, cause), count in ranked]
