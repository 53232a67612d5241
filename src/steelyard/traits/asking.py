"""Requests sent to a real Placement."""

from typing import Any

from steelyard import errors, microversions
from steelyard.placement import Placement
from steelyard.traits.requests import CandidatesRequest, ProvidersRequest


def ask(placement: Placement, request: ProvidersRequest | CandidatesRequest) -> Any:
    """The answer, in the newest microversion that both sides know.

    Raises MicroversionTooLow, before anything is sent, when this Placement is too old to
    understand the request.
    """
    known = min(placement.newest, microversions.LATEST, key=microversions.number)
    try:
        request.require(known)
    except errors.MicroversionTooLow as error:
        raise errors.MicroversionTooLow(
            f"this Placement speaks up to {placement.newest}: {error}"
        ) from None
    query = request.query_string()
    return placement.send("GET", f"{request.path}?{query}" if query else request.path, known)
