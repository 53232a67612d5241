"""Requests as demands, and the smallest repairs by brute force."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from steelyard import errors
from steelyard.analysis.why.demands import (
    DemandKind,
    DemandPart,
    GroupPolicy,
    PlacementDemand,
    requests_of,
)
from steelyard.analysis.why.placement_view import Candidates, PlacementView
from steelyard.cloud.wanted import Source
from steelyard.traits import CandidatesRequest, ProvidersRequest, RequestGroup, TraitQuery


def demand(
    kind: DemandKind, part: DemandPart, text: str = "", fallback: DemandPart | None = None
) -> PlacementDemand:
    return PlacementDemand(
        kind=kind, part=part, text=text, origin="test", source=Source.OPTION, fallback=fallback
    )


def amount(name: str, number: int, suffix: str = "") -> PlacementDemand:
    part = DemandPart(suffix, RequestGroup({name: number}))
    return demand(DemandKind.RESOURCE, part, f"{number} {name} {suffix}")


def trait(query: str, suffix: str = "") -> PlacementDemand:
    part = DemandPart(suffix, RequestGroup(traits=TraitQuery.parse(query)))
    return demand(DemandKind.TRAIT, part, f"{query} {suffix}")


def root_trait(query: str) -> PlacementDemand:
    return demand(DemandKind.TRAIT, DemandPart(root=TraitQuery.parse(query)), f"root {query}")


def demands_of(request: CandidatesRequest) -> list[PlacementDemand]:
    """Return the demands of the request but ``same_subtree``, each with one part of it."""
    found = [demand for suffix, group in request.groups.items() for demand in _of(suffix, group)]
    found += [root_trait(text) for text in _conditions(request.root_required)]
    if request.group_policy == "isolate":
        part = DemandPart(policy=GroupPolicy.ISOLATE)
        found.append(demand(DemandKind.GROUP_POLICY, part))
    return found


def _of(suffix: str, group: RequestGroup) -> Iterator[PlacementDemand]:
    for name, number in group.resources.items():
        yield amount(name, number, suffix)
    for text in _conditions(group.traits):
        part = DemandPart(suffix, RequestGroup(traits=TraitQuery.parse(text)))
        yield demand(DemandKind.TRAIT, part, text)
    for several in group.member_of:
        part = DemandPart(suffix, RequestGroup(member_of=frozenset([several])))
        yield demand(DemandKind.MEMBER_OF, part)
    if group.not_member_of:
        part = DemandPart(suffix, RequestGroup(not_member_of=group.not_member_of))
        yield demand(DemandKind.MEMBER_OF, part)
    if group.in_tree is not None:
        part = DemandPart(suffix, RequestGroup(in_tree=group.in_tree))
        yield demand(DemandKind.IN_TREE, part)


def _conditions(query: TraitQuery) -> list[str]:
    return [
        *sorted(query.required),
        *("!" + name for name in sorted(query.forbidden)),
        *("in:" + ",".join(sorted(several)) for several in query.any_of),
    ]


def has_candidates(demands: Iterable[PlacementDemand], placement: PlacementView) -> bool:
    """Return whether the demands have candidates, or request no resource at all."""
    demands = list(demands)
    if any(each.fault for each in demands):
        return False
    try:
        requests = requests_of(demands)
        return not requests or any(placement.candidates(request).requests for request in requests)
    except errors.BadRequest:
        return False


def is_minimal(
    demands: Sequence[PlacementDemand],
    repair: Sequence[PlacementDemand],
    placement: PlacementView,
) -> bool:
    """Return whether dropping the repair leaves candidates, and dropping less of it does not."""
    return has_candidates(_without(demands, repair), placement) and not any(
        has_candidates(_without(demands, some), placement)
        for size in range(len(repair))
        for some in itertools.combinations(repair, size)
    )


def _without(
    demands: Sequence[PlacementDemand], dropped: Iterable[PlacementDemand]
) -> list[PlacementDemand]:
    names = set(map(id, dropped))
    return [each for each in demands if id(each) not in names]


class CountingPlacement:
    """A PlacementView that keeps the requests sent to another one."""

    def __init__(self, placement: PlacementView) -> None:
        self._placement = placement
        self.sent: list[CandidatesRequest | ProvidersRequest] = []

    def candidates(self, request: CandidatesRequest) -> Candidates:
        self.sent.append(request)
        return self._placement.candidates(request)

    def providers(self, request: ProvidersRequest) -> frozenset[str]:
        self.sent.append(request)
        return self._placement.providers(request)
