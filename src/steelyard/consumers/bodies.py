"""The bodies of requests that write allocations, parsed into values.

The format is that of Placement at microversion 1.38. A provider's generation and the mappings are
accepted and ignored.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema

from steelyard import errors
from steelyard.consumers import names
from steelyard.consumers.names import ConsumerType
from steelyard.text import uuids

#: The largest amount that the tables can store.
LARGEST = 2**31 - 1

UUID = "^[0-9a-fA-F-]{36}$"
_RESOURCE_CLASS = "^[A-Z0-9_]+$"
_LONGEST = 255

# In a pattern, $ also matches before a newline at the end.
ONE_LINE = "text of one line"
# PostgreSQL cannot store NUL, and no database a lone surrogate, since UTF-8 cannot encode it.
STORABLE = "text that can be stored"
# The message for text that does not match the format.
_MESSAGES = {
    ONE_LINE: "contains a newline",
    STORABLE: "contains a NUL or a lone surrogate, which databases cannot store",
    "uuid": "is not a UUID",
}
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

_OWNER = {"type": "string", "minLength": 1, "maxLength": _LONGEST, "format": STORABLE}

_ALLOCATIONS = {
    "type": "object",
    "patternProperties": {
        UUID: {
            "type": "object",
            "properties": {
                "generation": {"type": "integer"},
                "resources": {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": {"maxLength": _LONGEST, "format": ONE_LINE},
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
    "propertyNames": {"format": STORABLE},
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
            "maximum": LARGEST - 1,  # the write increments it
        },
        "consumer_type": {
            "type": "string",
            "pattern": names.PATTERN,
            "minLength": 1,
            "maxLength": names.LONGEST,
            "format": ONE_LINE,
        },
        "mappings": _MAPPINGS,
    },
    "required": ["allocations", "project_id", "user_id", "consumer_generation", "consumer_type"],
    "additionalProperties": False,
}

#: The body of ``POST /allocations``: bodies of a PUT by the UUID of the consumer.
POST_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {UUID: PUT_SCHEMA},
    "additionalProperties": False,
}

_TEXTS: Mapping[str, Any] = {"type": "object", "propertyNames": {"format": STORABLE}}

#: The body of ``POST /reshaper``; the allocations are as in a POST, but possibly empty. Of the
#: inventories, only the text is checked; Placement validates the rest.
RESHAPER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "allocations": {**POST_SCHEMA, "minProperties": 0},
        "inventories": {
            **_TEXTS,
            "additionalProperties": {
                **_TEXTS,
                "properties": {"inventories": {**_TEXTS, "additionalProperties": _TEXTS}},
            },
        },
    },
    "required": ["allocations"],
    "additionalProperties": False,
}

#: The same for a store, which has no inventories: those in the body must be empty.
RESHAPER_SCHEMA_OF_STORES: Mapping[str, Any] = {
    **RESHAPER_SCHEMA,
    "properties": {
        **RESHAPER_SCHEMA["properties"],
        "inventories": {
            "type": "object",
            "patternProperties": {
                UUID: {
                    "type": "object",
                    "properties": {
                        "resource_provider_generation": {"type": "integer"},
                        "inventories": {"type": "object", "maxProperties": 0},
                    },
                    "required": ["inventories"],
                    "additionalProperties": False,
                }
            },
            "additionalProperties": False,
        },
    },
}

#: The project and user in the query of ``GET /usages``.
OWNER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"project_id": _OWNER, "user_id": _OWNER},
    "required": ["project_id"],
}


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """A request to replace the allocations of one consumer.

    Without resources, the consumer is removed.
    """

    consumer: str
    project: str
    user: str
    type: ConsumerType
    generation: int | None
    resources: Mapping[str, Mapping[str, int]]
    """Amounts by provider and resource class."""


def put(consumer: str, body: object) -> Write:
    """Return the write in the body of ``PUT /allocations/{consumer}``.

    Raises InvalidAllocations, like all parsers of this module, with the path of the fault.
    """
    _check(body, PUT_SCHEMA)
    return _write(check_uuid("consumer", consumer), body, "$")


def post(body: object) -> list[Write]:
    """Return the writes in the body of ``POST /allocations``, one per consumer."""
    _check(body, POST_SCHEMA)
    return _writes(body)


def reshaper(body: object) -> list[Write]:
    """Return the writes in the body of ``POST /reshaper``, one per consumer."""
    _check(body, RESHAPER_SCHEMA)
    return _writes(_mapping(body)["allocations"], "$.allocations")


def reshaper_of_store(body: object) -> list[Write]:
    """Return the writes in the body of ``POST /reshaper``; raise an error for inventories in it."""
    _check(body, RESHAPER_SCHEMA_OF_STORES)
    _uuids("$.inventories: resource provider", _mapping(body).get("inventories", {}))
    return _writes(_mapping(body)["allocations"], "$.allocations")


def check_owner(project: object, user: object = None) -> None:
    """Raise BadRequest if no consumer can have this project or user."""
    owner = {"project_id": project} | ({} if user is None else {"user_id": user})
    _check(owner, OWNER_SCHEMA, errors.BadRequest)


def check_project_of_user(user: object) -> None:
    """Raise BadRequest for a user without a project, since usage is counted by project."""
    if user is not None:
        raise errors.BadRequest(
            f"user {user!r:.300} without a project: name the project of the user", user
        )


def check_type(kind: str | ConsumerType | None) -> ConsumerType | None:
    """Return the type to restrict a query to, or None for all types.

    None and ``"all"`` both mean all types. Raises InvalidConsumerType for other text that is not a
    type.
    """
    if kind is None or kind == names.ALL:
        return None
    return kind if isinstance(kind, ConsumerType) else ConsumerType(kind)


def check_uuid(what: str, text: object) -> str:
    """Return the UUID in the form in which the tables store it.

    Raises InvalidAllocations; ``what`` names the UUID's role in the message.
    """
    try:
        return uuids.read(str(text))
    except ValueError as error:
        raise errors.InvalidAllocations(f"{what}: {error}", text) from None


_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks("uuid")
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or uuids.canonical(value) is not None


@_FORMATS.checks(ONE_LINE)
def _is_one_line(value: object) -> bool:
    return not isinstance(value, str) or "\n" not in value


@_FORMATS.checks(STORABLE)
def _is_storable(value: object) -> bool:
    return not isinstance(value, str) or _UNSTORABLE.search(value) is None


def _is_object(_: object, value: object) -> bool:
    """Return whether the value is a JSON object: a dict whose keys are all strings."""
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


_extend: Any = jsonschema.validators.extend  # it has no type annotations
_Validator = _extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("object", _is_object),
)


def _check(
    body: object,
    schema: Mapping[str, Any],
    invalid: type[errors.BadRequest] = errors.InvalidAllocations,
) -> None:
    """Raise the error if the body violates the schema, with the path of the most relevant fault."""
    validator = _Validator(dict(schema), format_checker=_FORMATS)
    try:
        fault = jsonschema.exceptions.best_match(validator.iter_errors(body))
    except ValueError as error:  # the fault quotes a number with too many digits to print
        raise invalid(f"$: {error}") from None
    except RecursionError:
        raise invalid("$: nested too deeply") from None
    if fault is None:
        return
    message = f"{fault.message:.300}"
    if fault.validator == "format":
        message = f"{fault.instance!r:.300} {_MESSAGES[str(fault.validator_value)]}"
    elif fault.validator == "maxProperties":  # only inventories have it
        message = (
            f"expected {{}}, since the store has no inventories, got {fault.instance!r:.300}; "
            f"leave out 'inventories'"
        )
    raise invalid(f"{fault.json_path}: {message}", fault.instance)


def _mapping(body: Any) -> Mapping[str, Any]:
    """Return the body, typed as the mapping that the schema has found it to be."""
    found: Mapping[str, Any] = body
    return found


def _writes(body: object, place: str = "$") -> list[Write]:
    bodies = _mapping(body)
    consumers = _uuids(f"{place}: consumer", bodies)
    return [_write(consumers[text], bodies[text], f"{place}['{text}']") for text in bodies]


def _write(consumer: str, body: object, place: str) -> Write:
    checked = _mapping(body)
    providers = _uuids(f"{place}.allocations: resource provider", checked["allocations"])
    generation = checked["consumer_generation"]
    return Write(
        consumer,
        checked["project_id"],
        checked["user_id"],
        ConsumerType(checked["consumer_type"]),
        # JSON Schema counts 1.0 as an integer.
        None if generation is None else int(generation),
        {
            providers[text]: {name: int(amount) for name, amount in allocation["resources"].items()}
            for text, allocation in checked["allocations"].items()
        },
    )


def _uuids(what: str, texts: Iterable[str]) -> dict[str, str]:
    """Return the canonical UUID of each text; raise InvalidAllocations for a duplicate."""
    found = {text: check_uuid(what, text) for text in texts}
    for written, times in Counter(found.values()).most_common(1):
        if times > 1:
            raise errors.InvalidAllocations(f"{what} {written} appears twice", written)
    return found
