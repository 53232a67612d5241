"""The client of tags, against the served application and against other servers."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from keystoneauth1 import adapter, noauth, session

from steelyard import errors
from steelyard.tags import TagsClient, TagService
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import check_name
from steelyard.tags.service import Operator
from steelyard.tags.states.values import Instance, Status
from support.examples import examples
from support.tags.served_api import served, tag_service, trusting

pytestmark = pytest.mark.usefixtures("closed_databases")

SERVER = "3d4c9b1e"


class Failing(MemoryBackend):
    """A backend that raises a given error."""

    failure: Exception | None = None

    def add(self, instance: str, tags: Any) -> int:
        if self.failure is not None:
            raise self.failure
        return super().add(instance, tags)


@pytest.fixture
def service(tmp_path: Any) -> TagService:
    backend = Failing()
    backend.adopt({"i-1": []})
    made = TagService(tag_service(tmp_path).store, backend)
    made.register(Instance(SERVER, "i-1", "p", "u"))
    return made


@pytest.fixture
def endpoint(service: TagService) -> Iterator[str]:
    with served(trusting(service, system_proxies=["127.0.0.1"])) as url:
        yield url


@pytest.fixture
def client(endpoint: str) -> TagsClient:
    return TagsClient(endpoint, "p", "u")


def test_client_performs_every_operation(client: TagsClient, service: TagService) -> None:
    assert client.list(SERVER) == {"tags": [], "statuses": {}}
    assert client.exists(SERVER, "web") is None
    assert client.add(SERVER, "web") is True
    assert client.add(SERVER, "web") is False
    assert client.exists(SERVER, "web") is Status.PENDADD
    assert client.list(SERVER) == {"tags": ["web"], "statuses": {"web": "PENDADD"}}
    service.jobs.poll()
    assert client.exists(SERVER, "web") is Status.ACTIVE
    assert client.replace(SERVER, ["db"]) == {"tags": ["db"], "statuses": {"db": "PENDADD"}}
    service.jobs.poll()
    client.delete(SERVER, "db")
    client.add(SERVER, "a")
    client.add(SERVER, "b")
    service.jobs.poll()
    client.clear(SERVER)
    assert client.list(SERVER)["tags"] == []


def test_create_returns_the_server_with_its_tags(client: TagsClient, service: TagService) -> None:
    made = client.create("i-2", ["web", "ü"])
    assert made == {
        "id": made["id"],
        "name": "i-2",
        "project": "p",
        "user": "u",
        "tags": made["tags"],
        "statuses": {"web": "PENDADD", "ü": "PENDADD"},
    }
    assert sorted(made["tags"]) == ["web", "ü"]
    assert service.store.instance(made["id"]).project == "p"
    assert client.create("i-3", id="mine")["id"] == "mine"
    with pytest.raises(errors.Conflict, match="is taken"):
        client.create("i-3")


@given(tag=st.text(min_size=1, max_size=60))
@example("%2F")
@example("a b+c")
@example("?#&=;")
@example("%")
@example("~_\N{SNOWMAN}\N{ZERO WIDTH JOINER}")
@example("//x")
@example("...")
@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tag_arrives_unchanged_or_is_rejected_before_sending(
    client: TagsClient, service: TagService, tag: str
) -> None:
    try:
        check_name(tag)
    except errors.InvalidTag:
        for refused in (client.add, client.exists, client.delete):
            with pytest.raises(errors.InvalidTag):
                refused(SERVER, tag)
        with pytest.raises(errors.InvalidTag):
            client.replace(SERVER, [tag])
        return
    with contextlib.suppress(errors.BadRequest):  # the encoded tag is too long
        if tag in (".", ".."):
            return
        assert client.add(SERVER, tag) is True
        assert client.list(SERVER)["tags"] == [tag]
        service.jobs.poll()
        assert client.exists(SERVER, tag) is Status.ACTIVE
        client.delete(SERVER, tag)
    assert client.list(SERVER)["tags"] == []


@pytest.mark.parametrize("step", [".", ".."])
def test_dot_segments_are_rejected_in_paths(
    client: TagsClient, service: TagService, step: str
) -> None:
    # Such paths would be normalized: deleting the tag '.' would delete all tags.
    client.replace(SERVER, [step, "other"])
    service.jobs.poll()
    for refused in (client.add, client.exists, client.delete):
        with pytest.raises(errors.BadRequest, match="list or replace all tags instead"):
            refused(SERVER, step)
    assert sorted(client.list(SERVER)["tags"]) == [step, "other"]


@pytest.mark.parametrize("server", ["", ".", "..", f"{SERVER}/tags", "\ud800", None, 5])
def test_invalid_server_id_is_rejected(client: TagsClient, server: Any) -> None:
    with pytest.raises(errors.BadRequest, match="invalid server id"):
        client.list(server)


def test_server_id_is_sent_as_one_segment(client: TagsClient) -> None:
    for server in (f"{SERVER}?", f"{SERVER}#", f"{SERVER};x", "%2e%2e", f"{SERVER}%2Ftags"):
        with pytest.raises(errors.NotFound):
            client.list(server)


def test_api_errors_become_steelyard_errors(
    client: TagsClient, endpoint: str, service: TagService
) -> None:
    for request in (client.list, client.clear, lambda server: client.exists(server, "x")):
        with pytest.raises(errors.NotFound, match="no instance 'other'"):
            request("other")
    with pytest.raises(errors.NotFound, match="no tag 'x'"):
        client.delete(SERVER, "x")
    client.add(SERVER, "x")
    with pytest.raises(errors.Conflict, match="cannot delete tag 'x': it is still being added"):
        client.delete(SERVER, "x")
    with pytest.raises(errors.BadRequest, match="50"):
        client.replace(SERVER, [f"t{n}" for n in range(51)])
    with pytest.raises(errors.NotFound):
        TagsClient(endpoint, "another", "u").list(SERVER)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (errors.BackendRefused("the secret of the backend"), errors.BackendRefused),
        (errors.OutcomeUnknown("the secret of the backend"), errors.OutcomeUnknown),
        (ValueError("the secret of the backend"), errors.OutcomeUnknown),
    ],
)
def test_backend_errors_arrive_without_details(
    client: TagsClient, service: TagService, failure: Exception, kind: Any
) -> None:
    assert isinstance(service.backend, Failing)
    service.backend.failure = failure
    with pytest.raises(errors.ServiceError) as caught:
        client.add(SERVER, "x")
    assert type(caught.value) is kind
    assert "secret" not in str(caught.value)


def test_database_failure_is_a_service_error_without_details(
    client: TagsClient, service: TagService
) -> None:
    service.store.downgrade("0001")
    with pytest.raises(errors.SteelyardError) as caught:
        client.list(SERVER)
    assert isinstance(caught.value, errors.ServiceError)
    assert "tag_instances" not in str(caught.value)


def test_system_client_changes_only_system_tags(
    client: TagsClient, endpoint: str, service: TagService
) -> None:
    system = TagsClient(endpoint, "p", "u", owner="system")
    system.add(SERVER, "smtp")
    assert list(service.tags(Operator(), SERVER)) == ["smtp"]
    assert client.list(SERVER)["tags"] == []


def test_untrusted_client_is_unauthorized(service: TagService) -> None:
    with (
        served(trusting(service, trusted_proxies=["192.0.2.1"])) as url,
        pytest.raises(errors.Unauthorized),
    ):
        TagsClient(url, "p", "u").list(SERVER)


def test_client_accepts_a_session_or_an_adapter(endpoint: str) -> None:
    direct = session.Session(auth=noauth.NoAuth(endpoint=endpoint))
    adapted = adapter.Adapter(session.Session(), endpoint_override=endpoint)
    for connection in (direct, adapted):
        assert TagsClient(connection, "p", "u").list(SERVER)["tags"] == []
        with pytest.raises(errors.Unauthorized, match="X-Project-Id"):
            TagsClient(connection).list(SERVER)


@pytest.mark.parametrize(
    ("endpoint", "more", "message"),
    [
        ("http://h", {"user": "u"}, "expected a project and a user"),
        ("http://h", {"project": "p"}, "expected a project and a user"),
        ("http://h", {"project": "", "user": "u"}, "invalid project id ''"),
        ("http://h", {"project": "p", "user": "u\r\nX-Tag-Owner: system"}, "invalid user id"),
        ("http://h", {"project": "ü", "user": "u"}, "invalid project id 'ü'"),
        ("http://h", {"project": "p,q", "user": "u"}, "without spaces and commas"),
        ("http://h", {"project": "p" * 256, "user": "u"}, "1 to 255 printable"),
        (
            "http://h",
            {"project": "p", "user": "u", "owner": "root"},
            "invalid owner 'root': expected",
        ),
        ("h:80", {"project": "p", "user": "u"}, "invalid endpoint 'h:80': expected one such as"),
        ("ftp://h", {"project": "p", "user": "u"}, "invalid endpoint"),
        ("http://", {"project": "p", "user": "u"}, "invalid endpoint"),
        ("http://h:x", {"project": "p", "user": "u"}, "invalid endpoint"),
        ("http://h/?x=1", {"project": "p", "user": "u"}, "invalid endpoint"),
        ("http://h/\n", {"project": "p", "user": "u"}, "invalid endpoint"),
        (5, {}, "invalid session 5 for the tag service: expected one of keystoneauth1"),
    ],
)
def test_invalid_arguments_are_rejected(endpoint: Any, more: Any, message: str) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        TagsClient(endpoint, **more)
    assert message in str(caught.value)


@pytest.mark.parametrize("endpoint", ["http://me:hush@h", "http://me@h/hush", "http://me:hush@h:x"])
def test_password_in_the_endpoint_is_rejected_and_not_repeated(endpoint: str) -> None:
    with pytest.raises(errors.BadRequest, match="it contains a user or a password") as caught:
        TagsClient(endpoint, "p", "u")
    assert "hush" not in str(caught.value)


def test_replace_rejects_text_in_place_of_a_list(client: TagsClient) -> None:
    with pytest.raises(errors.BadRequest, match="invalid list of tags 'web'"):
        client.replace(SERVER, "web")


def answering(status: str, body: bytes = b"", *headers: tuple[str, str]) -> Any:
    """Return an application that gives one answer to all requests and records their methods."""

    def application(environ: Any, start_response: Any) -> list[bytes]:
        application.requests.append(environ["REQUEST_METHOD"])  # type: ignore[attr-defined]
        start_response(status, [("Content-Length", str(len(body))), *headers])
        return [body]

    application.requests = []  # type: ignore[attr-defined]
    return application


HTML = b"<html>\n <h1>Sorry</h1>\n</html>"
FAULT = json.dumps({"forbidden": {"code": 403, "message": "not\n you"}}).encode()
UNREACHABLE = json.dumps(
    {"serviceUnavailable": {"code": 503, "message": "try again", "reason": "backendUnreachable"}}
).encode()
OUTDATED = json.dumps(
    {"serviceUnavailable": {"code": 503, "message": "upgrade", "reason": "upgradeNeeded"}}
).encode()
ODD = json.dumps(
    {"serviceUnavailable": {"code": 503, "message": "odd", "reason": ["upgradeNeeded"]}}
).encode()
UNKNOWN = json.dumps(
    {"serviceUnavailable": {"code": 503, "message": "list them", "reason": "outcomeUnknown"}}
).encode()
KEYSTONE = json.dumps({"error": {"code": 401, "message": "token expired"}}).encode()


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (("400 Bad", HTML), errors.BadRequest, "<h1>Sorry</h1>"),
        (("401 No", KEYSTONE), errors.Unauthorized, "token expired"),
        (("401 No", b""), errors.Unauthorized, "no reason given"),
        (("403 No", FAULT), errors.Forbidden, "not you"),
        (("403 No", HTML), errors.Forbidden, "<h1>Sorry"),
        (("404 No", HTML), errors.ServiceError, "status 404: .*; check its endpoint"),
        (("404 No", b"[1]"), errors.ServiceError, "unexpected answer from the tag service"),
        (("502 No", HTML), errors.ServiceError, "status 502: <html>"),
        (("503 No", HTML), errors.OutcomeUnknown, "answered 503: <html>"),
        (("503 No", UNREACHABLE), errors.BackendUnreachable, "try again"),
        (("503 No", OUTDATED), errors.UpgradeNeeded, "^upgrade$"),
        (("503 No", ODD), errors.OutcomeUnknown, "answered 503: odd"),
        (("500 No", OUTDATED), errors.ServiceError, "answered 500: upgrade"),
        (("503 No", UNKNOWN), errors.OutcomeUnknown, "answered 503: list them"),
        (("504 No", b""), errors.OutcomeUnknown, "answered 504: no reason given"),
        (("401 No", b'{"error": {}, ' + KEYSTONE[1:]), errors.Unauthorized, '{"error": {}, "err'),
        (("401 No", b"[" * 100_000), errors.Unauthorized, r"\[\[\["),
        (("200 OK", b'{"tags": [], "tags": []}'), errors.ServiceError, "expected JSON"),
        (("200 OK", HTML), errors.ServiceError, "expected JSON, got <html>"),
        (("200 OK", b'{"tags": 5}'), errors.ServiceError, "expected tags and statuses, got"),
        (("200 OK", b"[]"), errors.ServiceError, "expected tags and statuses, got"),
        (("200 OK", b'{"tags": ["x"]}'), errors.ServiceError, "expected tags and statuses, got"),
        (
            ("200 OK", b'{"tags": ["x"], "statuses": {"x": "BROKEN"}}'),
            errors.ServiceError,
            "expected tags and statuses, got",
        ),
        (("204 OK", b""), errors.ServiceError, "status 204"),
    ],
)
def test_unexpected_answer_becomes_a_steelyard_error(answer: Any, kind: Any, message: str) -> None:
    with (
        served(answering(*answer)) as url,
        pytest.raises(errors.SteelyardError, match=message) as caught,
    ):
        TagsClient(url, "p", "u").list(SERVER)
    assert type(caught.value) is kind


def test_incomplete_answer_is_a_service_error() -> None:
    with served(answering("204 No Content")) as url:
        client = TagsClient(url, "p", "u")
        with pytest.raises(errors.ServiceError, match="invalid header Tag-Status None"):
            client.exists(SERVER, "x")
    with served(answering("202 Accepted", b'{"servers": []}')) as url:
        client = TagsClient(url, "p", "u")
        with pytest.raises(errors.ServiceError, match="expected a server, got"):
            client.create("i-1")


def test_login_page_is_a_service_error() -> None:
    with served(answering("200 OK", HTML)) as url:
        client = TagsClient(url, "p", "u")
        for request in (client.add, client.delete, client.exists):
            with pytest.raises(errors.ServiceError, match="status 200: <html>"):
                request(SERVER, "x")


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_redirect_is_not_followed(status: str) -> None:
    elsewhere = answering("204 No Content")
    with (
        served(elsewhere) as target,
        served(answering(status, b"", ("Location", f"{target}/login"))) as url,
    ):
        client = TagsClient(url, "p", "u")
        for request in (lambda: client.list(SERVER), lambda: client.delete(SERVER, "x")):
            with pytest.raises(errors.ServiceError) as caught:
                request()
            assert f"a redirect to '{target}/login', which is not followed" in str(caught.value)
    assert elsewhere.requests == []


def test_refused_connection_raises_no_access() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client = TagsClient(f"http://127.0.0.1:{port}", "p", "u")
    for request in (lambda: client.list(SERVER), lambda: client.add(SERVER, "x")):
        with pytest.raises(errors.NoAccess, match=r"request to the tag service failed: .*refus"):
            request()


def test_closed_connection_leaves_the_outcome_of_a_change_unknown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            for _ in range(2):
                connection, _ = listener.accept()
                connection.recv(65536)
                connection.close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        client = TagsClient(f"http://127.0.0.1:{listener.getsockname()[1]}", "p", "u")
        with pytest.raises(
            errors.OutcomeUnknown, match=r"did not answer, and may have applied .*list the tags"
        ):
            client.add(SERVER, "x")
        with pytest.raises(errors.NoAccess):
            client.list(SERVER)
        thread.join()
