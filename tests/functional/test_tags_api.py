"""The HTTP API of instance tags: every answer to every question, and to those who should not ask."""

import logging
import sys
import threading
import urllib.parse
from collections.abc import Sequence
from typing import Any

import pytest
import tag_apis
from tag_apis import MINE, PROXY, STRANGER, SYSTEM, SYSTEM_PROXY, THEIRS, Client, P, Q

from steelyard import errors
from steelyard.tags import TagService, TagStore, api
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.callers import Trust
from steelyard.tags.service import Caller

pytestmark = pytest.mark.usefixtures("closed_databases")

ALL = f"/servers/{MINE}/tags"
ROUTES = [
    ("GET", ""),
    ("PUT", ""),
    ("DELETE", ""),
    ("GET", "/a"),
    ("PUT", "/a"),
    ("DELETE", "/a"),
    ("HEAD", ""),
    ("HEAD", "/a"),
]
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
REFUSED = {
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


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/tags.db"


@pytest.fixture
def service(url: str) -> TagService:
    return tag_apis.service(url, clashes="high, low")


@pytest.fixture
def application(service: TagService) -> Any:
    return api.make_application(service, tag_apis.configuration())


@pytest.fixture
def ask(application: Any) -> Client:
    return Client(application)


@pytest.fixture
def system(application: Any) -> Client:
    return Client(application, (*P, SYSTEM), SYSTEM_PROXY)


def there(ask: Client) -> list[str]:
    """The tags that are there, in an order of ours."""
    found = ask("GET", ALL).json
    assert list(found["statuses"]) == found["tags"]
    return sorted(found["tags"])


def quoted(name: str) -> str:
    return f"{ALL}/{urllib.parse.quote(name, safe='')}"


def active(service: TagService, ask: Client, *names: str) -> None:
    assert ask("PUT", ALL, {"tags": names}).status == 200
    service.poll()


# What is asked for.


def test_a_tag_from_its_beginning_to_its_end(service: TagService, ask: Client) -> None:
    assert ask("GET", ALL + "/a").fault == ("itemNotFound", "there is no tag 'a'")
    added = ask("PUT", ALL + "/a")
    assert (added.status, added.headers["location"], added.body) == (201, ALL + "/a", b"")
    assert ask("PUT", ALL + "/a").status == 204
    found = ask("GET", ALL + "/a")
    assert (found.status, found.headers["tag-status"], found.body) == (204, "PENDADD", b"")
    assert "content-type" not in found.headers
    assert ask("GET", ALL).json == {"tags": ["a"], "statuses": {"a": "PENDADD"}}
    name, said = ask("DELETE", ALL + "/a").fault
    assert (name, "still being added" in said) == ("conflictingRequest", True)
    service.poll()
    assert ask("GET", ALL + "/a").headers["tag-status"] == "ACTIVE"
    assert ask("DELETE", ALL + "/a").status == 204
    assert ask("DELETE", ALL + "/a").fault[0] == "itemNotFound"
    assert ask("GET", ALL).json == {"tags": [], "statuses": {}}


def test_all_tags_are_replaced_and_deleted(service: TagService, ask: Client) -> None:
    active(service, ask, "a", "b")
    answer = ask("PUT", ALL, {"tags": ["b", "c", "c"]})
    assert (answer.status, answer.json["statuses"]) == (200, {"b": "ACTIVE", "c": "PENDADD"})
    assert there(ask) == ["b", "c"]
    deleted = ask("DELETE", ALL)
    assert (deleted.status, deleted.body) == (204, b"")
    assert there(ask) == ["c"]  # which was still being added
    service.poll()
    ask("DELETE", ALL)
    assert there(ask) == []


def test_a_server_is_created_with_its_tags(service: TagService, ask: Client) -> None:
    asked = {"name": "vm-new", "id": "new", "tags": ["a", "b", "a"]}
    answer = ask("POST", "/servers", {"server": asked})
    made = answer.json["server"]
    assert (answer.status, sorted(made.pop("tags"))) == (202, ["a", "b"])
    statuses = {"a": "PENDADD", "b": "PENDADD"}
    assert made == {"id": "new", "name": "vm-new", "statuses": statuses}
    service.poll()
    assert ask("GET", "/servers/new/tags/a").headers["tag-status"] == "ACTIVE"
    for same in ({**asked, "id": "other"}, {**asked, "name": "vm-other"}):
        assert ask("POST", "/servers", {"server": same}).fault[0] == "conflictingRequest"


def test_a_server_needs_no_id_and_no_tags(ask: Client) -> None:
    made = ask("POST", "/servers", {"server": {"name": "vm-new"}}).json["server"]
    assert (made["tags"], made["statuses"]) == ([], {})
    assert ask("GET", f"/servers/{made['id']}/tags").status == 200
    assert ask("POST", "/servers", {"server": {"name": "vm-mine-2", "id": MINE}}).status == 409


def test_tags_that_do_not_go_together(service: TagService, ask: Client) -> None:
    name, said = ask("PUT", ALL, {"tags": ["a", "high", "low"]}).fault
    assert (name, "do not go together" in said) == ("badRequest", True)
    assert there(ask) == []
    asked = {"server": {"name": "vm-new", "id": "new", "tags": ["high", "low"]}}
    assert ask("POST", "/servers", asked).status == 400
    assert ask("GET", "/servers/new/tags").status == 404
    assert ask("PUT", ALL + "/high").status == 201
    for answer in (ask("PUT", ALL + "/low"), ask("PUT", ALL, {"tags": ["low"]})):
        name, said = answer.fault
        assert (name, "'high', which is there" in said) == ("conflictingRequest", True)
    service.poll()
    assert ask("PUT", ALL, {"tags": ["low"]}).status == 200  # which takes the other one away


def test_there_are_at_most_fifty(service: TagService, ask: Client) -> None:
    fifty = [f"tag {number}" for number in range(50)]
    assert ask("PUT", ALL, {"tags": [*fifty, "x"]}).fault[0] == "badRequest"
    assert ask("PUT", ALL, {"tags": fifty}).status == 200
    assert ask("PUT", ALL + "/tag%200").status == 204
    assert ask("PUT", ALL + "/x").fault == (
        "badRequest",
        "an instance has at most 50 tags, and would have 51",
    )
    assert ask("PUT", ALL, {"tags": ["x"]}).status == 400  # the fifty are still being added
    service.poll()
    assert ask("PUT", ALL, {"tags": ["x"]}).status == 200


def test_the_system_has_tags_of_its_own_and_no_limit(
    service: TagService, ask: Client, system: Client
) -> None:
    many = [f"tag {number}" for number in range(60)]
    assert system("PUT", ALL, {"tags": many}).status == 200
    service.poll()
    assert there(system) == sorted(many)
    assert there(ask) == []
    assert ask("GET", ALL + "/tag%201").status == 404
    assert ask("DELETE", ALL + "/tag%201").status == 404
    assert ask("DELETE", ALL).status == 204
    assert ask("PUT", ALL + "/tag%201").status == 201
    assert system("POST", "/servers", {"server": {"name": "vm-s", "tags": many}}).status == 202
    assert there(system) == sorted(many)


# The backend.


class Troubled(MemoryBackend):
    """Answers as it is told to."""

    trouble: Exception | None = None

    def _submit(self, work: Any) -> int:
        if self.trouble is not None:
            raise self.trouble
        return super()._submit(work)

    def batches(self, instance: str, tags: Sequence[str]) -> list[Sequence[str]]:
        if isinstance(self.trouble, AssertionError):
            raise self.trouble
        return super().batches(instance, tags)


SECRET = "https://admin:hunter2@ganeti.internal"


@pytest.fixture
def backend() -> Troubled:
    return Troubled()


@pytest.fixture
def troubled(url: str, backend: Troubled) -> tuple[TagService, Client]:
    made = tag_apis.service(url, backend)
    client = Client(api.make_application(made, tag_apis.configuration()))
    active(made, client, "old")
    return made, client


CHANGES: list[tuple[str, str, object]] = [
    ("PUT", ALL + "/new", None),
    ("PUT", ALL, {"tags": ["new"]}),
    ("DELETE", ALL + "/old", None),
    ("DELETE", ALL, None),
    ("POST", "/servers", {"server": {"name": "vm-new", "id": "new"}}),
]


@pytest.mark.parametrize("change", CHANGES, ids=[f"{each[0]} {each[1]}" for each in CHANGES])
def test_a_refusal_is_a_502_and_changes_nothing(
    troubled: Any, backend: Troubled, caplog: Any, change: Any
) -> None:
    _, ask = troubled
    before = ask("GET", ALL).json
    backend.trouble = errors.BackendRefused(f"drained at {SECRET}")
    answer = ask(*change)
    name, said = answer.fault
    assert (answer.status, name) == (502, "badGateway")
    assert "the backend has refused" in said
    assert answer.headers["x-openstack-request-id"] in said
    assert "ganeti" not in said
    assert "ganeti" in caplog.text  # where the operator sees it, under the same id
    assert answer.headers["x-openstack-request-id"] in caplog.text
    assert ask("GET", ALL).json == before
    assert ask("GET", "/servers/new/tags").status == 404


@pytest.mark.parametrize("change", CHANGES, ids=[f"{each[0]} {each[1]}" for each in CHANGES])
@pytest.mark.parametrize(
    "trouble", [errors.OutcomeUnknown(f"timed out: {SECRET}"), ConnectionResetError(SECRET)]
)
def test_silence_is_a_503_and_is_pending(
    troubled: Any, backend: Troubled, trouble: Exception, change: Any
) -> None:
    service, ask = troubled
    backend.trouble = trouble
    answer = ask(*change)
    name, said = answer.fault
    assert (answer.status, name) == (503, "serviceUnavailable")
    assert "may do yet what it was asked" in said
    assert "ganeti" not in said
    assert len(service.store.pending()) == 1


def test_what_nobody_foresaw_is_a_500_that_shows_nothing(
    troubled: Any, backend: Troubled, caplog: Any
) -> None:
    _, ask = troubled
    backend.trouble = AssertionError(SECRET)
    answer = ask("PUT", ALL + "/new")
    name, said = answer.fault
    assert (answer.status, name) == (500, "computeFault")
    assert "ganeti" not in answer.body.decode()
    assert answer.headers["x-openstack-request-id"] in said
    assert "Traceback" in caplog.text
    backend.trouble = None
    assert ask("PUT", ALL + "/new").status == 201


def test_an_error_of_ours_that_is_about_the_inside_is_one_too(
    troubled: Any, backend: Troubled, monkeypatch: Any
) -> None:
    _, ask = troubled
    monkeypatch.setattr(TagStore, "tags", property(_broken))
    assert ask("GET", ALL).fault[0] == "computeFault"


def _broken(_: object) -> None:
    raise errors.PluginError(SECRET)


def test_a_database_without_tables_is_a_503(url: str, caplog: Any) -> None:
    bare = TagService(TagStore(url), MemoryBackend())
    answer = Client(api.make_application(bare, tag_apis.configuration()))("GET", ALL)
    assert (answer.status, answer.fault[0]) == (503, "serviceUnavailable")
    assert "no such table" not in answer.fault[1]
    assert "no such table" in caplog.text


# Other projects.


@pytest.mark.parametrize(("method", "tail"), ROUTES)
def test_a_server_of_another_project_is_not_there(
    service: TagService, application: Any, ask: Client, method: str, tail: str
) -> None:
    theirs = Client(application, Q)
    active_there = theirs("PUT", f"/servers/{THEIRS}/tags", {"tags": ["a", "b"]}).json
    said = {"tags": ["c"]} if (method, tail) == ("PUT", "") else None
    answer = ask(method, f"/servers/{THEIRS}/tags{tail}", said)
    absent = ask(method, f"/servers/{THEIRS}x/tags{tail}", said)
    assert (answer.status, absent.status) == (404, 404)
    assert answer.body == absent.body.replace(b"theirsx", b"theirs")
    assert theirs("GET", f"/servers/{THEIRS}/tags").json == active_there


def test_nor_is_it_for_the_system_in_the_name_of_another_project(system: Client) -> None:
    assert system("GET", f"/servers/{THEIRS}/tags").status == 404


@pytest.mark.parametrize(
    "server", ["", " ", "..", ".", "%00", "%0d%0a", "'%20OR%201=1", "x" * 65, "%F0%9F%98%80", "%"]
)
@pytest.mark.parametrize(("method", "tail"), ROUTES)
def test_ids_that_are_none(ask: Client, server: str, method: str, tail: str) -> None:
    said = {"tags": ["c"]} if (method, tail) == ("PUT", "") else None
    assert ask(method, f"/servers/{server}/tags{tail}", said).status == 404


# Names.


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_name_is_kept_as_it_is(
    service: TagService, ask: Client, system: Client, name: str
) -> None:
    active(service, ask, "a", "b")
    active(service, system, name)
    added = ask("PUT", quoted(name))
    assert added.status == 201
    assert added.headers["location"].isascii()
    assert added.headers["location"] == quoted(name)
    service.poll()
    assert ask("GET", added.headers["location"]).headers["tag-status"] == "ACTIVE"
    assert there(ask) == sorted(["a", "b", name])
    assert ask("PUT", ALL, {"tags": [name, "a"]}).status == 200
    assert there(ask) == sorted(["a", name])
    assert ask("DELETE", quoted(name)).status == 204
    assert there(ask) == ["a"]
    assert there(system) == [name]


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
def test_a_name_that_is_none(service: TagService, ask: Client, application: Any, name: str) -> None:
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
def test_a_lone_surrogate_is_no_name(ask: Client, name: str) -> None:
    assert ask("PUT", ALL, {"tags": [name]}).fault[0] == "badRequest"
    assert ask("POST", "/servers", {"server": {"name": name}}).fault[0] == "badRequest"


@pytest.mark.parametrize("path", ["%FF", "a%C3", "%C0%AF", "%ED%A0%80", "%F4%90%80%80"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_path_that_is_not_utf_8(ask: Client, method: str, path: str) -> None:
    assert ask(method, f"{ALL}/{path}").fault == ("badRequest", "the path is not UTF-8")
    assert ask(method, f"/servers/{path}/tags/a").fault == ("badRequest", "the path is not UTF-8")
    assert there(ask) == []


def test_a_slash_in_a_name_leads_nowhere_else(
    service: TagService, ask: Client, application: Any
) -> None:
    active(service, ask, "a")
    for tail in ("/a/", "//a", "/a/b", "/a%2Fb", "/..%2F..%2Ftheirs%2Ftags%2Fa", "/", "//"):
        for method in ("GET", "PUT", "DELETE"):
            assert ask(method, ALL + tail).status == 400, (method, tail)
    assert there(ask) == ["a"]


def test_what_is_left_of_dots_does_nothing(service: TagService, ask: Client) -> None:
    """Clients may make the former of /tags/.. and the latter of /tags/."""
    active(service, ask, "a")
    for method in ("GET", "PUT", "DELETE"):
        assert ask(method, f"/servers/{MINE}/").status == 404
        assert ask(method, ALL + "/").status == 400
    assert there(ask) == ["a"]


def test_a_prefix_that_a_front_takes_off_is_in_the_location(ask: Client) -> None:
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
def test_a_server_that_cannot_be(service: TagService, ask: Client, server: Any) -> None:
    assert ask("POST", "/servers", {"server": server}).fault[0] == "badRequest"
    assert len(service.store.instances()) == 2


# Who calls.


def test_nobody_is_believed_but_a_proxy(application: Any) -> None:
    for address in (
        STRANGER,
        "",
        "localhost",
        "10.1.0.1",
        "::ffff:192.0.2.1",
        "10.0.0.1, 10.0.0.2",
    ):
        answer = Client(application, P, address)("GET", ALL)
        assert (answer.status, answer.fault[0]) == (401, "unauthorized")
        assert answer.headers["www-authenticate"]
    assert Client(application, P, "::ffff:10.0.0.1")("GET", ALL).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Identity-Status", "Confirmed")],
        [("X-Identity-Status", "Confirmed"), ("X-Auth-Token", "t"), ("X-Roles", "admin")],
        [("Keystone.Token-Auth", "x")],
        [("keystone.token_auth", "x")],
        [("X-Forwarded-For", PROXY)],
        [("Forwarded", f"for={PROXY}")],
        [("Remote-Addr", PROXY)],
        [("X-Real-Ip", PROXY)],
    ],
)
def test_no_header_makes_a_stranger_believed(application: Any, headers: Any) -> None:
    ask = Client(application, (*P, *headers), STRANGER)
    assert ask("GET", ALL).fault[0] == "unauthorized"


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ([], "X-Project-Id is missing or empty"),
        ([P[0]], "X-User-Id is missing or empty"),
        ([P[1]], "X-Project-Id is missing or empty"),
        ([("X-Project-Id", ""), P[1]], "X-Project-Id is missing or empty"),
        ([P[0], ("X-User-Id", " ")], "X-User-Id is ' '; it is given once"),
        ([*P, ("X-Project-Id", "q")], "X-Project-Id is 'p, q'; it is given once"),
        ([*P, *P], "X-Project-Id is 'p, p'; it is given once"),
        ([("X-Project-Id", "p,q"), P[1]], "X-Project-Id is 'p,q'"),
        ([("X-Project-Id", "p" * 256), P[1]], "1 to 255 characters"),
        ([("X-Project-Id", "p\xe9"), P[1]], "X-Project-Id is 'p\\xe9'"),
        ([("X-Project-Id", "p\xc3\xa9"), P[1]], "X-Project-Id is 'p\\xc3\\xa9'"),
        ([("X-Project-Id", "p\x00"), P[1]], "X-Project-Id is 'p\\x00'"),
        ([("X-Project-Id", "p\n"), P[1]], "X-Project-Id is 'p\\n'"),
        ([("X-Project-Id", "p\x7f"), P[1]], "X-Project-Id is 'p\\x7f'"),
    ],
)
def test_who_calls_is_said_clearly(application: Any, headers: Any, said: str) -> None:
    name, message = Client(application, headers)("GET", ALL).fault
    assert name == "unauthorized"
    assert said in message


def test_long_ids_and_the_user_as_the_owner_are_taken(application: Any) -> None:
    long = ("X-Project-Id", "!" * 255)
    assert Client(application, [long, P[1]])("GET", ALL).status == 404
    assert Client(application, [*P, ("X-Tag-Owner", "user")])("GET", ALL).status == 200


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        (PROXY, "system"),
        (PROXY, ""),
        (PROXY, "cyclades:system:"),
        (SYSTEM_PROXY, "System"),
        (SYSTEM_PROXY, "system "),
        (SYSTEM_PROXY, "system, user"),
        (SYSTEM_PROXY, "\xff"),
    ],
)
def test_not_everybody_is_the_system(application: Any, address: str, owner: str) -> None:
    ask = Client(application, [*P, ("X-Tag-Owner", owner)], address)
    name, message = ask("GET", ALL).fault
    assert name == "unauthorized"
    assert message.startswith("X-Tag-Owner is ")
    assert message.isascii()


def test_a_proxy_of_the_systems_is_for_users_too(application: Any, system: Client) -> None:
    assert system("PUT", ALL + "/s").status == 201
    assert there(Client(application, P, SYSTEM_PROXY)) == []


def test_the_middleware_is_believed_alone(application: Any) -> None:
    """An object in the environment, not a header; where it is, addresses do not matter."""
    confirmed = ("X-Identity-Status", "Confirmed")
    passed: dict[str, Any] = {"keystone.token_auth": object()}
    for address in (STRANGER, PROXY, SYSTEM_PROXY):
        ask = Client(application, P, address)
        assert ask("GET", ALL, headers=[confirmed], **passed).status == 200
        assert ask("GET", ALL, **passed).status == 401
        for status in ("Invalid", "confirmed", "Confirmed, Confirmed"):
            answer = ask("GET", ALL, headers=[("X-Identity-Status", status)], **passed)
            assert answer.fault == ("unauthorized", "the token is missing or not valid")
        answer = ask("GET", ALL, headers=[confirmed, SYSTEM], **passed)
        assert answer.fault[0] == "unauthorized"
        unscoped = Client(application, [P[1], confirmed], address)
        assert unscoped("GET", ALL, **passed).fault[0] == "unauthorized"


@pytest.mark.parametrize(("method", "tail"), ROUTES)
def test_every_route_asks_who_calls(application: Any, method: str, tail: str) -> None:
    ask = Client(application, P, STRANGER)
    assert ask(method, ALL + tail, {"tags": []}).status == 401
    assert ask("POST", "/servers", {"server": {"name": "vm-new"}}).status == 401


def test_the_description_is_for_everybody(application: Any) -> None:
    assert Client(application, (), STRANGER)("GET", "/openapi.json").status == 200


@pytest.mark.parametrize("bad", ["10.0.0.0/33", "10.0.0.1/16", "proxy.example.org", "", "10.0.0"])
@pytest.mark.parametrize("option", ["trusted_proxies", "system_proxies"])
def test_an_option_that_is_no_address_stops_the_start(
    service: TagService, option: str, bad: str
) -> None:
    conf = tag_apis.configuration(**{option: [PROXY, bad]})
    with pytest.raises(errors.BadRequest, match=rf"^{option} in \[steelyard_tags\]: "):
        api.make_application(service, conf)


def test_who_calls_as_the_system_is_trusted_first() -> None:
    with pytest.raises(errors.BadRequest, match=r"'10.0.0.0/8', which is not within trusted_prox"):
        Trust.parse(["10.0.0.0/16", "::/0"], ["10.0.0.0/8"])
    trust = Trust.parse(["10.0.0.0/16", "fe80::/10"], ["10.0.1.0/24", "fe80::1"])
    assert [str(each) for each in trust.system] == ["10.0.1.0/24", "fe80::1/128"]


# Bodies.


def test_a_body_that_is_too_large(service: TagService) -> None:
    ask = Client(api.make_application(service, tag_apis.configuration(max_body=1024)))
    kind = [("Content-Type", "application/json")]
    fits = b'{"tags": []}'.ljust(1024)
    for chunked in (False, True):
        assert ask("PUT", ALL, headers=kind, body=fits, chunked=chunked).status == 200
        answer = ask("PUT", ALL, headers=kind, body=fits + b" ", chunked=chunked)
        assert answer.status == 413
        assert answer.fault == ("overLimit", "a request has at most 1024 bytes")
    for method, target in (("GET", ALL), ("DELETE", ALL), ("PUT", ALL + "/a"), ("GET", "/x")):
        assert ask(method, target, CONTENT_LENGTH="1025").status == 413
    assert there(ask) == []


def test_a_body_is_not_read_before_its_length_is_looked_at(service: TagService) -> None:
    ask = Client(api.make_application(service, tag_apis.configuration()))

    class Unread:
        def __getattr__(self, name: str) -> Any:
            if name in ("read", "readline", "readlines", "__iter__"):
                return self._fail
            raise AttributeError(name)

        def _fail(self, *_: Any) -> bytes:
            raise AssertionError("it is read")

        readline = readlines = __iter__ = read = _fail

    said: dict[str, Any] = {"wsgi.input": Unread(), "CONTENT_LENGTH": "99999999"}
    assert ask("PUT", ALL, **said).status == 413


@pytest.mark.parametrize("length", ["-1", "x", "1.5", "1, 1"])
def test_a_length_that_is_none(application: Any, length: str) -> None:
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
def test_a_body_that_is_no_json(ask: Client, body: bytes) -> None:
    answer = ask("PUT", ALL, headers=[("Content-Type", "application/json")], body=body)
    assert (answer.status, answer.fault[0]) == (400, "badRequest")
    assert there(ask) == []


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (None, "the body is said to be ''"),
        ([], "$: [] is not of type 'object'"),
        ("tags", "$: 'tags' is not of type 'object'"),
        (0, "$: 0 is not of type 'object'"),
        ({}, "$: 'tags' is a required property"),
        ({"tags": None}, "$.tags: None is not of type 'array'"),
        ({"tags": "ab"}, "$.tags: 'ab' is not of type 'array'"),
        ({"tags": {"a": 1}}, "$.tags: {'a': 1} is not of type 'array'"),
        ({"tags": [1]}, "1 is no tag; a tag is text"),
        ({"tags": [True]}, "True is no tag; a tag is text"),
        ({"tags": [None]}, "None is no tag; a tag is text"),
        ({"tags": [["a"]]}, "['a'] is no tag; a tag is text"),
        ({"tags": [], "owner": "system"}, "'owner' was unexpected"),
        ({"tags": ["x"] * 51}, "an instance has at most 50 tags, and 51 are given"),
        ({"tags": [], "\u202e": 1}, "('\\u202e' was unexpected)"),
    ],
)
def test_a_body_of_another_shape(ask: Client, said: Any, message: str) -> None:
    answer = ask("PUT", ALL, said)
    assert answer.status == (415 if said is None else 400)
    assert message in answer.fault[1]
    assert len(answer.fault[1]) < 400


def test_a_body_that_is_nested_deeply(ask: Client) -> None:
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
def test_a_body_that_is_not_said_to_be_json(ask: Client, kind: str) -> None:
    answer = ask("PUT", ALL, headers=[("Content-Type", kind)], body=b'{"tags": ["a"]}')
    assert (answer.status, answer.fault[0]) == (415, "badMediaType")
    assert there(ask) == []


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON", 'application/json; charset="UTF-8"']
)
def test_a_body_that_is(ask: Client, kind: str) -> None:
    body = '{"tags": ["\N{GRINNING FACE}"]}'.encode()
    assert ask("PUT", ALL, headers=[("Content-Type", kind)], body=body).status == 200
    assert there(ask) == ["\N{GRINNING FACE}"]


def test_a_body_without_an_end_is_not_waited_for(ask: Client) -> None:
    """No length, and a server that does not say that it knows where the body ends."""
    kind = [("Content-Type", "application/json")]
    said: dict[str, Any] = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    answer = ask("PUT", ALL, headers=kind, body=b'{"tags": []}', **said)
    assert answer.status == 400
    assert "send it with a Content-Length" in answer.fault[1]
    assert "the body is no JSON" in ask("PUT", ALL, headers=kind, CONTENT_LENGTH="").fault[1]


def test_tags_are_added_whatever_the_body_is(ask: Client) -> None:
    assert ask("PUT", ALL + "/a", {"tags": ["b"]}).status == 201
    assert ask("DELETE", ALL, {"tags": ["b"]}).status == 204
    assert there(ask) == ["a"]


# Methods and routes.


@pytest.mark.parametrize("target", [ALL, ALL + "/a", ALL + "/x", "/openapi.json", "/x"])
def test_head_is_get_without_the_body(ask: Client, target: str) -> None:
    ask("PUT", ALL + "/a")
    found, head = ask("GET", target), ask("HEAD", target)
    assert (head.status, head.body) == (found.status, b"")
    for headers in (found.headers, head.headers):
        del headers["x-openstack-request-id"]
    assert head.headers == found.headers


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("/servers", {"POST"}),
        (ALL, {"GET", "HEAD", "PUT", "DELETE"}),
        (ALL + "/a", {"GET", "HEAD", "PUT", "DELETE"}),
        ("/openapi.json", {"GET", "HEAD"}),
    ],
)
def test_methods(application: Any, target: str, allowed: set[str]) -> None:
    ask = Client(application, validated=False)
    options = ask("OPTIONS", target)
    assert (options.status, options.body) == (200, b"")
    assert set(options.headers["allow"].split(", ")) == allowed
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT"} - allowed:
        answer = ask(method, target)
        assert (answer.status, answer.fault[0]) == (405, "badMethod")
        assert set(answer.headers["allow"].split(", ")) == {*allowed, "OPTIONS"}


@pytest.mark.parametrize("method", ["BREW", "get", "GET\xff", "WEBSOCKET"])
def test_methods_that_are_none(application: Any, method: str) -> None:
    ask = Client(application, validated=False)
    answer = ask(method, ALL)
    assert (answer.status, answer.fault[0]) == (400, "badRequest")


@pytest.mark.parametrize(
    "target",
    [
        "",
        "/",
        "/x",
        "/servers/",
        "/server",
        "//servers",
        f"/{ALL}",
        "/servers/mine",
        "/servers/mine/tag",
        "/SERVERS/mine/tags",
        "/openapi.json/",
        "/v2/servers/mine/tags",
    ],
)
def test_routes_that_are_none(ask: Client, target: str) -> None:
    for method in ("GET", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"):
        answer = ask(method, target)
        assert answer.status == 404, method
        assert answer.fault[0] == "itemNotFound"
        assert "content-type" in answer.headers


def test_what_is_asked_after_a_question_mark_does_not_matter(ask: Client) -> None:
    assert ask("GET", ALL + "?owner=system&%FF&all_tenants=1").status == 200


# The description, the log, and threads.


def test_the_log_has_neither_raw_names_nor_credentials(
    troubled: Any, backend: Troubled, caplog: Any
) -> None:
    service, ask = troubled
    caplog.set_level(logging.DEBUG)
    secret = [("X-Auth-Token", "hunter2"), ("Authorization", "Basic aHVudGVyMg==")]
    for trouble in (None, errors.BackendRefused("no"), OSError("gone"), AssertionError("odd")):
        backend.trouble = None
        ask("DELETE", ALL)
        service.poll()
        backend.trouble = trouble
        for name in {**HOSTILE, **REFUSED}.values():
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


def test_threads(service: TagService, application: Any) -> None:
    def work(number: int) -> None:
        ask = Client(application)
        targets = [f"{ALL}/{number}-{index}" for index in range(6)]
        statuses.extend(ask("PUT", target).status for target in targets)

    statuses: list[int] = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [201] * 48
    assert len(service.tags(Caller("p", "u"), MINE)) == 48
