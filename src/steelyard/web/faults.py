"""Bodies of errors in OpenStack's form, as HTTP services write them and clients read them."""

import http
from collections.abc import Mapping
from typing import Any

NAMES: Mapping[int, str] = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    500: "computeFault",
    502: "badGateway",
    503: "serviceUnavailable",
}
"""OpenStack's names of errors, by status."""


def fault(status: int, message: str, reason: str | None = None) -> dict[str, Any]:
    """Return the body of an error, with a reason for programs if one is given."""
    more = {} if reason is None else {"reason": reason}
    return {NAMES[status]: {"code": status, "message": message, **more}}


def error_list(
    status: int, detail: str, code: str, request_id: str, details: Mapping[str, str]
) -> dict[str, Any]:
    """Return the body of an error in the newer form of OpenStack, which Placement has.

    ``code`` and ``details`` are for programs.
    """
    described = {
        "status": status,
        "title": http.HTTPStatus(status).phrase,
        "detail": detail,
        "code": code,
        "request_id": request_id,
    }
    return {"errors": [{**described, **details}]}


def fields(body: object) -> Mapping[str, Any]:
    """Return the code, message and reason in the body; empty if it is not in OpenStack's form."""
    inside = list(body.values()) if isinstance(body, dict) else []
    return inside[0] if len(inside) == 1 and isinstance(inside[0], dict) else {}
