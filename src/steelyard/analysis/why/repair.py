"""The search for a minimal repair: the demands that leave a request without candidates.

Demands are tried in a fixed order of preference. Each demand that leaves candidates is kept; the
others are the members of the repair.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from steelyard import errors
from steelyard.analysis.progress import Watching, unwatched
from steelyard.analysis.why.demands import (
    DemandKind,
    DemandPart,
    PlacementDemand,
    requests_of,
    without_resources,
)
from steelyard.analysis.why.placement_view import CandidateRoot, Candidates, PlacementView
from steelyard.traits import CandidatesRequest, ProvidersRequest, RequestGroup

_Demands = Sequence[PlacementDemand]
_Refused = dict[PlacementDemand, str]


@dataclasses.dataclass(frozen=True, slots=True)
class RepairMember:
    """A demand that has to be dropped, with the numbers of providers around it.

    All numbers are of distinct root providers.
    """

    demand: PlacementDemand
    refusal: str
    """The reason why Placement refuses the demand, such as an unknown trait; usually empty."""
    providers_alone: int | None
    """The providers that meet the demand by itself; None if that has no meaning."""
    providers_without: int | None
    """The providers that remain if only this demand is dropped; None if it cannot be asked."""


@dataclasses.dataclass(frozen=True, slots=True)
class Searched:
    """The candidates of a request and, if there are none, a minimal repair."""

    candidates: Candidates
    """The candidates of the whole request."""
    truncated: bool
    """Whether the limit of the request cut them."""
    repair: tuple[RepairMember, ...]
    repaired: Candidates | None
    """The candidates of the repaired request; None if no resource is left to ask for."""
    unjudged: tuple[PlacementDemand, ...]
    """The demands on groups that lost all their resources; Placement cannot be asked about them."""
    requests: int
    """The number of requests to Placement."""
    interruption: str = ""
    """The error that ended the search; the repair has then the members found so far."""


def searched(
    demands: Iterable[PlacementDemand],
    limit: int | None,
    placement: PlacementView,
    watch: Watching = unwatched,
) -> Searched:
    """Return the candidates of a request with these demands and, if there are none, a repair.

    ``limit`` is the limit that Nova puts on the request. For n demands and k members, this sends
    at most ``n + 2k + 2`` requests, and twice as many if a demand has a fallback.
    """
    ordered = sorted(demands, key=lambda demand: demand.rank)
    asking = _Asking(placement)
    whole, truncated = asking.whole(ordered, limit)
    if whole.requests:
        return Searched(whole, truncated, (), whole, (), asking.sent)
    return _repair(ordered, asking, watch)


def searched_without_candidates(
    demands: Iterable[PlacementDemand], placement: PlacementView, watch: Watching = unwatched
) -> Searched:
    """Return the repair of a request that is known to have no candidates.

    Sends one request less than ``searched``, and does not raise if Placement cannot be asked.
    """
    return _repair(sorted(demands, key=lambda demand: demand.rank), _Asking(placement), watch)


def _repair(ordered: _Demands, asking: "_Asking", watch: Watching) -> Searched:
    kept: list[PlacementDemand] = []
    refused: _Refused = {}
    try:
        _divide(watch(ordered, "demands"), asking, kept, refused)
        return _searched(ordered, asking, kept, refused, watch)
    except errors.SteelyardError as error:
        found = (RepairMember(demand, refusal, None, None) for demand, refusal in refused.items())
        return Searched(_merged([]), False, tuple(found), None, (), asking.sent, str(error))


def _divide(
    ordered: Iterable[PlacementDemand],
    asking: "_Asking",
    kept: list[PlacementDemand],
    refused: _Refused,
) -> None:
    """Add to ``kept`` the demands that together leave candidates, and the others to ``refused``.

    The latter have Placement's refusal. A demand on a group without resources is kept without a
    question.
    """
    for demand in ordered:
        if demand.fault:
            refused[demand] = demand.fault
            continue
        found, refusal = asking.leaves_candidates(kept, demand)
        if found:
            kept.append(demand)
        else:
            refused[demand] = refusal


def _searched(
    ordered: _Demands, asking: "_Asking", kept: _Demands, refused: _Refused, watch: Watching
) -> Searched:
    """Return the repair, with the numbers of providers."""
    is_left = bool(requests_of(kept))
    repaired = asking.candidates(kept) if is_left else None
    # A host without a tree does not matter either to a group that goes as a whole.
    lost = without_resources(ordered, kept)
    unjudged = [
        demand
        for demand in ordered
        if (demand in kept and not is_left) or (demand in lost and not refused.get(demand))
    ]
    members = [
        RepairMember(
            demand,
            refusal,
            None if refusal else asking.alone(demand),
            asking.without(ordered, demand),
        )
        for demand, refusal in watch(list(refused.items()), "demands to mend")
        if demand not in unjudged
    ]
    return Searched(_merged([]), False, tuple(members), repaired, tuple(unjudged), asking.sent)


class _Asking:
    """The questions of one search; equal requests are sent once."""

    def __init__(self, placement: PlacementView) -> None:
        self._placement = placement
        self._candidates: dict[CandidatesRequest, Candidates | errors.BadRequest] = {}
        self._providers: dict[ProvidersRequest, frozenset[str] | None] = {}

    @property
    def sent(self) -> int:
        """The number of requests sent."""
        return len(self._candidates) + len(self._providers)

    def whole(self, demands: _Demands, limit: int | None) -> tuple[Candidates, bool]:
        """Return the candidates of all demands, and whether the limit cut them."""
        if any(demand.fault for demand in demands):
            return _merged([]), False
        answers = self._answers(demands, limit)
        return _merged(answers), any(answer.requests == limit for answer in answers)

    def candidates(self, demands: _Demands) -> Candidates:
        """Return all candidates of the demands."""
        return _merged(self._answers(demands, None))

    def leaves_candidates(self, kept: _Demands, demand: PlacementDemand) -> tuple[bool, str]:
        """Return whether the demand leaves candidates beside the kept ones, or the refusal."""
        if demand.kind is DemandKind.IN_TREE:
            # It cannot be asked without resources, so ask whether the tree exists.
            return self.alone(demand) != 0, ""
        try:
            before, requests = requests_of(kept), requests_of([*kept, demand], limit=1)
        except errors.InvalidQuery as error:
            return False, error.message
        if requests_of([*kept, demand]) == before:
            return True, ""
        refusal = ""
        for request in requests:
            answer = self._answer(request)
            if isinstance(answer, errors.BadRequest):
                refusal = answer.message
            elif answer.requests:
                return True, ""
        return False, refusal

    def alone(self, demand: PlacementDemand) -> int | None:
        """Return the number of roots above the providers that meet the demand by themselves."""
        parts = dict.fromkeys([demand.part, demand.fallback or demand.part])
        found = [self._roots(request) for part in parts for request in _alone(part)]
        known = [roots for roots in found if roots is not None]
        return len(frozenset[str]().union(*known)) if known else None

    def without(self, demands: _Demands, demand: PlacementDemand) -> int | None:
        """Return the number of roots that remain if only this demand is dropped."""
        rest = [other for other in demands if other is not demand]
        if any(other.fault for other in rest):
            return 0
        try:
            if not requests_of(rest):
                return None
        except errors.InvalidQuery:
            return 0
        return len(self.candidates(rest).roots)

    def _answers(self, demands: _Demands, limit: int | None) -> list[Candidates]:
        """Return the answers to the requests of the demands that Placement does not refuse."""
        try:
            requests = requests_of(demands, limit)
        except errors.InvalidQuery:
            return []
        answers = map(self._answer, requests)
        return [answer for answer in answers if isinstance(answer, Candidates)]

    def _answer(self, request: CandidatesRequest) -> Candidates | errors.BadRequest:
        unlimited = dataclasses.replace(request, limit=None)
        if request.limit == 1 and unlimited in self._candidates:
            return self._candidates[unlimited]
        if request not in self._candidates:
            try:
                self._candidates[request] = self._placement.candidates(request)
            except (errors.MicroversionTooLow, errors.UnsupportedMicroversion):
                raise
            except errors.BadRequest as error:
                self._candidates[request] = error
        return self._candidates[request]

    def _roots(self, request: ProvidersRequest) -> frozenset[str] | None:
        """Return the roots of the selected providers; None if Placement refuses the request."""
        if request not in self._providers:
            try:
                self._providers[request] = self._placement.providers(request)
            except (errors.MicroversionTooLow, errors.UnsupportedMicroversion):
                raise
            except errors.BadRequest:
                self._providers[request] = None
        return self._providers[request]


def _alone(part: DemandPart) -> Iterable[ProvidersRequest]:
    """Yield the request for the providers that meet the part by themselves, if that has a meaning.

    Below almost every root, there are providers without a forbidden trait or aggregate, so their
    number has none.
    """
    traits = part.group.traits & part.root
    if not (traits.forbidden or part.group.not_member_of):
        group = dataclasses.replace(part.group, traits=traits)
        if group != RequestGroup():
            yield ProvidersRequest(group)


def _merged(answers: Iterable[Candidates]) -> Candidates:
    """Return the candidates of several answers together."""
    roots: dict[str, CandidateRoot] = {}
    requests = 0
    for answer in answers:
        roots.update(answer.roots)
        requests += answer.requests
    return Candidates(roots, requests)
