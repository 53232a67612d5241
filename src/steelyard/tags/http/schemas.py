"""JSON Schemas of the HTTP API's requests and answers.

The API checks requests with them, and its OpenAPI description includes them.
"""

from collections.abc import Mapping
from typing import Any

import jsonschema

from steelyard import errors
from steelyard.tags.database.listing import LARGEST_PAGE
from steelyard.tags.http.faults import FaultReason
from steelyard.tags.names import (
    LONGEST,
    LONGEST_SERVER_ID,
    MOST,
    Owner,
    check_name,
    invalid_server,
)
from steelyard.tags.states.values import Status
from steelyard.web import faults
from steelyard.web.openapi import JsonSchema, object_schema

# In some dialects of patterns, $ also matches before a final newline; others lack \A and \Z. All
# patterns match in linear time.
_END = r"$(?!\n)"

TAG: JsonSchema = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST,
    "pattern": rf"^(?!\s*$)[^/,\u0000-\u001f\u007f-\u009f]*{_END}",
}
_TAG_LIST: JsonSchema = {"type": "array", "items": TAG}
_TAGS_OF: Mapping[Owner, JsonSchema] = {
    Owner.USER: {"type": "array", "maxItems": MOST, "items": TAG},
    Owner.SYSTEM: _TAG_LIST,
}

SERVER_ID: JsonSchema = {"type": "string", "minLength": 1, "maxLength": LONGEST_SERVER_ID}
_NAMED: JsonSchema = {"pattern": rf"^[A-Za-z0-9][A-Za-z0-9._-]*{_END}"}
_NEW: Mapping[str, JsonSchema] = {
    "id": {**SERVER_ID, **_NAMED},
    "name": {"type": "string", "minLength": 1, "maxLength": 255, **_NAMED},
}
"""The fields of a new server; the error for an invalid one states all its rules."""

STATUS: JsonSchema = {"type": "string", "enum": [status.value for status in Status]}
_STATUSES: JsonSchema = {"type": "object", "propertyNames": TAG, "additionalProperties": STATUS}


def tags(owner: Owner) -> JsonSchema:
    """Return the schema of the body that replaces tags; the system may have any number."""
    return object_schema(tags=_TAGS_OF[owner])


def new_server(owner: Owner) -> JsonSchema:
    """Return the schema of the body that creates a server."""
    optional = {"id": _NEW["id"], "tags": _TAGS_OF[owner]}
    return object_schema(server=object_schema(optional, name=_NEW["name"]))


TAGS_ANSWER: JsonSchema = object_schema(tags=_TAG_LIST, statuses=_STATUSES)
_SERVER: JsonSchema = object_schema(
    id={"type": "string"},
    name={"type": "string"},
    project={"type": "string"},
    user={"type": "string"},
    tags=_TAG_LIST,
    statuses=_STATUSES,
)
SERVER_ANSWER: JsonSchema = object_schema(server=_SERVER)
_LINK: JsonSchema = object_schema(rel={"const": "next"}, href={"type": "string"})
SERVERS_ANSWER: JsonSchema = object_schema(
    {"servers_links": {"type": "array", "minItems": 1, "maxItems": 1, "items": _LINK}},
    servers={"type": "array", "maxItems": LARGEST_PAGE, "items": _SERVER},
)

TAG_FILTER: JsonSchema = {"type": "array", "minItems": 1, "maxItems": MOST, "items": TAG}
LIMIT: JsonSchema = {"type": "integer", "minimum": 1, "maximum": 999_999_999}
MARKER: JsonSchema = {**SERVER_ID, **_NAMED}


def fault(status: int) -> JsonSchema:
    """Return the schema of the body of an error."""
    always: dict[str, JsonSchema] = {
        "code": {"type": "integer", "const": status},
        "message": {"type": "string"},
    }
    failed = FaultReason.ADDITION_FAILED
    if status == 503:
        others = [each.value for each in FaultReason if each is not failed]
        inside = object_schema(**always, reason={"type": "string", "enum": others})
    elif status == 404:
        inside = object_schema({"reason": {"const": failed.value}}, **always)
    else:
        inside = object_schema(**always)
    return object_schema(**{faults.NAMES[status]: inside})


def check(body: object, schema: JsonSchema) -> Any:
    """Return the body if it matches the schema; raise BadRequest for the first mismatch."""
    try:
        found = next(jsonschema.Draft202012Validator(schema).iter_errors(body), None)
    except RecursionError:
        raise errors.BadRequest("invalid body: nested too deeply") from None
    if found is None:
        return body
    if found.schema == TAG:
        check_name(found.instance)  # raises a clearer error
    for field, expected in _NEW.items():
        if found.schema == expected:
            raise errors.BadRequest(invalid_server(field, found.instance, expected["maxLength"]))
    if found.validator == "maxItems":
        given = len(found.instance)
        raise errors.BadRequest(
            f"too many tags: an instance has at most {MOST}, and {given} are given"
        )
    raise errors.BadRequest(f"{found.json_path}: {_shortened(found.message)}")


def _shortened(message: str) -> str:
    """Return the message without the middle if it is long: it begins with the given value."""
    return message if len(message) <= 300 else f"{message[:100]} ... {message[-100:]}"
