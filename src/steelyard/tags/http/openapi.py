"""The OpenAPI 3.1 description of the HTTP API."""

from typing import Any

from steelyard.tags.http import queries, schemas
from steelyard.tags.monitoring.resources import AGE
from steelyard.tags.names import Owner
from steelyard.web import callers, faults, health, metrics, openapi
from steelyard.web.openapi import Operations, in_path, in_query, response

_ABOUT = """
Tags of servers, as in OpenStack: text that users attach to their servers. A backend applies the
tags where the servers run. A new tag is `PENDADD` until the backend has applied it, then `ACTIVE`.
Only `ACTIVE` tags can be deleted or replaced.

Clients do not identify themselves: keystonemiddleware in front of the service validates a token, or
a trusted proxy sets the headers.
"""

_REASONS = {
    400: "The request is malformed or inconsistent, or has too many tags.",
    401: "No trusted source identifies the caller.",
    403: (
        "The token has no project, the policy does not allow the request, or the project has too "
        "many servers."
    ),
    404: (
        "The project has no such server, or the server has no such tag. With the `reason` "
        "`additionFailed`, the backend could not add the tag within the last hour; the message has "
        "its reason."
    ),
    409: "The request conflicts with existing tags, a pending operation or the backend.",
    413: "The request is too large.",
    415: "The Content-Type is not application/json.",
    500: "Internal error, or the service is misconfigured.",
    502: "The backend refused the request.",
    503: (
        "With the `reason` `backendUnreachable`, nothing was changed. With `outcomeUnknown`, "
        "`databaseUnreachable` or `transactionAborted`, the request may still be applied: list the "
        "tags later. With `upgradeNeeded`, the tables are missing or outdated."
    ),
}
_OPERATIONS = Operations(_REASONS, faults.NAMES)
_ANY = (401, 403, 413, 500, 503)
_CHANGING = (*_ANY, 404, 502)

_SERVER = "/servers/{server}"
_FILTERS = {
    "tags": "Only servers with all of these tags.",
    "tags-any": "Only servers with at least one of these tags.",
    "not-tags": "No servers with all of these tags.",
    "not-tags-any": "No servers with one of these tags.",
}


def description(trust: callers.Trust) -> dict[str, Any]:
    """Return the description, as a JSON value, of a service with this trust."""
    return openapi.description(
        "Instance tags",
        _ABOUT,
        {
            "/servers": _servers(),
            _SERVER: _server(),
            _SERVER + "/tags": _tags(),
            _SERVER + "/tags/{tag}": _tag(),
            openapi.PATH: _OPERATIONS.of_description(413, 500),
            health.PATH: _health(),
            metrics.PATH: _metrics(),
        },
        {
            "Tags": schemas.tags(Owner.USER),
            "NewServer": schemas.new_server(Owner.USER),
            "TagsAnswer": schemas.TAGS_ANSWER,
            "ServerAnswer": schemas.SERVER_ANSWER,
            "ServersAnswer": schemas.SERVERS_ANSWER,
            "Health": health.schema(AGE),
            **{name: schemas.fault(status) for status, name in faults.NAMES.items()},
        },
        openapi.keys(trust),
    )


def _health() -> dict[str, Any]:
    answers = {200: response("The service works.", "Health")}
    found = _OPERATIONS.described("check_health", "Check the database and the broker", answers, ())
    found["responses"]["503"] = response("A check failed.", "Health")
    return {"get": {**found, "security": []}}


def _metrics() -> dict[str, Any]:
    answer = {
        "description": "The metrics in the text format of Prometheus.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
    found = _OPERATIONS.described("get_metrics", "Get the metrics", {200: answer}, (413, 500))
    return {"get": {**found, "security": []}}


def _servers() -> dict[str, Any]:
    answers = {202: response("The server is being created.", "ServerAnswer")}
    faults = (*_ANY, 400, 409, 415, 502)
    create = _OPERATIONS.described(
        "create_server", "Create a server with tags", answers, faults, "NewServer"
    )
    answers[202]["links"] = {
        name: {"operationId": name, "parameters": {"server": "$response.body#/server/id"}}
        for name in (
            "list_tags",
            "replace_tags",
            "add_tag",
            "tag_exists",
            "delete_tag",
            "unregister_server",
        )
    }
    found = {200: response("The servers of the project, sorted by id.", "ServersAnswer")}
    list_them = _OPERATIONS.described("list_servers", "List servers", found, (*_ANY, 400))
    pages = [
        in_query(queries.LIMIT, "The most servers in the answer.", schemas.LIMIT),
        in_query(
            queries.MARKER, "The last server of the page before, which may be gone.", schemas.MARKER
        ),
    ]
    filters = [
        {**in_query(name, about, schemas.TAG_FILTER), "explode": False}
        for name, about in _FILTERS.items()
    ]
    return {"get": {**list_them, "parameters": [*filters, *pages]}, "post": create}


def _server() -> dict[str, Any]:
    return {
        "parameters": [in_path("server", schemas.SERVER_ID)],
        "delete": _OPERATIONS.described(
            "unregister_server",
            "Forget a server that the backend no longer has",
            {204: response("The server and its tags are forgotten.")},
            (*_CHANGING, 409),
        ),
    }


def _tags() -> dict[str, Any]:
    there = {200: response("The tags with their statuses.", "TagsAnswer")}
    gone = {204: response("The `ACTIVE` tags are being deleted.")}
    return {
        "parameters": [in_path("server", schemas.SERVER_ID)],
        "get": _OPERATIONS.described("list_tags", "List the tags", there, (*_ANY, 404)),
        "put": _OPERATIONS.described(
            "replace_tags", "Replace all tags", there, (*_CHANGING, 400, 409, 415), "Tags"
        ),
        "delete": _OPERATIONS.described("delete_all_tags", "Delete all tags", gone, _CHANGING),
    }


def _tag() -> dict[str, Any]:
    there = response("The server has the tag.", headers={"Tag-Status": schemas.STATUS})
    new = response("The tag is being added.", headers={"Location": {"type": "string"}})
    return {
        "parameters": [in_path("server", schemas.SERVER_ID), in_path("tag", schemas.TAG)],
        "get": _OPERATIONS.described(
            "tag_exists", "Get the status of a tag", {204: there}, (*_ANY, 400, 404)
        ),
        "put": _OPERATIONS.described(
            "add_tag",
            "Add a tag",
            {201: new, 204: response("The server has the tag already.")},
            (*_CHANGING, 400, 409),
        ),
        "delete": _OPERATIONS.described(
            "delete_tag",
            "Delete a tag",
            {204: response("The tag is being deleted.")},
            (*_CHANGING, 400, 409),
        ),
    }
