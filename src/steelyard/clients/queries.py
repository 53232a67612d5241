"""Requests to a real Placement."""

from typing import Any

from steelyard import errors, microversions
from steelyard.clients.placement import Placement
from steelyard.traits import arguments
from steelyard.traits.requests import CandidatesRequest, ProvidersRequest


def ask(placement: Placement, request: ProvidersRequest | CandidatesRequest) -> Any:
    """Send the request to Placement, and return the JSON of the answer.

    Uses the newest microversion that both sides support. Raises MicroversionTooLow, and does not
    send the request, if this Placement is too old for it.
    """
    arguments.instance("placement", placement, Placement, "a Placement")
    if not isinstance(request, ProvidersRequest | CandidatesRequest):
        raise arguments.unexpected("request", request, "a ProvidersRequest or a CandidatesRequest")
    known = min(placement.newest, microversions.LATEST, key=microversions.number)
    try:
        request.require(known)
    except errors.MicroversionTooLow as error:
        raise errors.MicroversionTooLow(
            f"this Placement supports up to {placement.newest}: {error}"
        ) from None
    query = request.query_string()
    return placement.send("GET", f"{request.path}?{query}" if query else request.path, known)
