"""The HTTP API of instance tags: requests of users and of the system, isolation of projects."""

import threading
from typing import Any

import pytest

from steelyard.tags import TagService
from steelyard.tags.service import Caller
from support.tags.in_process_api import ALL, MINE, ROUTES, THEIRS, Client, Q, active, there

pytestmark = pytest.mark.usefixtures("closed_databases")


def test_tag_is_added_read_and_deleted(service: TagService, ask: Client) -> None:
    assert ask("GET", ALL + "/a").fault == ("itemNotFound", "no tag 'a'")
    added = ask("PUT", ALL + "/a")
    assert (added.status, added.headers["location"], added.body) == (201, ALL + "/a", b"")
    assert ask("PUT", ALL + "/a").status == 204
    found = ask("GET", ALL + "/a")
    assert (found.status, found.headers["tag-status"], found.body) == (204, "PENDADD", b"")
    assert "content-type" not in found.headers
    assert ask("GET", ALL).json == {"tags": ["a"], "statuses": {"a": "PENDADD"}}
    name, message = ask("DELETE", ALL + "/a").fault
    assert (name, "still being added" in message) == ("conflictingRequest", True)
    service.jobs.poll()
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
    assert there(ask) == ["c"]  # 'c' was still being added
    service.jobs.poll()
    ask("DELETE", ALL)
    assert there(ask) == []


def test_server_is_created_with_tags(service: TagService, ask: Client) -> None:
    requested = {"name": "vm-new", "id": "new", "tags": ["a", "b", "a"]}
    answer = ask("POST", "/servers", {"server": requested})
    made = answer.json["server"]
    assert (answer.status, sorted(made.pop("tags"))) == (202, ["a", "b"])
    statuses = {"a": "PENDADD", "b": "PENDADD"}
    whose = {"project": "p", "user": "u"}
    assert made == {"id": "new", "name": "vm-new", **whose, "statuses": statuses}
    service.jobs.poll()
    assert ask("GET", "/servers/new/tags/a").headers["tag-status"] == "ACTIVE"
    for same in ({**requested, "id": "other"}, {**requested, "name": "vm-other"}):
        assert ask("POST", "/servers", {"server": same}).fault[0] == "conflictingRequest"


def test_server_is_created_without_id_and_tags(ask: Client) -> None:
    made = ask("POST", "/servers", {"server": {"name": "vm-new"}}).json["server"]
    assert (made["tags"], made["statuses"]) == ([], {})
    assert ask("GET", f"/servers/{made['id']}/tags").status == 200
    assert ask("POST", "/servers", {"server": {"name": "vm-mine-2", "id": MINE}}).status == 409


def test_clashing_tags_are_rejected(service: TagService, ask: Client) -> None:
    name, message = ask("PUT", ALL, {"tags": ["a", "high", "low"]}).fault
    assert (name, "incompatible tags" in message) == ("badRequest", True)
    assert there(ask) == []
    requested = {"server": {"name": "vm-new", "id": "new", "tags": ["high", "low"]}}
    assert ask("POST", "/servers", requested).status == 400
    assert ask("GET", "/servers/new/tags").status == 404
    assert ask("PUT", ALL + "/high").status == 201
    for answer in (ask("PUT", ALL + "/low"), ask("PUT", ALL, {"tags": ["low"]})):
        name, message = answer.fault
        assert (name, "the incompatible tag 'high'" in message) == ("conflictingRequest", True)
    service.jobs.poll()
    assert ask("PUT", ALL, {"tags": ["low"]}).status == 200  # deletes 'high'


def test_tag_beyond_the_limit_is_rejected(service: TagService, ask: Client) -> None:
    fifty = [f"tag {number}" for number in range(50)]
    assert ask("PUT", ALL, {"tags": [*fifty, "x"]}).fault[0] == "badRequest"
    assert ask("PUT", ALL, {"tags": fifty}).status == 200
    assert ask("PUT", ALL + "/tag%200").status == 204
    assert ask("PUT", ALL + "/x").fault == (
        "badRequest",
        "too many tags: an instance has at most 50, and would have 51",
    )
    assert ask("PUT", ALL, {"tags": ["x"]}).status == 400  # the fifty are still being added
    service.jobs.poll()
    assert ask("PUT", ALL, {"tags": ["x"]}).status == 200


def test_system_tags_are_separate_and_unlimited(
    service: TagService, ask: Client, system: Client
) -> None:
    many = [f"tag {number}" for number in range(60)]
    assert system("PUT", ALL, {"tags": many}).status == 200
    service.jobs.poll()
    assert there(system) == sorted(many)
    assert there(ask) == []
    assert ask("GET", ALL + "/tag%201").status == 404
    assert ask("DELETE", ALL + "/tag%201").status == 404
    assert ask("DELETE", ALL).status == 204
    assert ask("PUT", ALL + "/tag%201").status == 201
    assert system("POST", "/servers", {"server": {"name": "vm-s", "tags": many}}).status == 202
    assert there(system) == sorted(many)


# Other projects.


@pytest.mark.parametrize(("method", "tail"), ROUTES)
def test_server_of_another_project_is_answered_as_missing(
    service: TagService, application: Any, ask: Client, method: str, tail: str
) -> None:
    theirs = Client(application, Q)
    active_there = theirs("PUT", f"/servers/{THEIRS}/tags", {"tags": ["a", "b"]}).json
    body = {"tags": ["c"]} if (method, tail) == ("PUT", "") else None
    answer = ask(method, f"/servers/{THEIRS}/tags{tail}", body)
    absent = ask(method, f"/servers/{THEIRS}x/tags{tail}", body)
    assert (answer.status, absent.status) == (404, 404)
    assert answer.body == absent.body.replace(b"theirsx", b"theirs")
    assert theirs("GET", f"/servers/{THEIRS}/tags").json == active_there


def test_system_request_for_another_project_is_a_404(system: Client) -> None:
    assert system("GET", f"/servers/{THEIRS}/tags").status == 404


@pytest.mark.parametrize(
    "server", ["", " ", "..", ".", "%00", "%0d%0a", "'%20OR%201=1", "x" * 65, "%F0%9F%98%80", "%"]
)
@pytest.mark.parametrize(("method", "tail"), ROUTES)
def test_invalid_server_id_is_a_404(ask: Client, server: str, method: str, tail: str) -> None:
    body = {"tags": ["c"]} if (method, tail) == ("PUT", "") else None
    assert ask(method, f"/servers/{server}/tags{tail}", body).status == 404


def test_concurrent_requests_add_all_tags(service: TagService, application: Any) -> None:
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
