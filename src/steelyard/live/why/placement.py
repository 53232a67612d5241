"""A live Placement, asked for candidates."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from steelyard import errors, microversions
from steelyard.analysis.why.placement_view import (
    CandidateRoot,
    Candidates,
    ClassUsage,
    supplying_roots,
)
from steelyard.clients import sessions
from steelyard.clients.placement import Placement
from steelyard.clients.queries import ask
from steelyard.live import answers, fields
from steelyard.traits import CandidatesRequest, ProvidersRequest

ValueT = TypeVar("ValueT")

_TRAITS = "1.17"
"""The microversion from which on candidates have traits."""
_SHARING = "MISC_SHARES_VIA_AGGREGATE"


class LivePlacement:
    """A Placement over HTTP, as the search for a repair asks it."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement

    def candidates(self, request: CandidatesRequest) -> Candidates:
        """Return the candidates.

        Raises BadRequest if Placement rejects the request, and ServiceError if it is too old for
        the request.
        """
        return self._asked(request, candidates_of)

    def providers(self, request: ProvidersRequest) -> frozenset[str]:
        """Return the UUIDs of the roots of the providers; raises the errors of ``candidates``."""

        def roots(answer: Any) -> frozenset[str]:
            return frozenset(each.root for each in answers.listed(answer).values())

        return self._asked(request, roots)

    def _asked(
        self, request: CandidatesRequest | ProvidersRequest, parse: Callable[[Any], ValueT]
    ) -> ValueT:
        newest = self._placement.newest
        if not microversions.reaches(newest, _TRAITS):
            raise errors.ServiceError(
                f"this Placement supports up to microversion {newest}, and the traits of "
                f"candidates need {_TRAITS}; upgrade Placement"
            )
        try:
            answer = ask(self._placement, request)
        except errors.MicroversionTooLow as error:
            # The search takes a BadRequest as a reason of this request.
            raise errors.ServiceError(f"{error}; upgrade Placement") from error
        try:
            return parse(answer)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise errors.ServiceError(
                f"unexpected answer from Placement: invalid content in {request.path} "
                f"({type(error).__name__}: {sessions.line(error)}); check its endpoint"
            ) from error


def candidates_of(answer: Mapping[str, Any]) -> Candidates:
    """Return the candidates of an answer; raise LookupError, TypeError or ValueError if malformed.

    Before microversion 1.29, an answer names no root providers, and each provider is its own root.
    """
    allocations = [
        frozenset(map(fields.text, fields.mapping(each["allocations"])))
        for each in answer["allocation_requests"]
    ]
    summaries = fields.mapping(answer["provider_summaries"])
    root_of = {
        uuid: fields.text(each.get("root_provider_uuid") or uuid)
        for uuid, each in summaries.items()
    }
    if not summaries.keys() >= set(root_of.values()):
        raise LookupError("a root provider without a summary")
    sharing = {uuid for uuid, each in summaries.items() if _SHARING in each["traits"]}
    roots = supplying_roots(allocations, root_of.__getitem__, sharing)
    return Candidates(
        {root: _root(root, summaries[root]) for root in sorted(roots)}, len(allocations)
    )


def _root(uuid: str, summary: Any) -> CandidateRoot:
    supplies = fields.by_name(summary["resources"], _usage)
    return CandidateRoot(uuid, "", supplies, answers.traits(summary))


def _usage(record: Any) -> ClassUsage:
    return ClassUsage(
        fields.read(record, "capacity", fields.amount), fields.read(record, "used", fields.amount)
    )
