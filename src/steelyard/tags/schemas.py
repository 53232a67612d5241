"""JSON Schemas of what the HTTP API takes and gives, and the names of its errors.

The API checks requests with these, and its description is made of the same.
"""

from collections.abc import Mapping
from typing import Any

import jsonschema

from steelyard import errors
from steelyard.tags.names import LONGEST, MOST, Owner, check_name
from steelyard.tags.states import Status

Schema = Mapping[str, Any]

FAULTS: Mapping[int, str] = {
    400: "badRequest",
    401: "unauthorized",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    500: "computeFault",
    502: "badGateway",
    503: "serviceUnavailable",
}
"""What OpenStack calls an error, by its status."""

LONGEST_ID = 64

# A pattern's $ is in some dialects also found before a newline at the end; \A and \Z are in others
# not known. Each pattern needs one look at each character.
_END = r"$(?!\n)"

TAG: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST,
    "pattern": rf"^(?!\s*$)[^/,\u0000-\u001f\u007f-\u009f]*{_END}",
}
_TAG_LIST: Schema = {"type": "array", "items": TAG}
_TAGS_OF: Mapping[Owner, Schema] = {
    Owner.USER: {"type": "array", "maxItems": MOST, "items": TAG},
    Owner.SYSTEM: _TAG_LIST,
}

SERVER_ID: Schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_ID}
_NAMED: Schema = {"pattern": rf"^[A-Za-z0-9][A-Za-z0-9._-]*{_END}"}

STATUS: Schema = {"type": "string", "enum": [status.value for status in Status]}
_STATUSES: Schema = {"type": "object", "propertyNames": TAG, "additionalProperties": STATUS}


def _object(optional: Mapping[str, Schema] | None = None, /, **required: Schema) -> Schema:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def tags(owner: Owner) -> Schema:
    """The body that replaces tags; there is no limit to how many the system has."""
    return _object(tags=_TAGS_OF[owner])


def new_server(owner: Owner) -> Schema:
    """The body that creates a server."""
    optional = {"id": {**SERVER_ID, **_NAMED}, "tags": _TAGS_OF[owner]}
    name = {"type": "string", "minLength": 1, "maxLength": 255, **_NAMED}
    return _object(server=_object(optional, name=name))


TAGS_ANSWER: Schema = _object(tags=_TAG_LIST, statuses=_STATUSES)
SERVER_ANSWER: Schema = _object(
    server=_object(
        id={"type": "string"}, name={"type": "string"}, tags=_TAG_LIST, statuses=_STATUSES
    )
)


def fault(status: int) -> Schema:
    """The body of an answer that says what is wrong."""
    inside = _object(code={"type": "integer", "const": status}, message={"type": "string"})
    return _object(**{FAULTS[status]: inside})


def check(body: object, schema: Schema) -> Any:
    """The body, if it is as the schema says; BadRequest with the place of the first fault."""
    found = next(jsonschema.Draft202012Validator(schema).iter_errors(body), None)
    if found is None:
        return body
    if found.schema == TAG:
        check_name(found.instance)  # it says better what is wrong with a tag
    if found.validator == "maxItems":
        given = len(found.instance)
        raise errors.BadRequest(f"an instance has at most {MOST} tags, and {given} are given")
    raise errors.BadRequest(f"{found.json_path}: {_shortened(found.message)}")


def _shortened(message: str) -> str:
    """The message without the middle of a long one: it begins with what was given."""
    return message if len(message) <= 300 else f"{message[:100]} ... {message[-100:]}"
