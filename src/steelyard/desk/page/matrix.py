"""Every host against every filter, also those that were not asked any more."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from steelyard import plugins
from steelyard.desk.page.view import Cell, Mark, Reason
from steelyard.filters.base import Filter
from steelyard.scheduler.decision import Decision, Weight
from steelyard.scheduler.host_state import HostState, Request
from steelyard.verdict import Verdict

# Of a filter that turns a host away and does not say why: its own host_passes may know more than
# its examine.
_SILENT = Verdict.rejected("it gives no reason")

_PASSED = Cell(Mark.PASSED)


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """One host with its weights, or with the filter that has turned it away."""

    state: HostState
    objections: Mapping[str, Sequence[Verdict]]
    """What filters have against it; those that have nothing are not there."""
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
        """Of a host that was turned away: by which filter, and for what."""
        return self.rejected_by, self.objections[self.rejected_by][0].cause

    def reasons(self) -> Iterator[tuple[str, str]]:
        """What the filters say against it, each thing once."""
        for name, objections in self.objections.items():
            for text in dict.fromkeys(objection.reason for objection in objections):
                yield name, text


def judged(decision: Decision, filters: Mapping[str, Filter]) -> list[Judged]:
    """Each host of the decision: the chosen one, the others that fit, the rejected."""
    chosen = decision.server.host if decision.server else None
    asked = {name: filters[name] for name in decision.filters}
    fit = [
        Judged(
            each.obj,
            _objections(each.obj, decision.request, asked),
            each.weights,
            chosen=each.obj.host == chosen,
        )
        for each in sorted(decision.weighed, key=lambda each: each.obj.host != chosen)
    ]
    return fit + [
        Judged(
            state,
            {rejected.name: (_SILENT,), **_objections(state, rejected.request, asked)},
            rejected_by=rejected.name,
        )
        for rejected in decision.rejected
        for state in rejected.hosts
    ]


def _objections(
    state: HostState, request: Request, filters: Mapping[str, Filter]
) -> dict[str, Sequence[Verdict]]:
    found: dict[str, Sequence[Verdict]] = {}
    for name, filter_ in filters.items():
        with plugins.blamed("filter", name):
            objections = tuple(filter_.rejections(state, request))
        if objections:
            found[name] = objections
    return found


class Reasons:
    """All that filters have against hosts, numbered filter by filter, the most frequent first."""

    def __init__(self, hosts: Iterable[Judged], filters: Sequence[str]) -> None:
        self._filters = filters
        counts = collections.Counter(reason for host in hosts for reason in host.reasons())
        ranked = sorted(
            counts, key=lambda reason: (filters.index(reason[0]), -counts[reason], reason[1])
        )
        self._numbers = {reason: number for number, reason in enumerate(ranked, 1)}
        self.all = tuple(
            Reason(number, *reason, counts[reason]) for reason, number in self._numbers.items()
        )

    def cells(self, host: Judged) -> tuple[Cell, ...]:
        """What each filter says of the host."""
        numbers: dict[str, list[int]] = {}
        for reason in host.reasons():
            numbers.setdefault(reason[0], []).append(self._numbers[reason])
        return tuple(
            Cell(
                Mark.DECISIVE if name == host.rejected_by else Mark.ALSO,
                tuple(numbers[name]),
            )
            if name in numbers
            else _PASSED
            for name in self._filters
        )
