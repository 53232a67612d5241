"""Placement as the search for a repair asks it: a live one, or one computed from a cloud file."""

import dataclasses
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Protocol

from steelyard.traits import CandidatesRequest, ProvidersRequest


@dataclasses.dataclass(frozen=True, slots=True)
class ClassUsage:
    """The capacity of one resource class at a root provider, and the amount in use."""

    capacity: int
    used: int


@dataclasses.dataclass(frozen=True, slots=True)
class CandidateRoot:
    """A root provider that supplies resources in a candidate."""

    uuid: str
    name: str
    """Empty if it is not known."""
    supplies: Mapping[str, ClassUsage]
    traits: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Candidates:
    """The answer to a request for allocation candidates."""

    roots: Mapping[str, CandidateRoot]
    """The roots that Nova may take as hosts, by UUID; see ``supplying_roots``."""
    requests: int
    """The number of allocation requests in the answer, which the limit of the request bounds.

    There may be some without roots.
    """


def supplying_roots(
    allocations: Iterable[Collection[str]], root_of: Callable[[str], str], sharing: Container[str]
) -> set[str]:
    """Return the root providers that supply resources in one of the allocations.

    Each allocation has the UUIDs of its providers. A root that shares its inventories counts only
    if it serves its own tree alone. Nova takes no host whose root supplies nothing.
    """
    return {
        each
        for providers in allocations
        for each in providers
        if root_of(each) == each
        and (each not in sharing or all(root_of(other) == each for other in providers))
    }


class PlacementView(Protocol):
    """A Placement that answers requests.

    Both methods raise BadRequest if Placement does not know a trait, a resource class or an
    aggregate of the request, and other errors of steelyard if it cannot be asked.
    """

    def candidates(self, request: CandidatesRequest) -> Candidates:
        """Return the candidates."""
        ...

    def providers(self, request: ProvidersRequest) -> frozenset[str]:
        """Return the UUIDs of the roots of the providers that the request selects."""
        ...
