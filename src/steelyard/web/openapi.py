"""Parts of OpenAPI 3.1 descriptions, for all HTTP services."""

from collections.abc import Iterable, Mapping
from typing import Any

import steelyard
from steelyard.web import callers

JsonSchema = Mapping[str, Any]

PATH = "/openapi.json"

_JSON = "application/json"


def object_schema(
    optional: Mapping[str, JsonSchema] | None = None, /, **required: JsonSchema
) -> JsonSchema:
    """Return the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def description(
    title: str,
    about: str,
    paths: Mapping[str, Any],
    schemas: Mapping[str, JsonSchema],
    keys: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the description of a service. A request needs all ``keys`` together."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": steelyard.__version__,
            "description": about.strip(),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": keys},
        "security": [{name: [] for name in keys}],
    }


class Operations:
    """The descriptions of a service's operations, with their errors.

    ``reasons`` has the description of each error, and ``schemas`` the name of the schema of its
    body, by status.
    """

    def __init__(self, reasons: Mapping[int, str], schemas: Mapping[int, str]) -> None:
        self._reasons = reasons
        self._schemas = schemas

    def described(
        self,
        name: str,
        summary: str,
        answers: Mapping[int, Any],
        faults: Iterable[int],
        body: str | None = None,
    ) -> dict[str, Any]:
        """Return the description of an operation.

        ``faults`` has the statuses of its errors, and ``body`` is the name of the schema of its
        request's body.
        """
        errors = {
            status: response(self._reasons[status], self._schemas[status]) for status in faults
        }
        responses = {**answers, **errors}
        operation: dict[str, Any] = {
            "operationId": name,
            "summary": summary,
            "responses": {str(status): responses[status] for status in sorted(responses)},
        }
        if body is not None:
            operation["requestBody"] = {"required": True, "content": content(body)}
        return operation

    def of_description(self, *faults: int) -> dict[str, Any]:
        """Return the description of the path of the description, which needs no keys."""
        answer = {
            "description": "This description.",
            "content": {_JSON: {"schema": {"type": "object"}}},
        }
        found = self.described("describe", "Get this description", {200: answer}, faults)
        return {"get": {**found, "security": []}}


def response(
    text: str, body: str | None = None, headers: Mapping[str, JsonSchema] | None = None
) -> dict[str, Any]:
    """Return the description of a response; ``body`` names the schema of its body."""
    described: dict[str, Any] = {"description": text}
    if body is not None:
        described["content"] = content(body)
    if headers is not None:
        described["headers"] = {
            name: {"required": True, "schema": schema} for name, schema in headers.items()
        }
    return described


def content(name: str) -> dict[str, Any]:
    """Return the description of a body in JSON with the named schema."""
    return {_JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def in_path(name: str, schema: JsonSchema) -> dict[str, Any]:
    """Return the description of a parameter in the path."""
    return {"name": name, "in": "path", "required": True, "schema": schema}


def in_query(name: str, about: str, schema: JsonSchema) -> dict[str, Any]:
    """Return the description of an optional parameter in the query string."""
    return {"name": name, "in": "query", "description": about, "schema": schema}


def keys(trust: callers.Trust, **more: str) -> dict[str, Any]:
    """Return the security schemes of a service with this trust.

    ``more`` has further headers that trusted proxies set, by the word for their content.
    """
    if not trust.proxies:
        return {"token": _key("X-Auth-Token", "A token, which keystonemiddleware validates.")}
    headers = {"project": callers.PROJECT, "user": callers.USER, **more}
    return {
        word: _key(header, f"The caller's {word}, set by a trusted proxy.")
        for word, header in headers.items()
    }


def _key(header: str, about: str) -> dict[str, Any]:
    return {"type": "apiKey", "in": "header", "name": header, "description": about}
