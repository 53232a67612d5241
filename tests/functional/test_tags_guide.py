"""The requests and answers in the guide to instance tags, as the application has them."""

import http.client
import json
import pathlib
import re
import textwrap
from typing import Any

import pytest
from tag_servers import served, tag_service, trusting

pytestmark = pytest.mark.documentation

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "instance-tags.rst"
_BLOCK = re.compile(r"^\.\. code-block:: http\n((?:\n| +.*\n)+)", re.MULTILINE)


def messages() -> list[tuple[str, dict[str, str], Any]]:
    """The first line of each, its headers, and its body."""
    found = []
    for block in _BLOCK.findall(GUIDE.read_text()):
        head, _, body = textwrap.dedent(block).strip().partition("\n\n")
        first, *headers = head.splitlines()
        fields = dict(line.split(": ", 1) for line in headers)
        found.append((first, fields, json.loads(body) if body else None))
    return found


def sorted_tags(body: Any) -> Any:
    """The order of tags means nothing."""
    if isinstance(body, dict):
        return {
            key: sorted(value) if key == "tags" else sorted_tags(value)
            for key, value in body.items()
        }
    return body


def test_the_answers_are_those_of_the_guide(tmp_path: Any) -> None:
    service = tag_service(tmp_path)
    said = messages()
    assert len(said) >= 10
    with served(trusting(service)) as url:
        for (first, headers, body), answer in zip(said[::2], said[1::2], strict=True):
            method, path, _ = first.split()
            connection = http.client.HTTPConnection(url.removeprefix("http://"))
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, headers)
            got = connection.getresponse()
            data = got.read()
            connection.close()
            _, status, reason = answer[0].split(" ", 2)
            assert (got.status, got.reason) == (int(status), reason), first
            assert {name: got.headers[name] for name in answer[1]} == answer[1], first
            assert sorted_tags(json.loads(data) if data else None) == sorted_tags(answer[2]), first
            service.poll()
