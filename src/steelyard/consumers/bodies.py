"""The bodies of requests that write allocations, read into values.

They are those of Placement at microversion 1.38. A provider's generation and the mappings are
accepted and not used.
"""

import dataclasses
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema

from steelyard import errors
from steelyard.consumers import names
from steelyard.consumers.names import ConsumerType
from steelyard.consumers.uuids import canonical

#: The largest amount that the tables keep.
LARGEST = 2**31 - 1

_UUID = "^[0-9a-fA-F-]{36}$"
_RESOURCE_CLASS = "^[A-Z0-9_]+$"
_LONGEST = 255

# A pattern's $ is also found before a newline at the end.
_ONE_LINE = "text of one line"
# PostgreSQL keeps no NUL, and no database a lone surrogate, which UTF-8 has no bytes for.
_STORABLE = "text that can be stored"
# What is said of a text that has not the format.
_SAID = {
    _ONE_LINE: "has more than one line",
    _STORABLE: "has a NUL, or a surrogate that stands alone: no database keeps them",
    "uuid": "is no UUID",
}
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

_OWNER = {"type": "string", "minLength": 1, "maxLength": _LONGEST, "format": _STORABLE}

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
                    "propertyNames": {"maxLength": _LONGEST, "format": _ONE_LINE},
                    "patternProperties": {
                        _RESOURCE_CLASS: {"type": "integer", "minimum": 1, "maximum": LARGEST}
                    },
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
        "consumer_generation": {
            "type": ["integer", "null"],
            "minimum": -LARGEST,
            "maximum": LARGEST - 1,  # there is another one after it
        },
        "consumer_type": {
            "type": "string",
            "pattern": names.PATTERN,
            "minLength": 1,
            "maxLength": names.LONGEST,
            "format": _ONE_LINE,
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

#: The allocations in the body of ``POST /reshaper``: as in a POST, but there may be none.
RESHAPE_SCHEMA: Mapping[str, Any] = {**POST_SCHEMA, "minProperties": 0}

#: Whose usages are asked for, as in the query of ``GET /usages``.
OWNER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"project_id": _OWNER, "user_id": _OWNER},
    "required": ["project_id"],
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
    return _write(check_uuid("consumer", consumer), body, "$")


def post(body: object) -> list[Write]:
    """What the body of a POST asks for, by consumer."""
    _check(body, POST_SCHEMA)
    return _writes(body)


def reshape(body: object) -> list[Write]:
    """What the allocations of a reshape ask for, by consumer."""
    _check(body, RESHAPE_SCHEMA)
    return _writes(body)


def check_owner(project: object, user: object = None) -> None:
    """Raises BadRequest where no consumer can be of such a project, or such a user of it."""
    said = {"project_id": project} | ({} if user is None else {"user_id": user})
    fault = _fault(said, OWNER_SCHEMA)
    if fault is not None:
        raise errors.BadRequest(fault)


def check_uuid(what: str, text: object) -> str:
    """The UUID as it is written in the tables."""
    found = canonical(str(text))
    if found is None:
        raise errors.InvalidAllocations(
            f"{what} {text!r:.100} is no UUID; write one such as {uuid.UUID(int=0)}"
        )
    return found


_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks("uuid")
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or canonical(value) is not None


@_FORMATS.checks(_ONE_LINE)
def _is_one_line(value: object) -> bool:
    return not isinstance(value, str) or "\n" not in value


@_FORMATS.checks(_STORABLE)
def _is_storable(value: object) -> bool:
    return not isinstance(value, str) or _UNSTORABLE.search(value) is None


def _is_object(_: object, value: object) -> bool:
    """Whether JSON has it: names are texts there."""
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


_extend: Any = jsonschema.validators.extend  # it says nothing of its types
_Validator = _extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("object", _is_object),
)


def _check(body: object, schema: Mapping[str, Any]) -> None:
    """Raises InvalidAllocations with the path of the fault that says most."""
    fault = _fault(body, schema)
    if fault is not None:
        raise errors.InvalidAllocations(fault)


def _fault(body: object, schema: Mapping[str, Any]) -> str | None:
    validator = _Validator(dict(schema), format_checker=_FORMATS)
    try:
        fault = jsonschema.exceptions.best_match(validator.iter_errors(body))
    except ValueError as error:  # the fault is a number that is too long to be written
        return f"$: {error}"
    except RecursionError:
        return "$: it is nested too deeply"
    if fault is None:
        return None
    if fault.validator == "format":
        return f"{fault.json_path}: {fault.instance!r:.300} {_SAID[str(fault.validator_value)]}"
    return f"{fault.json_path}: {fault.message:.300}"


def _mapping(body: Any) -> Mapping[str, Any]:
    """A body of which the schema has said that it is one."""
    found: Mapping[str, Any] = body
    return found


def _writes(body: object) -> list[Write]:
    said = _mapping(body)
    uuids = _uuids("$: consumer", said)
    return [_write(uuids[text], said[text], f"$['{text}']") for text in said]


def _write(consumer: str, body: object, place: str) -> Write:
    said = _mapping(body)
    providers = _uuids(f"{place}.allocations: resource provider", said["allocations"])
    generation = said["consumer_generation"]
    return Write(
        consumer,
        said["project_id"],
        said["user_id"],
        ConsumerType(said["consumer_type"]),
        # JSON's 1.0 is an integer.
        None if generation is None else int(generation),
        {
            providers[text]: {name: int(amount) for name, amount in allocation["resources"].items()}
            for text, allocation in said["allocations"].items()
        },
    )


def _uuids(what: str, texts: Iterable[str]) -> dict[str, str]:
    """Each text as the UUID that it is; no two are the same."""
    found = {text: check_uuid(what, text) for text in texts}
    for written, times in Counter(found.values()).most_common(1):
        if times > 1:
            raise errors.InvalidAllocations(f"{what} {written} is there twice")
    return found
