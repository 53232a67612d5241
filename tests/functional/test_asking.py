"""Placement over HTTP, as a keystoneauth session and openstacksdk reach it: when it is none, too."""

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from keystoneauth1 import adapter, noauth, session

from steelyard import cli
from steelyard.errors import (
    BadRequest,
    Conflict,
    MicroversionTooLow,
    NotFound,
    ServiceError,
    SteelyardError,
)
from steelyard.placement import Placement
from steelyard.traits import ProvidersRequest
from steelyard.traits.asking import ask

# What openstacksdk deprecates of itself.
pytestmark = pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)")

# What a Placement says of itself.
VERSION = {"id": "v1.0", "max_version": "1.39", "min_version": "1.0"}
LINKS = {"status": "CURRENT", "links": [{"rel": "self", "href": ""}]}
ROOT = {"versions": [VERSION | LINKS]}


class Server(http.server.ThreadingHTTPServer):
    """Answers each path with the status and the body that a test has put there."""

    answers: dict[str, tuple[int, bytes]]
    asked: list[tuple[str, str]]


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["OpenStack-API-Version"]))
        status, body = self.server.answers.get(self.path.partition("?")[0], (404, b""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name)
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.answers, made.asked = {"/": (200, json.dumps(ROOT).encode())}, []
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def placement(server: Server) -> Placement:
    open_to_all = session.Session(auth=noauth.NoAuth(endpoint=url(server)))
    return Placement(adapter.Adapter(open_to_all, service_type="placement"))


def test_a_request_is_sent_with_the_newest_microversion_of_both(server: Server) -> None:
    server.answers["/resource_providers"] = (200, b'{"resource_providers": []}')
    client = placement(server)
    for _ in range(2):
        assert ask(client, ProvidersRequest.parse("required=!A")) == {"resource_providers": []}
    assert server.asked == [
        ("/", "placement 1.0"),
        ("/resource_providers?required=!A", "placement 1.39"),
        ("/resource_providers?required=!A", "placement 1.39"),
    ]


def test_an_old_placement_is_not_asked_what_it_cannot_understand(server: Server) -> None:
    server.answers["/"] = (200, json.dumps({"versions": [{"max_version": "1.21"}]}).encode())
    with pytest.raises(MicroversionTooLow, match=r"speaks up to 1\.21: .*needs 1\.22"):
        ask(placement(server), ProvidersRequest.parse("required=!A"))
    assert [path for path, _ in server.asked] == ["/"]


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (400, {"errors": [{"detail": "no\n such"}]}, BadRequest, "answered 400: no such"),
        (401, {"error": {"message": "who?"}}, ServiceError, "answered 401: who?"),
        (403, {"errors": [{"detail": None}]}, ServiceError, "answered 403: no reason given"),
        (404, {}, NotFound, "answered 404"),
        (406, {"errors": []}, MicroversionTooLow, "answered 406"),
        (409, {"errors": [{"detail": "again"}]}, Conflict, "answered 409: again"),
        (500, b"<html>oops</html>", ServiceError, "answered 500: <html>oops</html>"),
        (300, b"", ServiceError, "answered 300: no reason given"),
        (200, b"<html>log in</html>", ServiceError, "but <html>log in</html>; is this a Placem"),
        (200, b"\xff", ServiceError, "does not answer with JSON"),
    ],
)
def test_errors(server: Server, status: int, body: Any, kind: Any, said: str) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    server.answers["/resource_providers"] = (status, content)
    with pytest.raises(SteelyardError) as caught:
        ask(placement(server), ProvidersRequest.parse(""))
    assert type(caught.value) is kind
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "body", [{}, [], {"versions": []}, {"versions": [{}]}, {"versions": [{"max_version": None}]}, 5]
)
def test_what_is_no_placement_is_noticed(server: Server, body: Any) -> None:
    server.answers["/"] = (200, json.dumps(body).encode())
    with pytest.raises(ServiceError, match="does not say which microversions it speaks"):
        ask(placement(server), ProvidersRequest.parse(""))


@pytest.fixture
def os_cloud(tmp_path: Any, monkeypatch: Any) -> Any:
    """Writes a clouds.yaml whose cloud "here" has its Placement at the URL."""

    def write(endpoint: str) -> None:
        cloud = {"auth_type": "none", "auth": {"endpoint": endpoint}}
        more = {"placement_endpoint_override": endpoint}
        path = tmp_path / "clouds.yaml"
        path.write_text(json.dumps({"clouds": {"here": {**cloud, **more}}}))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))

    return write


def test_the_command_asks_a_cloud(server: Server, os_cloud: Any, capsys: Any) -> None:
    os_cloud(url(server))
    server.answers["/resource_providers"] = (200, b'{"resource_providers": [{"name": "n1"}]}')
    found = {
        "allocation_requests": [{"allocations": {"u2": {}, "u1": {}}}],
        "provider_summaries": {"x": {}},
    }
    server.answers["/allocation_candidates"] = (200, json.dumps(found).encode())
    argv = ["query", "--resources", "VCPU:1", "--os-cloud", "here", "-f", "json"]
    assert cli.main([*argv, "--providers"]) == 0
    assert json.loads(capsys.readouterr().out)["Providers"] == ["n1"]
    assert cli.main(argv) == 0
    assert json.loads(capsys.readouterr().out)["Providers"] == ["u1", "u2"]


def test_a_cloud_that_cannot_be_reached_is_a_clear_line(os_cloud: Any, capsys: Any) -> None:
    os_cloud("http://127.0.0.1:9")
    assert cli.main(["query", "--resources", "VCPU:1", "--os-cloud", "here"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("steelyard: ")
    assert "this should not have happened" not in err


def test_an_unknown_cloud_is_named(os_cloud: Any, capsys: Any) -> None:
    os_cloud("http://127.0.0.1:9")
    assert cli.main(["query", "--resources", "VCPU:1", "--os-cloud", "there"]) == 2
    assert "--os-cloud there: Cloud there was not found" in capsys.readouterr().err
