"""The OpenAPI 3.1 description of the HTTP API."""

from typing import Any

from steelyard.consumers.http import schemas
from steelyard.web import callers, health, openapi
from steelyard.web.openapi import Operations, in_path, response

_ABOUT = """
Consumers of resources with their types and allocations, as in Placement at microversion 1.38. The
header `OpenStack-API-Version: placement 1.38` or `placement latest` is accepted, and so is a
request without a microversion.

Clients do not identify themselves: keystonemiddleware in front of the service validates a token, or
a trusted proxy sets the headers. Administrators and services may do everything; readers may read
the usages of their project.
"""

_REASONS = {
    400: "The request is malformed. The detail begins with the path of the fault.",
    401: "No trusted source identifies the caller.",
    403: "The token has no project, or the roles of the caller do not suffice.",
    404: "The consumer has no allocations.",
    406: "Another microversion is requested, or an answer in another format than JSON.",
    409: "The generation of a consumer is not the current one, or its type was removed meanwhile.",
    413: "The request is too large.",
    415: "The Content-Type is not application/json.",
    500: "Internal error, or the service is misconfigured.",
    503: (
        "The database is unreachable, needs an upgrade, or aborted the transaction. If it is "
        "unreachable, a write may have been applied."
    ),
}
_OPERATIONS = Operations(_REASONS, dict.fromkeys(_REASONS, "Errors"))
_ANY = (400, 406, 413, 500)
_DATABASE = (*_ANY, 401, 403, 503)
_WRITING = (*_DATABASE, 409, 415)

PARAMETERS = tuple(schemas.QUERY)
"""The names of the parameters of the query of usages."""


def description(trust: callers.Trust) -> dict[str, Any]:
    """Return the description, as a JSON value, of a service with this trust."""
    return openapi.description(
        "Consumers",
        _ABOUT,
        {
            "/": {"get": _public("discover", "Get the supported microversions", "Discovery")},
            "/allocations": {"post": _writing("post_allocations", "several consumers", "POST")},
            "/allocations/{consumer_uuid}": _consumer(),
            "/usages": _usages(),
            "/reshaper": {"post": _writing("reshape", "consumers of a reshape", "Reshape")},
            health.PATH: _health(),
            openapi.PATH: _OPERATIONS.of_description(*_ANY),
        },
        {
            "PUT": schemas.PUT,
            "POST": schemas.POST,
            "Reshape": schemas.RESHAPER,
            "Allocations": schemas.ALLOCATIONS_ANSWER,
            "Usages": schemas.USAGES_ANSWER,
            "Discovery": schemas.DISCOVERY,
            "Health": health.schema(),
            "Errors": schemas.ERRORS,
        },
        openapi.keys(trust, roles=callers.ROLES),
    )


def _consumer() -> dict[str, Any]:
    there = response("The allocations; empty if the consumer has none.", "Allocations")
    gone = response("The consumer is removed, whatever its generation.")
    return {
        "parameters": [in_path("consumer_uuid", schemas.CONSUMER)],
        "get": _OPERATIONS.described(
            "get_allocations", "Get the allocations", {200: there}, _DATABASE
        ),
        "put": _writing("put_allocations", "one consumer", "PUT"),
        "delete": _OPERATIONS.described(
            "delete_allocations", "Delete the allocations", {204: gone}, (*_DATABASE, 404)
        ),
    }


def _usages() -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "query", "required": name == PARAMETERS[0], "schema": schema}
        for name, schema in schemas.QUERY.items()
    ]
    used = response("The usage and the number of consumers by type.", "Usages")
    found = _OPERATIONS.described(
        "get_usages", "Get the usage of a project", {200: used}, _DATABASE
    )
    return {"get": {**found, "parameters": parameters}}


def _health() -> dict[str, Any]:
    found = _public("check_health", "Check the database", "Health")
    found["responses"]["503"] = response("A check failed.", "Health")
    return {"get": found}


def _public(name: str, summary: str, body: str) -> dict[str, Any]:
    """Return the description of an operation that needs no keys."""
    return {
        **_OPERATIONS.described(name, summary, {200: response(summary, body)}, _ANY),
        "security": [],
    }


def _writing(name: str, replaced: str, body: str) -> dict[str, Any]:
    done = response("The allocations are replaced.")
    return _OPERATIONS.described(
        name, f"Replace the allocations of {replaced}", {204: done}, _WRITING, body
    )
