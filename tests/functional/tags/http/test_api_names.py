"""Names of tags and servers in the HTTP API of instance tags, in its answers and in its log."""

import logging
import urllib.parse
from typing import Any

import pytest

from steelyard import errors
from steelyard.tags import TagService
from support.tags.in_process_api import (
    ALL,
    MINE,
    THEIRS,
    Client,
    Q,
    Troubled,
    active,
    quoted,
    there,
)

pytestmark = pytest.mark.usefixtures("closed_databases")

HOSTILE = {
    "SQL": "'; DROP TABLE tags; --",
    "LIKE": "%",
    "shell": "$(reboot) `id` | & > ~",
    "markup": "<script>alert(1)</script>".replace("/", "|"),
    "emoji": "\N{GRINNING FACE}\N{ZERO WIDTH JOINER}\N{BLACK HEART SUIT}\N{VARIATION SELECTOR-16}",
    "combining": "e\N{COMBINING ACUTE ACCENT}",
    "composed": "\N{LATIN SMALL LETTER E WITH ACUTE}",
    "right to left": "\N{RIGHT-TO-LEFT OVERRIDE}gat",
    "line separator": "a\N{LINE SEPARATOR}b",
    "no break": "\N{NO-BREAK SPACE}a",
    "dot": ".",
    "dots": "..",
    "a route": "tags",
    "encoded slash": "a%2Fb",
    "encoded twice": "%252F",
    "question": "a?b=c#d;e",
    "plus and space": "a+b c ",
    "format": "{0.__class__} %s %(asctime)s",
    "the prefix": "cyclades:system:x",
    "noncharacter": "\uffff",
    "60": "x" * 60,
}
INVALID = {
    "empty": "",
    "61": "x" * 61,
    "slash": "a/b",
    "path": "../../theirs/tags/a",
    "comma": "a,b",
    "line feed": "a\nb",
    "header": "a\r\nX-Project-Id: q",
    "nul": "a\0",
    "escape": "\x1b[2J",
    "next line": "\x85",
    "white": " \N{NO-BREAK SPACE}\N{IDEOGRAPHIC SPACE}",
    "too long when encoded": "\N{GRINNING FACE}" * 12,
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_unusual_tag_name_is_kept_unchanged(
    service: TagService, ask: Client, system: Client, name: str
) -> None:
    active(service, ask, "a", "b")
    active(service, system, name)
    added = ask("PUT", quoted(name))
    assert added.status == 201
    assert added.headers["location"].isascii()
    assert added.headers["location"] == quoted(name)
    service.jobs.poll()
    assert ask("GET", added.headers["location"]).headers["tag-status"] == "ACTIVE"
    assert there(ask) == sorted(["a", "b", name])
    assert ask("PUT", ALL, {"tags": [name, "a"]}).status == 200
    assert there(ask) == sorted(["a", name])
    assert ask("DELETE", quoted(name)).status == 204
    assert there(ask) == ["a"]
    assert there(system) == [name]


@pytest.mark.parametrize("name", INVALID.values(), ids=INVALID)
def test_invalid_tag_name_is_a_400(
    service: TagService, ask: Client, application: Any, name: str
) -> None:
    active(service, ask, "a", "b")
    Client(application, Q)("PUT", f"/servers/{THEIRS}/tags/a")
    for answer in (
        ask("PUT", quoted(name)),
        ask("PUT", ALL, {"tags": ["a", name]}),
        ask("POST", "/servers", {"server": {"name": "vm-new", "tags": [name]}}),
    ):
        assert (answer.status, answer.fault[0]) == (400, "badRequest")
        assert answer.body.isascii()
    for method in ("GET", "DELETE"):
        assert ask(method, quoted(name)).status in (400, 404)
    assert there(ask) == ["a", "b"]


@pytest.mark.parametrize("name", ["\ud800", "a\udfff"])
def test_lone_surrogate_in_a_name_is_a_400(ask: Client, name: str) -> None:
    assert ask("PUT", ALL, {"tags": [name]}).fault[0] == "badRequest"
    assert ask("POST", "/servers", {"server": {"name": name}}).fault[0] == "badRequest"


@pytest.mark.parametrize("path", ["%FF", "a%C3", "%C0%AF", "%ED%A0%80", "%F4%90%80%80"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_path_that_is_not_utf_8_is_a_400(ask: Client, method: str, path: str) -> None:
    assert ask(method, f"{ALL}/{path}").fault == ("badRequest", "invalid path: expected UTF-8")
    assert ask(method, f"/servers/{path}/tags/a").fault == (
        "badRequest",
        "invalid path: expected UTF-8",
    )
    assert there(ask) == []


def test_slash_in_a_tag_name_is_a_400(service: TagService, ask: Client, application: Any) -> None:
    active(service, ask, "a")
    for tail in ("/a/", "//a", "/a/b", "/a%2Fb", "/..%2F..%2Ftheirs%2Ftags%2Fa", "/", "//"):
        for method in ("GET", "PUT", "DELETE"):
            assert ask(method, ALL + tail).status == 400, (method, tail)
    assert there(ask) == ["a"]


def test_normalized_dot_segments_change_nothing(service: TagService, ask: Client) -> None:
    # Clients may normalize /tags/.. to the first path and /tags/. to the second.
    active(service, ask, "a")
    for method in ("GET", "PUT", "DELETE"):
        assert ask(method, f"/servers/{MINE}/").status == 404
        assert ask(method, ALL + "/").status == 400
    assert there(ask) == ["a"]


def test_location_includes_the_script_name(ask: Client) -> None:
    answer = ask("PUT", ALL + "/a%20b", SCRIPT_NAME="/tags api")
    assert answer.headers["location"] == f"/tags%20api{ALL}/a%20b"


@pytest.mark.parametrize(
    "server",
    [
        {"name": ""},
        {"name": "x" * 256},
        {"name": "-vm"},
        {"name": "../vm"},
        {"name": "vm\n"},
        {"name": "vm\r\nX: y"},
        {"name": "v m"},
        {"name": "\N{FULLWIDTH LATIN SMALL LETTER V}m"},
        {"name": "vm", "id": ""},
        {"name": "vm", "id": "a/b"},
        {"name": "vm", "id": "x" * 65},
        {"name": "vm", "id": "id\n"},
        {"name": "vm", "id": None},
        {"name": "vm", "tags": None},
        {"name": "vm", "tags": "ab"},
        {"name": "vm", "tags": {}},
        {"name": "vm", "flavorRef": "1"},
        {"name": 1},
        {"tags": []},
        None,
        [],
    ],
)
def test_invalid_server_body_is_a_400(service: TagService, ask: Client, server: Any) -> None:
    assert ask("POST", "/servers", {"server": server}).fault[0] == "badRequest"
    assert len(service.store.instances()) == 2


def test_log_has_neither_raw_names_nor_credentials(
    troubled: Any, backend: Troubled, caplog: Any
) -> None:
    service, ask = troubled
    caplog.set_level(logging.DEBUG)
    secret = [("X-Auth-Token", "hunter2"), ("Authorization", "Basic aHVudGVyMg==")]
    for trouble in (None, errors.BackendRefused("no"), OSError("gone"), AssertionError("bug")):
        backend.trouble = None
        ask("DELETE", ALL)
        service.jobs.poll()
        backend.trouble = trouble
        for name in {**HOSTILE, **INVALID}.values():
            for method in ("GET", "PUT", "DELETE"):
                ask(method, quoted(name), headers=secret)
            ask("PUT", ALL, {"tags": [name]}, headers=secret)
            ask("POST", "/servers", {"server": {"name": name}}, headers=secret)
            ask("GET", f"/servers/{urllib.parse.quote(name, safe='')}/tags", headers=secret)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) > 50
    for line in lines:
        assert line.isascii(), line
        assert line.isprintable(), line
        assert "unter2" not in line
        assert "aHVudGVy" not in line
