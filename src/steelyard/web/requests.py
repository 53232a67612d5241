"""Requests to HTTP services: their ids, their limits and their bodies in JSON."""

import json
import math
import uuid
from typing import Any, NoReturn

import falcon

from steelyard import errors
from steelyard.text import strict_json

REQUEST_ID = "X-Openstack-Request-Id"

JSON = "application/json"


def request_id() -> str:
    """Return a new id for a request."""
    return f"req-{uuid.uuid4()}"


def json_bytes(value: Any) -> bytes:
    """Return the value as JSON in ASCII."""
    return json.dumps(value).encode("ascii")


class Gate:
    """The middleware that gives each request an id, and rejects bad paths and large bodies."""

    def __init__(self, most: int) -> None:
        self._most = most

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.set_header(REQUEST_ID, request_id())
        try:
            req.env["PATH_INFO"].encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:
            raise falcon.HTTPBadRequest(description="invalid path: expected UTF-8") from None
        if req.path.startswith("//"):  # the router would accept it
            raise falcon.HTTPNotFound
        if (req.content_length or 0) > self._most:
            raise _too_large(self._most)


def _too_large(most: int) -> falcon.HTTPError:
    return falcon.HTTPContentTooLarge(
        description=f"request too large: expected at most {most} bytes"
    )


class Bodies:
    """A reader of requests' bodies, up to a greatest size in bytes."""

    def __init__(self, most: int) -> None:
        self._most = most

    def read(self, req: falcon.Request) -> Any:
        """Return the parsed body; raise BadRequest if it is not JSON."""
        _check_media_type(req.content_type or "")
        return _parsed(self._bytes(req))

    def _bytes(self, req: falcon.Request) -> bytes:
        length, rest = req.content_length, req.env["wsgi.input"]
        if length is not None:
            data: bytes = rest.read(length)
        elif req.env.get("wsgi.input_terminated"):
            data = rest.read(self._most + 1)
        elif req.get_header("Transfer-Encoding"):
            raise errors.BadRequest(
                "cannot read a chunked body: the server does not mark its end; send a "
                "Content-Length"
            )
        else:
            data = b""
        if len(data) > self._most:
            raise _too_large(self._most)
        return data


def _check_media_type(content_type: str) -> None:
    kind, parameters = falcon.parse_header(content_type)
    charset = parameters.get("charset", "utf-8")
    if kind.lower() != JSON or charset.lower() != "utf-8":
        raise falcon.HTTPUnsupportedMediaType(
            description=f"unsupported Content-Type {content_type!a:.100}: "
            f"expected application/json in UTF-8"
        )


def _parsed(data: bytes) -> object:
    try:
        return strict_json.loads(
            data.decode("utf-8"),
            parse_constant=_reject_number,
            parse_float=_number,
        )
    except ValueError as error:
        raise errors.BadRequest(f"invalid JSON in the body: {error}") from error


def _number(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _reject_number(text)


def _reject_number(text: str) -> NoReturn:
    raise ValueError(f"invalid number {text}")
