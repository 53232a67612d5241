"""A client that calls a WSGI application like a server, without a network."""

import contextlib
import dataclasses
import io
import json
import urllib.parse
import wsgiref.util
import wsgiref.validate
from collections.abc import Iterable
from typing import Any

Header = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def fault(self) -> tuple[str, str]:
        """The name of the error in OpenStack, and its message."""
        ((name, fault),) = self.json.items()
        assert fault["code"] == self.status
        return name, fault["message"]

    @property
    def error(self) -> dict[str, Any]:
        """The error in the newer form of OpenStack, which Placement has."""
        (error,) = self.json["errors"]
        found: dict[str, Any] = error
        return found


class WsgiClient:
    """A client of an application, with these headers and this address.

    WSGI is validated on both sides, unless ``validated`` is False.
    """

    def __init__(
        self,
        application: Any,
        headers: Iterable[Header],
        address: str,
        *,
        validated: bool = True,
    ) -> None:
        self._application = wsgiref.validate.validator(application) if validated else application
        self._headers = tuple(headers)
        self._address = address

    def __call__(
        self,
        method: str,
        target: str,
        said: object = None,
        *,
        headers: Iterable[Header] = (),
        body: bytes | None = None,
        chunked: bool = False,
        **environ: Any,
    ) -> Answer:
        """Send ``said`` as JSON to the target, percent-decoded as by servers."""
        data = b"" if body is None else body
        sent = [*self._headers, *headers]
        if said is not None:
            data = json.dumps(said).encode()
            sent.append(("Content-Type", "application/json"))
        path, _, query = target.partition("?")
        env: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": urllib.parse.unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "REMOTE_ADDR": self._address,
            "wsgi.input": io.BytesIO(data),
            **_environ(sent),
        }
        if chunked:
            env |= {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
        elif said is not None or body is not None:
            env["CONTENT_LENGTH"] = str(len(data))
        return self._ask(env | environ)

    def _ask(self, env: dict[str, Any]) -> Answer:
        wsgiref.util.setup_testing_defaults(env)
        started: list[tuple[str, list[Header]]] = []

        def start_response(status: str, headers: list[Header], exc_info: Any = None) -> Any:
            started.append((status, headers))
            return io.BytesIO().write

        answer: Any = self._application(env, start_response)
        with contextlib.closing(answer) if hasattr(answer, "close") else contextlib.nullcontext():
            body = b"".join(answer)
        ((status, headers),) = started
        return Answer(int(status[:3]), {name.lower(): value for name, value in headers}, body)


def _environ(headers: Iterable[Header]) -> dict[str, str]:
    """Return the headers as servers pass them, with repeated ones joined by commas."""
    env: dict[str, str] = {}
    for name, value in headers:
        key = name.upper().replace("-", "_")
        key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
        env[key] = f"{env[key]}, {value}" if key in env else value
    return env
