"""The requests and responses in code blocks of the documentation, sent to a server."""

import http.client
import json
import pathlib
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

_BLOCK = re.compile(r"^\.\. code-block:: http\n((?:\n| +.*\n)+)", re.MULTILINE)


class Message(NamedTuple):
    """The first line, the headers and the body of a request or a response."""

    first: str
    headers: dict[str, str]
    body: Any


def exchanges(page: pathlib.Path) -> Iterator[tuple[Message, Message]]:
    """Yield each request in the page with the response that follows it."""
    found = [_parsed(block) for block in _BLOCK.findall(page.read_text())]
    return zip(found[::2], found[1::2], strict=True)


def _parsed(block: str) -> Message:
    head, _, body = textwrap.dedent(block).strip().partition("\n\n")
    first, *headers = head.splitlines()
    fields = dict(line.split(": ", 1) for line in headers)
    return Message(first, fields, json.loads(body) if body else None)


def checked(url: str, request: Message, response: Message) -> Any:
    """Send the request; check the status and headers of the response, and return its body."""
    method, path, _ = request.first.split()
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    content = None if request.body is None else json.dumps(request.body)
    connection.request(method, path, content, request.headers)
    got = connection.getresponse()
    data = got.read()
    connection.close()
    _, status, reason = response.first.split(" ", 2)
    assert (got.status, got.reason) == (int(status), reason), (request.first, data)
    assert {name: got.headers[name] for name in response.headers} == response.headers, request
    return json.loads(data) if data else None
