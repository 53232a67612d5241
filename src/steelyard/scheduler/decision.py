"""What was decided for one server, and why."""

import collections
import dataclasses
import functools
from collections.abc import Sequence

from steelyard.filters.base import Filter
from steelyard.scheduler.cloud import Server
from steelyard.scheduler.host_state import HostState, Request
from steelyard.verdict import Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Weight:
    """What one weigher made of one host."""

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
        return sum(weight.multiplied for weight in self.weights)


@dataclasses.dataclass(frozen=True, slots=True)
class Rejected:
    """The hosts that one filter turned away, and the request that they were held against."""

    name: str
    filter: Filter
    hosts: tuple[HostState, ...]
    request: Request


@dataclasses.dataclass(frozen=True, slots=True)
class HostExplanation:
    """Why one host was chosen, was fit but not chosen, or was rejected."""

    host: str
    chosen: bool
    passed: tuple[str, ...]
    rejected_by: str = ""
    reason: str = ""
    weights: tuple[Weight, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.rejected_by

    @property
    def weight(self) -> float | None:
        return sum(weight.multiplied for weight in self.weights) if self.fits else None


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """How many hosts one filter rejected for one cause."""

    count: int
    filter: str
    cause: str


@dataclasses.dataclass(frozen=True)
class Decision:
    """Where one server goes: ``server`` is None when no host fits."""

    request: Request
    filters: Sequence[str]
    weighed: Sequence[Weighed]
    """The hosts that passed all filters, best first."""
    rejected: Sequence[Rejected]
    server: Server | None

    @property
    def considered(self) -> int:
        return len(self.weighed) + sum(len(rejected.hosts) for rejected in self.rejected)

    @functools.cached_property
    def hosts(self) -> list[HostExplanation]:
        """Every host that was considered: the chosen one, the others that fit, the rejected."""
        chosen = self.server.host if self.server else None
        fit = [
            HostExplanation(
                weighed.obj.host,
                weighed.obj.host == chosen,
                tuple(self.filters),
                weights=weighed.weights,
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
            )
            for name, state, verdict in self._verdicts
        ]

    @functools.cached_property
    def causes(self) -> list[Cause]:
        """Why hosts were rejected, the most frequent cause first."""
        counts = collections.Counter((name, verdict.cause) for name, _, verdict in self._verdicts)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [Cause(count, name, cause) for (name, cause), count in ranked]

    @functools.cached_property
    def _verdicts(self) -> list[tuple[str, HostState, Verdict]]:
        """Each rejected host with the filter that rejected it and why, worked out when asked."""
        return [
            (rejected.name, state, rejected.filter.examine(state, rejected.request))
            for rejected in self.rejected
            for state in rejected.hosts
        ]
