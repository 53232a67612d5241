"""JSON Schemas of the HTTP API's requests and answers, for its OpenAPI description.

The schemas of requests are those with which the store checks them. They use formats of their own;
here, patterns express these.
"""

from collections.abc import Mapping
from typing import Any

from steelyard.consumers import bodies, names
from steelyard.consumers.usages import COUNT
from steelyard.web.openapi import JsonSchema, object_schema

_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$(?!\\n)"
_PATTERNS = {bodies.ONE_LINE: "^[^\\n]*$(?!\\n)", bodies.STORABLE: "^[^\\u0000]*$"}


def _described(schema: Any) -> Any:
    """Return the schema with patterns in place of the formats that only the store knows."""
    if not isinstance(schema, Mapping):
        return schema
    found = {name: _described(value) for name, value in schema.items()}
    if found.get("format") in _PATTERNS:
        pattern = _PATTERNS[found.pop("format")]
        found["pattern"] = f"{found['pattern']}(?!\\n)" if "pattern" in found else pattern
    if bodies.UUID in found:  # the names of properties
        found[_UUID] = found.pop(bodies.UUID)
    return found


PUT: JsonSchema = _described(bodies.PUT_SCHEMA)
POST: JsonSchema = _described(bodies.POST_SCHEMA)
RESHAPER: JsonSchema = _described(bodies.RESHAPER_SCHEMA_OF_STORES)

CONSUMER: JsonSchema = {"type": "string", "format": "uuid"}

QUERY: Mapping[str, JsonSchema] = {
    **_described(bodies.OWNER_SCHEMA)["properties"],
    "consumer_type": {
        "type": "string",
        "minLength": 1,
        "maxLength": names.LONGEST,
        "pattern": f"^([A-Z0-9_]+|{names.ALL}|{names.PLACEMENTS_UNKNOWN})$(?!\\n)",
    },
}
"""The parameters of the query of usages. The first one is required."""

_FIELDS: Mapping[str, JsonSchema] = PUT["properties"]
ALLOCATIONS_ANSWER: JsonSchema = object_schema(
    {name: _FIELDS[name] for name in PUT["required"] if name != "allocations"},
    allocations=_FIELDS["allocations"],
)
_AMOUNT: JsonSchema = {"type": "integer", "minimum": 0}
_USAGE: JsonSchema = {
    "type": "object",
    "properties": {COUNT: {"type": "integer", "minimum": 1}},
    "required": [COUNT],
    "additionalProperties": _AMOUNT,
}
USAGES_ANSWER: JsonSchema = object_schema(usages={"type": "object", "additionalProperties": _USAGE})

_TEXT: JsonSchema = {"type": "string"}
_ERROR: JsonSchema = object_schema(
    {"max_version": _TEXT, "min_version": _TEXT},
    status={"type": "integer"},
    title=_TEXT,
    detail=_TEXT,
    code=_TEXT,
    request_id=_TEXT,
)
ERRORS: JsonSchema = object_schema(
    errors={"type": "array", "minItems": 1, "maxItems": 1, "items": _ERROR}
)
DISCOVERY: JsonSchema = object_schema(
    versions={"type": "array", "minItems": 1, "items": {"type": "object"}}
)
