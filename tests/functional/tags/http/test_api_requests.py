"""Bodies, methods and routes of the HTTP API of instance tags."""

import sys
from typing import Any

import pytest

from steelyard.tags import TagService
from steelyard.tags.http import api
from support.tags import in_process_api
from support.tags.in_process_api import ALL, Client, there

pytestmark = pytest.mark.usefixtures("closed_databases")


def test_body_over_the_limit_is_a_413(service: TagService) -> None:
    ask = Client(api.make_application(service, in_process_api.configuration(max_body=1024)))
    kind = [("Content-Type", "application/json")]
    fits = b'{"tags": []}'.ljust(1024)
    for chunked in (False, True):
        assert ask("PUT", ALL, headers=kind, body=fits, chunked=chunked).status == 200
        answer = ask("PUT", ALL, headers=kind, body=fits + b" ", chunked=chunked)
        assert answer.status == 413
        assert answer.fault == ("overLimit", "request too large: expected at most 1024 bytes")
    for method, target in (("GET", ALL), ("DELETE", ALL), ("PUT", ALL + "/a"), ("GET", "/x")):
        assert ask(method, target, CONTENT_LENGTH="1025").status == 413
    assert there(ask) == []


def test_body_over_the_limit_is_not_read(service: TagService) -> None:
    ask = Client(api.make_application(service, in_process_api.configuration()))

    class Unread:
        def __getattr__(self, name: str) -> Any:
            if name in ("read", "readline", "readlines", "__iter__"):
                return self._fail
            raise AttributeError(name)

        def _fail(self, *_: Any) -> bytes:
            raise AssertionError("the body was read")

        readline = readlines = __iter__ = read = _fail

    environ: dict[str, Any] = {"wsgi.input": Unread(), "CONTENT_LENGTH": "99999999"}
    assert ask("PUT", ALL, **environ).status == 413


@pytest.mark.parametrize("length", ["-1", "x", "1.5", "1, 1"])
def test_invalid_content_length_is_a_400(application: Any, length: str) -> None:
    ask = Client(application, validated=False)
    assert ask("PUT", ALL, CONTENT_LENGTH=length).status == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b'{"tags": ["a"]',
        b'{"tags": ["a"]} x',
        b"{'tags': []}",
        b'\xef\xbb\xbf{"tags": []}',
        b'{"tags": ["\xff"]}',
        '{"tags": []}'.encode("utf-16"),
        b'{"tags": [NaN]}',
        b'{"tags": [-Infinity]}',
        b'{"tags": ["a"], "tags": []}',
        b'{"tags": [' + b"9" * 5000 + b"]}",
        b'{"tags": ["a\n"]}',
        b'{"tags": ["\\ud800"]}',
    ],
)
def test_invalid_json_is_a_400(ask: Client, body: bytes) -> None:
    answer = ask("PUT", ALL, headers=[("Content-Type", "application/json")], body=body)
    assert (answer.status, answer.fault[0]) == (400, "badRequest")
    assert there(ask) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, "unsupported Content-Type ''"),
        ([], "$: [] is not of type 'object'"),
        ("tags", "$: 'tags' is not of type 'object'"),
        (0, "$: 0 is not of type 'object'"),
        ({}, "$: 'tags' is a required property"),
        ({"tags": None}, "$.tags: None is not of type 'array'"),
        ({"tags": "ab"}, "$.tags: 'ab' is not of type 'array'"),
        ({"tags": {"a": 1}}, "$.tags: {'a': 1} is not of type 'array'"),
        ({"tags": [1]}, "invalid tag 1: expected text"),
        ({"tags": [True]}, "invalid tag True: expected text"),
        ({"tags": [None]}, "invalid tag None: expected text"),
        ({"tags": [["a"]]}, "invalid tag ['a']: expected text"),
        ({"tags": [], "owner": "system"}, "'owner' was unexpected"),
        ({"tags": ["x"] * 51}, "too many tags: an instance has at most 50, and 51 are given"),
        ({"tags": [], "\u202e": 1}, "('\\u202e' was unexpected)"),
    ],
)
def test_body_of_the_wrong_shape_is_explained(ask: Client, body: Any, message: str) -> None:
    answer = ask("PUT", ALL, body)
    assert answer.status == (415 if body is None else 400)
    assert message in answer.fault[1]
    assert len(answer.fault[1]) < 400


def test_deeply_nested_body_is_a_400(ask: Client) -> None:
    kind = [("Content-Type", "application/json")]
    limit = sys.getrecursionlimit()
    for depth in (10, 100, *range(limit - 200, limit + 10, 3), 30000):
        for left, right in (("[", "]"), ('{"a":', "}")):
            body = ('{"tags":' + left * depth + "1" + right * depth + "}").encode()[:65536]
            answer = ask("PUT", ALL, headers=kind, body=body)
            assert (answer.status, answer.fault[0]) == (400, "badRequest")


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin-1",
        "application/jsonx",
        "application/json, text/plain",
        "\xff",
    ],
)
def test_other_content_type_is_a_415(ask: Client, kind: str) -> None:
    answer = ask("PUT", ALL, headers=[("Content-Type", kind)], body=b'{"tags": ["a"]}')
    assert (answer.status, answer.fault[0]) == (415, "badMediaType")
    assert there(ask) == []


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON", 'application/json; charset="UTF-8"']
)
def test_json_content_type_is_accepted(ask: Client, kind: str) -> None:
    body = '{"tags": ["\N{GRINNING FACE}"]}'.encode()
    assert ask("PUT", ALL, headers=[("Content-Type", kind)], body=body).status == 200
    assert there(ask) == ["\N{GRINNING FACE}"]


def test_body_of_unknown_length_is_a_400(ask: Client) -> None:
    # Reading could block: there is no length, and the server does not mark the end of the input.
    kind = [("Content-Type", "application/json")]
    environ: dict[str, Any] = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    answer = ask("PUT", ALL, headers=kind, body=b'{"tags": []}', **environ)
    assert answer.status == 400
    assert "send a Content-Length" in answer.fault[1]
    assert "invalid JSON in the body" in ask("PUT", ALL, headers=kind, CONTENT_LENGTH="").fault[1]


def test_unneeded_body_is_ignored(ask: Client) -> None:
    assert ask("PUT", ALL + "/a", {"tags": ["b"]}).status == 201
    assert ask("DELETE", ALL, {"tags": ["b"]}).status == 204
    assert there(ask) == ["a"]


# Methods and routes.


@pytest.mark.parametrize("target", [ALL, ALL + "/a", ALL + "/x", "/openapi.json", "/x"])
def test_head_equals_get_without_the_body(ask: Client, target: str) -> None:
    ask("PUT", ALL + "/a")
    found, head = ask("GET", target), ask("HEAD", target)
    assert (head.status, head.body) == (found.status, b"")
    for headers in (found.headers, head.headers):
        del headers["x-openstack-request-id"]
    assert head.headers == found.headers


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("/servers", {"GET", "HEAD", "POST"}),
        ("/servers/mine", {"DELETE"}),
        (ALL, {"GET", "HEAD", "PUT", "DELETE"}),
        (ALL + "/a", {"GET", "HEAD", "PUT", "DELETE"}),
        ("/openapi.json", {"GET", "HEAD"}),
    ],
)
def test_unsupported_method_is_a_405_with_the_allowed_methods(
    application: Any, target: str, allowed: set[str]
) -> None:
    ask = Client(application, validated=False)
    options = ask("OPTIONS", target)
    assert (options.status, options.body) == (200, b"")
    assert set(options.headers["allow"].split(", ")) == allowed
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT"} - allowed:
        answer = ask(method, target)
        assert (answer.status, answer.fault[0]) == (405, "badMethod")
        assert set(answer.headers["allow"].split(", ")) == {*allowed, "OPTIONS"}


@pytest.mark.parametrize("method", ["BREW", "get", "GET\xff", "WEBSOCKET"])
def test_unknown_method_is_a_400(application: Any, method: str) -> None:
    ask = Client(application, validated=False)
    answer = ask(method, ALL)
    assert (answer.status, answer.fault[0]) == (400, "badRequest")


@pytest.mark.parametrize(
    "target",
    [
        "",
        "/",
        "/x",
        "/server",
        "//servers",
        f"/{ALL}",
        "/servers/mine/",
        "/servers/mine/tag",
        "/SERVERS/mine/tags",
        "/openapi.json/",
        "/v2/servers/mine/tags",
    ],
)
def test_unknown_path_is_a_404(ask: Client, target: str) -> None:
    for method in ("GET", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"):
        answer = ask(method, target)
        assert answer.status == 404, method
        assert answer.fault[0] == "itemNotFound"
        assert "content-type" in answer.headers


def test_query_string_is_ignored(ask: Client) -> None:
    assert ask("GET", ALL + "?owner=system&%FF&all_tenants=1").status == 200
