"""The description of the HTTP API in the words of OpenAPI 3.1."""

from collections.abc import Mapping, Sequence
from typing import Any

import steelyard
from steelyard.tags import callers, schemas
from steelyard.tags.names import Owner

_ABOUT = """
Tags of servers, with OpenStack's meaning: text that users attach to their servers, and that takes
effect where the servers run. What is added is `PENDADD` until it is there, then `ACTIVE`; only
`ACTIVE` tags are deleted or replaced.

Who calls is said by what stands in front, never by the client itself: keystonemiddleware, which
takes a token, or a proxy that the service trusts, which sets the headers.
"""

_REASONS = {
    400: "What was sent is malformed, too much, or contradicts itself.",
    401: "Nobody that is trusted says who is calling.",
    404: "There is no such server in the project, or no such tag on it.",
    409: "It does not go together with what is there, or the tag is still being added.",
    413: "The request is too large.",
    415: "The body is not said to be JSON.",
    500: "Something has gone wrong inside.",
    502: "The backend has refused.",
    503: "The backend or the database has not answered: what has been done shows later.",
}
_ANY = (401, 413, 500, 503)
_CHANGING = (*_ANY, 404, 502)

_JSON = "application/json"
_SERVER = "/servers/{server}/tags"


def description(trust: callers.Trust) -> dict[str, Any]:
    """All of it, for a service that trusts these, ready to be written as JSON."""
    keys = _keys(trust)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Instance tags",
            "version": steelyard.__version__,
            "description": _ABOUT.strip(),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/servers": _servers(),
            _SERVER: _tags(),
            _SERVER + "/{tag}": _tag(),
            "/openapi.json": _itself(),
        },
        "components": {
            "schemas": {
                "Tags": schemas.tags(Owner.USER),
                "NewServer": schemas.new_server(Owner.USER),
                "TagsAnswer": schemas.TAGS_ANSWER,
                "ServerAnswer": schemas.SERVER_ANSWER,
                **{name: schemas.fault(status) for status, name in schemas.FAULTS.items()},
            },
            "securitySchemes": keys,
        },
        "security": [{name: [] for name in keys}],
    }


def _servers() -> dict[str, Any]:
    answers = {202: _answer("The backend creates it.", "ServerAnswer")}
    faults = (*_ANY, 400, 409, 415, 502)
    create = _operation("create_server", "Create a server with tags", answers, faults, "NewServer")
    answers[202]["links"] = {
        operation: {"operationId": operation, "parameters": {"server": "$response.body#/server/id"}}
        for operation in ("list_tags", "replace_tags", "add_tag", "tag_exists", "delete_tag")
    }
    return {"post": create}


def _tags() -> dict[str, Any]:
    there = {200: _answer("The tags, and the status of each.", "TagsAnswer")}
    gone = {204: _answer("What was there is being deleted.")}
    return {
        "parameters": [_in_path("server", schemas.SERVER_ID)],
        "get": _operation("list_tags", "List the tags", there, (*_ANY, 404)),
        "put": _operation(
            "replace_tags", "Replace all tags", there, (*_CHANGING, 400, 409, 415), "Tags"
        ),
        "delete": _operation("delete_all_tags", "Delete all tags", gone, _CHANGING),
    }


def _tag() -> dict[str, Any]:
    there = _answer("It is there.", headers={"Tag-Status": schemas.STATUS})
    new = _answer("It is being added.", headers={"Location": {"type": "string"}})
    return {
        "parameters": [_in_path("server", schemas.SERVER_ID), _in_path("tag", schemas.TAG)],
        "get": _operation(
            "tag_exists", "Ask whether a tag exists", {204: there}, (*_ANY, 400, 404)
        ),
        "put": _operation(
            "add_tag",
            "Add a tag",
            {201: new, 204: _answer("It was there already.")},
            (*_CHANGING, 400, 409),
        ),
        "delete": _operation(
            "delete_tag",
            "Delete a tag",
            {204: _answer("It is being deleted.")},
            (*_CHANGING, 400, 409),
        ),
    }


def _itself() -> dict[str, Any]:
    answer = {"description": "This.", "content": {_JSON: {"schema": {"type": "object"}}}}
    return {
        "get": {**_operation("describe", "Describe", {200: answer}, (413, 500)), "security": []}
    }


def _operation(
    name: str,
    summary: str,
    answers: Mapping[int, dict[str, Any]],
    faults: Sequence[int],
    body: str | None = None,
) -> dict[str, Any]:
    said = {**answers, **{status: _fault(status) for status in faults}}
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {str(status): said[status] for status in sorted(said)},
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": _content(body)}
    return operation


def _answer(
    text: str, body: str | None = None, headers: Mapping[str, schemas.Schema] | None = None
) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": text}
    if body is not None:
        answer["content"] = _content(body)
    if headers is not None:
        answer["headers"] = {
            name: {"required": True, "schema": schema} for name, schema in headers.items()
        }
    return answer


def _fault(status: int) -> dict[str, Any]:
    return _answer(_REASONS[status], schemas.FAULTS[status])


def _content(name: str) -> dict[str, Any]:
    return {_JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _in_path(name: str, schema: schemas.Schema) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _keys(trust: callers.Trust) -> dict[str, Any]:
    """What says who is calling, all of it together."""
    if not trust.proxies:
        return {"token": _key("X-Auth-Token", "What keystonemiddleware takes, in front.")}
    return {
        "project": _key(callers.PROJECT, "What a trusted proxy says, in front."),
        "user": _key(callers.USER, "The same."),
    }


def _key(header: str, about: str) -> dict[str, Any]:
    return {"type": "apiKey", "in": "header", "name": header, "description": about}
