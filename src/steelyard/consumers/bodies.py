"""The bodies of requests that write allocations, read into values.

They are those of Placement at microversion 1.38. A provider's generation and the mappings are
accepted and not used.
"""

import dataclasses
import uuid
from collections.abc import Mapping
from typing import Any

from steelyard import errors
from steelyard.consumers import names
from steelyard.consumers.names import ConsumerType

try:
    import jsonschema
except ModuleNotFoundError as error:
    raise errors.MissingExtra(
        "consumers need jsonschema: python3 -m pip install 'steelyard[sql]'"
    ) from error

_UUID = "^[0-9a-fA-F-]{36}$"
_RESOURCE_CLASS = "^[A-Z0-9_]+$"
_OWNER = {"type": "string", "minLength": 1, "maxLength": 255}

_ALLOCATIONS = {
    "type": "object",
    "patternProperties": {
        _UUID: {
            "type": "object",
            "properties": {
                "generation": {"type": "integer"},
                "resources": {
                    "type": "object",
                    "minProperties": 1,
                    "patternProperties": {_RESOURCE_CLASS: {"type": "integer", "minimum": 1}},
                    "additionalProperties": False,
                },
            },
            "required": ["resources"],
            "additionalProperties": False,
        }
    },
    "additionalProperties": False,
}
_MAPPINGS = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {
        "[a-zA-Z0-9_-]{1,64}": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "format": "uuid"},
        }
    },
}

#: The body of ``PUT /allocations/{consumer_uuid}``.
PUT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "allocations": _ALLOCATIONS,
        "project_id": _OWNER,
        "user_id": _OWNER,
        "consumer_generation": {"type": ["integer", "null"]},
        "consumer_type": {
            "type": "string",
            "pattern": names.PATTERN,
            "minLength": 1,
            "maxLength": names.LONGEST,
        },
        "mappings": _MAPPINGS,
    },
    "required": ["allocations", "project_id", "user_id", "consumer_generation", "consumer_type"],
    "additionalProperties": False,
}

#: The body of ``POST /allocations``: several consumers by their UUIDs.
POST_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {_UUID: PUT_SCHEMA},
    "additionalProperties": False,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """What one consumer is to have from now on; with no resources, it is to be gone."""

    consumer: str
    project: str
    user: str
    type: ConsumerType
    generation: int | None
    resources: Mapping[str, Mapping[str, int]]
    """Amounts by provider and resource class."""


def put(consumer: str, body: object) -> Write:
    """What the body of a PUT for this consumer asks for."""
    _check(body, PUT_SCHEMA)
    return _write(consumer, body)


def post(body: object) -> list[Write]:
    """What the body of a POST asks for, by consumer."""
    _check(body, POST_SCHEMA)
    writes = [_write(consumer, said) for consumer, said in _mapping(body).items()]
    seen: set[str] = set()
    for write in writes:
        if write.consumer in seen:
            raise errors.InvalidAllocations(f"consumer {write.consumer} is there twice")
        seen.add(write.consumer)
    return writes


def check_uuid(what: str, text: object) -> str:
    """The UUID as it is written in the tables."""
    try:
        return str(uuid.UUID(str(text)))
    except ValueError:
        raise errors.InvalidAllocations(
            f"{what} {text!r:.100} is no UUID; write one such as {uuid.UUID(int=0)}"
        ) from None


def _check(body: object, schema: Mapping[str, Any]) -> None:
    """Raises InvalidAllocations with the path of the fault that says most."""
    validator = jsonschema.Draft202012Validator(
        dict(schema), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    fault = jsonschema.exceptions.best_match(validator.iter_errors(body))
    if fault is not None:
        raise errors.InvalidAllocations(f"{fault.json_path}: {fault.message:.300}")


def _mapping(body: Any) -> Mapping[str, Any]:
    """A body of which the schema has said that it is one."""
    found: Mapping[str, Any] = body
    return found


def _write(consumer: str, body: object) -> Write:
    said = _mapping(body)
    return Write(
        check_uuid("consumer", consumer),
        said["project_id"],
        said["user_id"],
        ConsumerType(said["consumer_type"]),
        said["consumer_generation"],
        {
            check_uuid("resource provider", provider): dict(allocation["resources"])
            for provider, allocation in said["allocations"].items()
        },
    )
