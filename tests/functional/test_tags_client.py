"""The client of tags, against the application that is served, and against what is none."""

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
from tag_servers import served, tag_service, trusting

from steelyard import errors
from steelyard.tags import TagsClient, TagService
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import check_name
from steelyard.tags.service import Operator
from steelyard.tags.states import Instance, Status

pytestmark = pytest.mark.usefixtures("closed_databases")

SERVER = "3d4c9b1e"


class Moody(MemoryBackend):
    """A backend that fails when it is told to."""

    mood: Exception | None = None

    def add(self, instance: str, tags: Any) -> int:
        if self.mood is not None:
            raise self.mood
        return super().add(instance, tags)


@pytest.fixture
def service(tmp_path: Any) -> TagService:
    made = tag_service(tmp_path)
    made.backend = Moody()
    made.backend.adopt({"i-1": []})
    made.register(Instance(SERVER, "i-1", "p", "u"))
    return made


@pytest.fixture
def endpoint(service: TagService) -> Iterator[str]:
    with served(trusting(service, system_proxies=["127.0.0.1"])) as url:
        yield url


@pytest.fixture
def client(endpoint: str) -> TagsClient:
    return TagsClient(endpoint, "p", "u")


def test_every_operation(client: TagsClient, service: TagService) -> None:
    assert client.list(SERVER) == {"tags": [], "statuses": {}}
    assert client.exists(SERVER, "web") is None
    assert client.add(SERVER, "web") is True
    assert client.add(SERVER, "web") is False
    assert client.exists(SERVER, "web") is Status.PENDADD
    assert client.list(SERVER) == {"tags": ["web"], "statuses": {"web": "PENDADD"}}
    service.poll()
    assert client.exists(SERVER, "web") is Status.ACTIVE
    assert client.replace(SERVER, ["db"]) == {"tags": ["db"], "statuses": {"db": "PENDADD"}}
    service.poll()
    client.delete(SERVER, "db")
    client.add(SERVER, "a")
    client.add(SERVER, "b")
    service.poll()
    client.clear(SERVER)
    assert client.list(SERVER)["tags"] == []


def test_an_instance_is_created_with_its_tags(client: TagsClient, service: TagService) -> None:
    made = client.create("i-2", ["web", "ü"])
    assert made == {
        "id": made["id"],
        "name": "i-2",
        "tags": made["tags"],
        "statuses": {"web": "PENDADD", "ü": "PENDADD"},
    }
    assert sorted(made["tags"]) == ["web", "ü"]
    assert service.store.instance(made["id"]).project == "p"
    assert client.create("i-3", id="mine")["id"] == "mine"
    with pytest.raises(errors.Conflict, match="already an instance"):
        client.create("i-3")


@given(tag=st.text(min_size=1, max_size=60))
@example("%2F")
@example("a b+c")
@example("?#&=;")
@example("%")
@example("~_\N{SNOWMAN}\N{ZERO WIDTH JOINER}")
@example("//x")
@example("...")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_tag_arrives_as_it_is_or_is_refused_before_it_is_sent(
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
    with contextlib.suppress(errors.BadRequest):  # too long when it is encoded
        if tag in (".", ".."):
            return
        assert client.add(SERVER, tag) is True
        assert client.list(SERVER)["tags"] == [tag]
        service.poll()
        assert client.exists(SERVER, tag) is Status.ACTIVE
        client.delete(SERVER, tag)
    assert client.list(SERVER)["tags"] == []


@pytest.mark.parametrize("step", [".", ".."])
def test_steps_of_a_path_are_no_names_in_it(
    client: TagsClient, service: TagService, step: str
) -> None:
    """They would lead to other addresses: to delete . would be to delete all."""
    client.replace(SERVER, [step, "other"])
    service.poll()
    for refused in (client.add, client.exists, client.delete):
        with pytest.raises(errors.BadRequest, match="can be listed and be set with all others"):
            refused(SERVER, step)
    assert sorted(client.list(SERVER)["tags"]) == [step, "other"]


@pytest.mark.parametrize("server", ["", ".", "..", f"{SERVER}/tags", "\ud800", None, 5])
def test_what_is_no_id_of_a_server(client: TagsClient, server: Any) -> None:
    with pytest.raises(errors.BadRequest, match="is no id of a server"):
        client.list(server)


def test_the_id_of_a_server_is_one_segment(client: TagsClient) -> None:
    for server in (f"{SERVER}?", f"{SERVER}#", f"{SERVER};x", "%2e%2e", f"{SERVER}%2Ftags"):
        with pytest.raises(errors.NotFound):
            client.list(server)


def test_errors_become_ours(client: TagsClient, endpoint: str, service: TagService) -> None:
    for asked in (client.list, client.clear, lambda server: client.exists(server, "x")):
        with pytest.raises(errors.NotFound, match="there is no instance 'other'"):
            asked("other")
    with pytest.raises(errors.NotFound, match="there is no tag 'x'"):
        client.delete(SERVER, "x")
    client.add(SERVER, "x")
    with pytest.raises(errors.Conflict, match="'x' is still being added"):
        client.delete(SERVER, "x")
    with pytest.raises(errors.BadRequest, match="50"):
        client.replace(SERVER, [f"t{n}" for n in range(51)])
    with pytest.raises(errors.NotFound):
        TagsClient(endpoint, "another", "u").list(SERVER)


@pytest.mark.parametrize(
    ("mood", "kind"),
    [
        (errors.BackendRefused("the secret of the backend"), errors.BackendRefused),
        (errors.OutcomeUnknown("the secret of the backend"), errors.OutcomeUnknown),
        (ValueError("the secret of the backend"), errors.OutcomeUnknown),
    ],
)
def test_what_the_backend_says(
    client: TagsClient, service: TagService, mood: Exception, kind: Any
) -> None:
    assert isinstance(service.backend, Moody)
    service.backend.mood = mood
    with pytest.raises(errors.ServiceError) as caught:
        client.add(SERVER, "x")
    assert type(caught.value) is kind
    assert "secret" not in str(caught.value)


def test_what_is_broken_inside_is_a_service_error(client: TagsClient, service: TagService) -> None:
    service.store.downgrade("0001")
    with pytest.raises(errors.SteelyardError) as caught:
        client.list(SERVER)
    assert isinstance(caught.value, errors.ServiceError)
    assert "tag_instances" not in str(caught.value)


def test_the_systems_own_tags(client: TagsClient, endpoint: str, service: TagService) -> None:
    system = TagsClient(endpoint, "p", "u", owner="system")
    system.add(SERVER, "smtp")
    assert list(service.tags(Operator(), SERVER)) == ["smtp"]
    assert client.list(SERVER)["tags"] == []


def test_nobody_is_believed_who_is_not_named(service: TagService) -> None:
    with (
        served(trusting(service, trusted_proxies=["192.0.2.1"])) as url,
        pytest.raises(errors.Unauthorized),
    ):
        TagsClient(url, "p", "u").list(SERVER)


def test_a_session_and_an_adapter(endpoint: str) -> None:
    ours = session.Session(auth=noauth.NoAuth(endpoint=endpoint))
    adapted = adapter.Adapter(session.Session(), endpoint_override=endpoint)
    for way in (ours, adapted):
        assert TagsClient(way, "p", "u").list(SERVER)["tags"] == []
        with pytest.raises(errors.Unauthorized, match="X-Project-Id"):
            TagsClient(way).list(SERVER)


@pytest.mark.parametrize(
    ("endpoint", "more", "said"),
    [
        ("http://h", {"user": "u"}, "name the project and the user"),
        ("http://h", {"project": "p"}, "name the project and the user"),
        ("http://h", {"project": "", "user": "u"}, "'' is no id of a project"),
        ("http://h", {"project": "p", "user": "u\r\nX-Tag-Owner: system"}, "is no id of a user"),
        ("http://h", {"project": "ü", "user": "u"}, "'ü' is no id of a project"),
        ("http://h", {"project": "p,q", "user": "u"}, "without spaces and commas"),
        ("http://h", {"project": "p" * 256, "user": "u"}, "1 to 255 printable"),
        ("http://h", {"project": "p", "user": "u", "owner": "root"}, "'root' owns no tags; the ow"),
        ("h:80", {"project": "p", "user": "u"}, "'h:80' is no endpoint; write one such as https:"),
        ("ftp://h", {"project": "p", "user": "u"}, "is no endpoint"),
        ("http://", {"project": "p", "user": "u"}, "is no endpoint"),
        ("http://h:x", {"project": "p", "user": "u"}, "is no endpoint"),
        ("http://h/?x=1", {"project": "p", "user": "u"}, "is no endpoint"),
        ("http://h/\n", {"project": "p", "user": "u"}, "is no endpoint"),
        (5, {}, "5 is no session of keystoneauth1; to ask the service of tags, make one"),
    ],
)
def test_mistakes(endpoint: Any, more: Any, said: str) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        TagsClient(endpoint, **more)
    assert said in str(caught.value)


@pytest.mark.parametrize("endpoint", ["http://me:hush@h", "http://me@h/hush", "http://me:hush@h:x"])
def test_a_password_is_not_sent_and_not_repeated(endpoint: str) -> None:
    with pytest.raises(errors.BadRequest, match="has a user or a password in it") as caught:
        TagsClient(endpoint, "p", "u")
    assert "hush" not in str(caught.value)


def test_one_tag_is_no_list_of_tags(client: TagsClient) -> None:
    with pytest.raises(errors.BadRequest, match="'web' is one tag; give a list of tags"):
        client.replace(SERVER, "web")


def answering(status: str, body: bytes = b"", *headers: tuple[str, str]) -> Any:
    """What answers everything like that, and keeps what was asked."""

    def application(environ: Any, start_response: Any) -> list[bytes]:
        application.asked.append(environ["REQUEST_METHOD"])  # type: ignore[attr-defined]
        start_response(status, [("Content-Length", str(len(body))), *headers])
        return [body]

    application.asked = []  # type: ignore[attr-defined]
    return application


HTML = b"<html>\n <h1>Sorry</h1>\n</html>"
FAULT = json.dumps({"forbidden": {"code": 403, "message": "not\n you"}}).encode()
KEYSTONE = json.dumps({"error": {"code": 401, "message": "who?"}}).encode()


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (("400 Bad", HTML), errors.BadRequest, "<h1>Sorry</h1>"),
        (("401 No", KEYSTONE), errors.Unauthorized, "who?"),
        (("401 No", b""), errors.Unauthorized, "no reason given"),
        (("403 No", FAULT), errors.ServiceError, "the service of tags answered 403: not you"),
        (("403 No", HTML), errors.ServiceError, "answers 403: <html> <h1>Sorry"),
        (("404 No", HTML), errors.ServiceError, "answers 404: .*is this the service of tags?"),
        (("404 No", b"[1]"), errors.ServiceError, "is this the service of tags?"),
        (("502 No", HTML), errors.ServiceError, "answers 502: <html>"),
        (("503 No", HTML), errors.OutcomeUnknown, "answered 503: <html>"),
        (("504 No", b""), errors.OutcomeUnknown, "answered 504: no reason given"),
        (("200 OK", HTML), errors.ServiceError, "does not answer with JSON, but <html>"),
        (("200 OK", b'{"tags": 5}'), errors.ServiceError, "does not list tags, but"),
        (("200 OK", b"[]"), errors.ServiceError, "does not list tags, but"),
        (("200 OK", b'{"tags": ["x"]}'), errors.ServiceError, "does not list tags, but"),
        (
            ("200 OK", b'{"tags": ["x"], "statuses": {"x": "BROKEN"}}'),
            errors.ServiceError,
            "does not list tags, but",
        ),
        (("204 OK", b""), errors.ServiceError, "answers 204"),
    ],
)
def test_what_is_not_the_service(answer: Any, kind: Any, said: str) -> None:
    with served(answering(*answer)) as url, pytest.raises(errors.SteelyardError, match=said) as got:
        TagsClient(url, "p", "u").list(SERVER)
    assert type(got.value) is kind


def test_a_status_that_is_not_said() -> None:
    with served(answering("204 No Content")) as url:
        client = TagsClient(url, "p", "u")
        with pytest.raises(errors.ServiceError, match="does not say the status of the tag"):
            client.exists(SERVER, "x")
    with served(answering("202 Accepted", b'{"servers": []}')) as url:
        client = TagsClient(url, "p", "u")
        with pytest.raises(errors.ServiceError, match="does not say which server it is"):
            client.create("i-1")


def test_a_login_page_is_no_success() -> None:
    with served(answering("200 OK", HTML)) as url:
        client = TagsClient(url, "p", "u")
        for asked in (client.add, client.delete, client.exists):
            with pytest.raises(errors.ServiceError, match="answers 200: <html>"):
                asked(SERVER, "x")


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_not_followed(status: str) -> None:
    elsewhere = answering("204 No Content")
    with (
        served(elsewhere) as target,
        served(answering(status, b"", ("Location", f"{target}/login"))) as url,
    ):
        client = TagsClient(url, "p", "u")
        for asked in (lambda: client.list(SERVER), lambda: client.delete(SERVER, "x")):
            with pytest.raises(errors.ServiceError) as caught:
                asked()
            assert f"sends us to '{target}/login', where we do not go" in str(caught.value)
    assert elsewhere.asked == []


def test_what_is_not_reached_has_done_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client = TagsClient(f"http://127.0.0.1:{port}", "p", "u")
    for asked in (lambda: client.list(SERVER), lambda: client.add(SERVER, "x")):
        with pytest.raises(
            errors.NoAccess, match=r"asking the service of tags has failed: .*refus"
        ):
            asked()


def test_who_hangs_up_may_have_done_it() -> None:
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
            errors.OutcomeUnknown, match=r"has been asked and has not answered: .*list the tags"
        ):
            client.add(SERVER, "x")
        with pytest.raises(errors.NoAccess):
            client.list(SERVER)
        thread.join()
