"""Lists of servers and their unregistration by the HTTP API of instance tags."""

import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.errors import BackendUnreachable, Conflict, NotFound
from steelyard.tags import Instance, TagService
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.database.listing import LARGEST_PAGE
from support.tags.in_process_api import ALL, MINE, THEIRS, Client, Q, Troubled, active
from support.tags.patient_service import CALLER

pytestmark = pytest.mark.usefixtures("closed_databases")

LIST = "/servers"


def register(service: TagService, *servers: str) -> None:
    for server in servers:
        assert isinstance(service.backend, MemoryBackend)
        service.backend.adopt({f"vm-{server}": ()})
        service.register(Instance(server, f"vm-{server}", "p", "u"))


def ids(ask: Client, query: str = "") -> list[str]:
    answer = ask("GET", f"{LIST}?{query}")
    assert answer.status == 200, answer.body
    return [each["id"] for each in answer.json["servers"]]


def test_servers_of_the_project_are_listed_with_their_tags(
    service: TagService, ask: Client, application: Any
) -> None:
    active(service, ask, "smtp", "größe")
    ask("PUT", ALL + "/web")
    mine = {
        "id": MINE,
        "name": "vm-mine",
        "project": "p",
        "user": "u",
        "tags": ["größe", "smtp", "web"],
        "statuses": {"größe": "ACTIVE", "smtp": "ACTIVE", "web": "PENDADD"},
    }
    answer = ask("GET", LIST)
    assert (answer.status, answer.json) == (200, {"servers": [mine]})
    theirs = Client(application, Q)("GET", LIST).json["servers"]
    assert [(each["id"], each["tags"]) for each in theirs] == [(THEIRS, [])]
    assert ask("HEAD", LIST).body == b""


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tags=a", ["s1", "s3"]),
        ("tags=a,b", ["s3"]),
        ("tags-any=a,b", ["s1", "s2", "s3"]),
        ("not-tags=a,b", [MINE, "s1", "s2"]),
        ("not-tags-any=a,b", [MINE]),
        ("tags=a&not-tags=b", ["s1"]),
        ("tags-any=a,b&not-tags-any=b", ["s1"]),
        ("tags=%C3%BC%20x", ["s2"]),
        ("tags=%C3%BC+x", ["s2"]),
        ("tags=nothing", []),
        ("tags=hidden", []),
    ],
)
def test_filters_choose_servers_by_active_and_pending_tags(
    service: TagService, ask: Client, system: Client, query: str, found: list[str]
) -> None:
    register(service, "s1", "s2", "s3")
    ask("PUT", "/servers/s1/tags", {"tags": ["a"]})
    ask("PUT", "/servers/s2/tags", {"tags": ["b", "ü x"]})
    service.jobs.poll()
    ask("PUT", "/servers/s3/tags", {"tags": ["a", "b"]})
    system("PUT", "/servers/s1/tags", {"tags": ["hidden"]})
    assert ids(ask, query) == found


def test_system_lists_its_own_tags(service: TagService, ask: Client, system: Client) -> None:
    ask("PUT", ALL + "/mine")
    system("PUT", ALL + "/own")
    (server,) = system("GET", LIST).json["servers"]
    assert server["tags"] == ["own"]
    assert ids(system, "tags=mine") == []


def test_links_lead_from_page_to_page(service: TagService, ask: Client) -> None:
    register(service, "s1", "s2", "s3", "s4")
    target: str | None = f"{LIST}?not-tags-any=gr%C3%B6%C3%9Fe%2Bx&limit=2"
    pages = []
    while target is not None:
        answer = ask("GET", target).json
        pages.append([each["id"] for each in answer["servers"]])
        (link,) = answer.get("servers_links", [None])
        target = None if link is None else link["href"]
        if link is not None:
            assert link["rel"] == "next"
            parameters = urllib.parse.parse_qs(urllib.parse.urlsplit(str(target)).query)
            assert parameters == {
                "not-tags-any": ["größe+x"],
                "limit": ["2"],
                "marker": [pages[-1][-1]],
            }
    assert pages == [[MINE, "s1"], ["s2", "s3"], ["s4"]]


def test_last_full_page_has_no_link(service: TagService, ask: Client) -> None:
    register(service, "s1")
    assert "servers_links" not in ask("GET", f"{LIST}?limit=2").json
    assert "servers_links" not in ask("GET", f"{LIST}?limit=999999999").json


def test_link_has_the_root_path(service: TagService, ask: Client) -> None:
    register(service, "s1")
    answer = ask("GET", f"{LIST}?limit=1", SCRIPT_NAME="/tags")
    assert answer.json["servers_links"][0]["href"] == "/tags/servers?limit=1&marker=mine"


def test_marker_may_be_forgotten_or_foreign(service: TagService, ask: Client) -> None:
    register(service, "s1", "s2")
    service.forget("s1")
    assert ids(ask, "marker=s1") == ["s2"]
    assert ids(ask, f"marker={THEIRS}") == []
    assert ids(ask, "marker=0") == [MINE, "s2"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=0", "invalid limit '0': expected a whole number from 1 up"),
        ("limit=-1", "invalid limit '-1'"),
        ("limit=%D9%A1", "invalid limit"),
        ("limit=1_0", "invalid limit '1_0'"),
        ("limit=" + "9" * 5000, "invalid limit '999"),
        ("marker=", "invalid marker '': expected the id of a server"),
        ("marker=a%00", "invalid marker 'a\\x00'"),
        ("tags=", "tags: invalid tag '': it has 0 characters"),
        ("tags=a,,b", "tags: invalid tag ''"),
        ("not-tags-any=a/b", "not-tags-any: invalid tag 'a/b': it contains '/'"),
        ("tags=%00", "tags: invalid tag '\\x00'"),
        (
            "tags=" + ",".join(map(str, range(51))),
            "too many tags in tags: expected at most 50, and",
        ),
        (
            "tag=a",
            "unknown parameter 'tag': expected tags, tags-any, not-tags, not-tags-any, limit",
        ),
        ("tags=a&tags=b", "repeated parameter: give each once"),
        ("tags=%FF", "invalid query string: expected percent-encoded UTF-8"),
    ],
)
def test_invalid_query_is_rejected(ask: Client, query: str, said: str) -> None:
    name, message = ask("GET", f"{LIST}?{query}").fault
    assert (name, said in message) == ("badRequest", True), message


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """Yield the statements that read instances or tags, as they are executed."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "instance" in statement:
            seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield seen
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("count", [0, 3, 30])
def test_page_is_read_by_one_bounded_statement(
    service: TagService, ask: Client, statements: list[str], count: int
) -> None:
    register(service, *(f"s{number}" for number in range(count)))
    ask("PUT", ALL, {"tags": ["a", "b"]})
    statements.clear()
    assert len(ids(ask)) == count + 1
    assert len(statements) == 1
    assert "LIMIT" in statements[0]
    assert LARGEST_PAGE == 1000


def test_creation_beyond_the_limit_of_the_project_is_forbidden(
    service: TagService, ask: Client
) -> None:
    service.instances_per_project = 2
    assert ask("POST", LIST, {"server": {"name": "vm-2"}}).status == 202
    assert ask("POST", LIST, {"server": {"name": "vm-3"}}).fault == (
        "forbidden",
        "cannot register instance 'vm-3': project 'p' has reached its limit of 2 instances; "
        "unregister others first",
    )
    assert len(ids(ask)) == 2


# Unregistration.


def test_server_that_the_backend_lost_is_unregistered(service: TagService, ask: Client) -> None:
    active(service, ask, "a")
    ask("PUT", ALL + "/b")
    name, message = ask("DELETE", f"/servers/{MINE}").fault
    assert (name, message) == (
        "conflictingRequest",
        "cannot unregister 'mine': the backend has instance 'vm-mine'; remove it there first",
    )
    assert ids(ask) == [MINE]
    assert isinstance(service.backend, MemoryBackend)
    service.backend.remove("vm-mine")
    answer = ask("DELETE", f"/servers/{MINE}")
    assert (answer.status, answer.body) == (204, b"")
    assert ask("DELETE", f"/servers/{MINE}").fault == ("itemNotFound", "no instance 'mine'")
    assert ids(ask) == []
    assert service.store.pending() == []
    register(service, MINE)
    assert ask("GET", ALL).json["tags"] == []


def test_server_that_is_being_created_stays_registered(service: TagService) -> None:
    patient = MemoryBackend(patient=True)
    slow = TagService(service.store, patient)
    instance, _ = slow.create(CALLER, "vm-new", ["a"], "new")
    with pytest.raises(Conflict, match="still being created; retry later"):
        slow.unregister(CALLER, "new")
    assert service.store.instance("new") == instance
    patient.fail(slow.store.pending()[0][1].job or 0)
    with pytest.raises(NotFound):
        slow.unregister(CALLER, "new")


def test_server_of_another_project_is_not_unregistered(
    service: TagService, ask: Client, application: Any
) -> None:
    assert isinstance(service.backend, MemoryBackend)
    service.backend.remove("vm-theirs")
    assert ask("DELETE", f"/servers/{THEIRS}").fault == ("itemNotFound", "no instance 'theirs'")
    assert Client(application, Q)("DELETE", f"/servers/{THEIRS}").status == 204


@pytest.mark.parametrize("target", [f"/servers/{MINE}/", "/servers/", f"/servers/{MINE}//"])
def test_normalised_path_unregisters_nothing(service: TagService, ask: Client, target: str) -> None:
    # A client may make these of the path of the tag '..'.
    assert isinstance(service.backend, MemoryBackend)
    service.backend.remove("vm-mine")
    assert ask("DELETE", target).status in (404, 405)
    assert ids(ask) == [MINE]


def test_unreachable_backend_unregisters_nothing(
    troubled: tuple[TagService, Client], backend: Troubled, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(instances: Any) -> Any:
        raise BackendUnreachable("no route to host")

    _, ask = troubled
    monkeypatch.setattr(backend, "tags", unreachable)
    answer = ask("DELETE", f"/servers/{MINE}")
    assert (answer.status, ids(ask)) == (503, [MINE])
