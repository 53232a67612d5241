"""The verdict of every filter on every host, even after the first rejection."""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from steelyard.analysis.kinds import HostKinds
from steelyard.analysis.suggestions import told
from steelyard.cloud.host_state import HostState, Request
from steelyard.filters.base import SILENT, Filter
from steelyard.filters.capacity import keep_amounts
from steelyard.findings import Finding
from steelyard.page.view import Cell, CellMark, ShownReason
from steelyard.scheduler.decision import Decision, RejectedHost, Weight
from steelyard.verdict import Verdict

_PASSED = Cell(CellMark.PASSED)


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """One host with its weights, or with the filter that rejected it."""

    state: HostState
    objections: Mapping[str, Sequence[Verdict]]
    """The rejections by filter. Filters that the host passes are missing."""
    weights: tuple[Weight, ...] = ()
    rejected_by: str = ""
    chosen: bool = False

    @property
    def fits(self) -> bool:
        return not self.rejected_by

    @property
    def weight(self) -> float | None:
        return sum(each.multiplied for each in self.weights) if self.fits else None

    @property
    def cause(self) -> tuple[str, str]:
        """The filter that rejected the host, and the cause. Only for rejected hosts."""
        return self.rejected_by, self.objections[self.rejected_by][0].cause

    @property
    def rejections(self) -> list[RejectedHost]:
        """The rejections, the decisive one first."""
        names = sorted(self.objections, key=lambda name: name != self.rejected_by)
        return [(name, self.state, verdict) for name in names for verdict in self.objections[name]]

    def reasons(self) -> Iterator[tuple[str, str]]:
        """Yield each filter and reason of a rejection, without duplicates."""
        for name, objections in self.objections.items():
            for text in dict.fromkeys(objection.reason for objection in objections):
                yield name, text


def judged(decision: Decision, filters: Mapping[str, Filter]) -> list[Judged]:
    """Return all hosts of the decision: the chosen one, then those that fit, then the rejected."""
    chosen = decision.server.host if decision.server else None
    used = {name: filters[name] for name in decision.filters}
    weighed = sorted(decision.weighed, key=lambda each: each.obj.host != chosen)
    fitting = [each.obj for each in weighed]
    others = itertools.chain.from_iterable(each.hosts for each in decision.rejected)
    kinds = HostKinds([*fitting, *others])
    keep_amounts(used.values(), kinds.hosts)
    fit = [
        Judged(each.obj, objections, each.weights, chosen=each.obj.host == chosen)
        for each, objections in zip(
            weighed, _objections(kinds, fitting, decision.request, used), strict=True
        )
    ]
    return fit + [
        Judged(state, {rejected.name: (SILENT,), **objections}, rejected_by=rejected.name)
        for rejected in decision.rejected
        for state, objections in zip(
            rejected.hosts,
            _objections(kinds, rejected.hosts, rejected.request, used),
            strict=True,
        )
    ]


def _objections(
    kinds: HostKinds,
    states: Sequence[HostState],
    request: Request,
    filters: Mapping[str, Filter],
) -> list[dict[str, Sequence[Verdict]]]:
    """Return the rejections of each host by filter."""
    found: list[dict[str, Sequence[Verdict]]] = [{} for _ in states]
    for name, filter_ in filters.items():
        rejections = kinds.rejections(name, filter_, states, request)
        for each, objections in zip(found, rejections, strict=True):
            if objections:
                each[name] = objections
    return found


class Reasons:
    """All reasons of rejections, numbered by filter and then by frequency."""

    def __init__(
        self,
        hosts: Iterable[Judged],
        filters: Sequence[str],
        typos: Mapping[tuple[str, str], Sequence[Finding]],
    ) -> None:
        """Count the reasons of the hosts.

        ``typos`` explain reasons, given by filter and text.
        """
        self._filters = filters
        counts = collections.Counter(reason for host in hosts for reason in host.reasons())
        ranked = sorted(
            counts, key=lambda reason: (filters.index(reason[0]), -counts[reason], reason[1])
        )
        self._numbers = {reason: number for number, reason in enumerate(ranked, 1)}
        self.all = tuple(
            ShownReason(number, *reason, counts[reason], tuple(told(typos.get(reason, ()))))
            for reason, number in self._numbers.items()
        )

    def cells(self, host: Judged) -> tuple[Cell, ...]:
        """Return the cell of each filter for the host."""
        numbers: dict[str, list[int]] = {}
        for reason in host.reasons():
            numbers.setdefault(reason[0], []).append(self._numbers[reason])
        return tuple(
            Cell(
                CellMark.DECISIVE if name == host.rejected_by else CellMark.ALSO,
                tuple(numbers[name]),
            )
            if name in numbers
            else _PASSED
            for name in self._filters
        )
