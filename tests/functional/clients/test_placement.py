"""The client of Placement over HTTP, through keystoneauth1 and openstacksdk."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from keystoneauth1 import adapter, noauth, session

from steelyard import cli
from steelyard.clients.placement import Placement
from steelyard.clients.queries import ask
from steelyard.consumers import PlacementConsumers
from steelyard.errors import (
    BadRequest,
    ConcurrentUpdate,
    Conflict,
    Forbidden,
    MicroversionTooLow,
    NoAccess,
    NotFound,
    ServiceError,
    SteelyardError,
)
from steelyard.traits import ProvidersRequest
from support.clients import canned_services
from support.clients.canned_services import Server

# openstacksdk uses features that it has deprecated itself.
pytestmark = pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)")

# The version document of Placement.
VERSION = {"id": "v1.0", "max_version": "1.39", "min_version": "1.0"}
LINKS = {"status": "CURRENT", "links": [{"rel": "self", "href": ""}]}
ROOT = {"versions": [VERSION | LINKS]}
CONCURRENT = "placement.concurrent_update"
REPEATED = b'{"errors": [], "errors": [{"code": "placement.concurrent_update"}]}'
PROVIDER = "e10927c4-8bc9-465d-ac60-d2f79f7e4a00"


@pytest.fixture
def server() -> Iterator[Server]:
    with canned_services.answering({"/": (200, json.dumps(ROOT).encode())}) as made:
        yield made


def placement(server: Server) -> Placement:
    open_to_all = session.Session(auth=noauth.NoAuth(endpoint=server.url))
    return Placement(adapter.Adapter(open_to_all, service_type="placement"))


def test_ask_uses_newest_common_microversion(server: Server) -> None:
    server.answers["/resource_providers"] = (200, b'{"resource_providers": []}')
    client = placement(server)
    for _ in range(2):
        assert ask(client, ProvidersRequest.parse("required=!A")) == {"resource_providers": []}
    assert server.asked == [
        ("/", "placement latest"),
        ("/resource_providers?required=!A", "placement 1.39"),
        ("/resource_providers?required=!A", "placement 1.39"),
    ]


def test_ask_rejects_request_that_placement_is_too_old_for(server: Server) -> None:
    server.answers["/"] = (200, json.dumps({"versions": [{"max_version": "1.21"}]}).encode())
    with pytest.raises(MicroversionTooLow, match=r"supports up to 1\.21: .*needs 1\.22"):
        ask(placement(server), ProvidersRequest.parse("required=!A"))
    assert [path for path, _ in server.asked] == ["/"]


def test_consumers_of_uses_canonical_uuid(server: Server) -> None:
    path = f"/resource_providers/{PROVIDER}/allocations"
    server.answers[path] = (200, b'{"allocations": {}}')
    client = PlacementConsumers(placement(server))
    for text in (PROVIDER.upper(), f"urn:uuid:{PROVIDER}", PROVIDER.replace("-", "")):
        assert list(client.consumers_of(provider=text)) == []
    assert {asked for asked, _ in server.asked} == {path}


def test_usages_rejects_invalid_consumer_type(server: Server) -> None:
    number: Any = 5
    with pytest.raises(BadRequest, match="invalid consumer type 5"):
        PlacementConsumers(placement(server)).usages("p", consumer_type=number)
    assert server.asked == []


def test_ask_rejects_anything_but_a_request(server: Server) -> None:
    text: Any = "required=!A"
    with pytest.raises(BadRequest, match="request: expected a ProvidersRequest or a Candidates"):
        ask(placement(server), text)
    assert server.asked == []


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (400, {"errors": [{"detail": "no\n such"}]}, BadRequest, "answered 400: no such"),
        (401, {"error": {"message": "who?"}}, NoAccess, "answered 401: who?"),
        (403, {"errors": [{"detail": None}]}, Forbidden, "answered 403: no reason given"),
        (404, {}, NotFound, "answered 404"),
        (406, {"errors": []}, MicroversionTooLow, "answered 406"),
        (409, {"errors": [{"detail": "again"}]}, Conflict, "answered 409: again"),
        (409, {"errors": [{"code": "placement.undefined_code"}]}, Conflict, "answered 409"),
        (409, {"errors": [{"code": CONCURRENT}]}, ConcurrentUpdate, "answered 409"),
        (409, b"<html>again</html>", Conflict, "answered 409: <html>again</html>"),
        (500, b"<html>oops</html>", ServiceError, "answered 500: <html>oops</html>"),
        (300, b"", ServiceError, "answered 300: no reason given"),
        (200, b"<html>log in</html>", ServiceError, "got <html>log in</html>; check its endp"),
        (200, b"\xff", ServiceError, "expected JSON"),
        (200, b'{"a": 1, "a": 2}', ServiceError, "expected JSON, got {"),
        (200, b"[" * 100_000, ServiceError, "expected JSON, got [[["),
        (500, b'{"errors": [{"detail": "x"}], "a": 1, "a": 2}', ServiceError, "answered 500: {"),
        (409, REPEATED, Conflict, "answered 409: {"),
        (409, b"[" * 100_000, Conflict, "answered 409: [[["),
    ],
)
def test_ask_raises_error_for_status(
    server: Server, status: int, body: Any, kind: Any, said: str
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    server.answers["/resource_providers"] = (status, content)
    with pytest.raises(SteelyardError) as caught:
        ask(placement(server), ProvidersRequest.parse(""))
    assert type(caught.value) is kind
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "body", [{}, [], {"versions": []}, {"versions": [{}]}, {"versions": [{"max_version": None}]}, 5]
)
def test_ask_rejects_server_that_is_not_placement(server: Server, body: Any) -> None:
    server.answers["/"] = (200, json.dumps(body).encode())
    with pytest.raises(ServiceError, match="expected its microversions, got"):
        ask(placement(server), ProvidersRequest.parse(""))


@pytest.fixture
def os_cloud(tmp_path: Any, monkeypatch: Any) -> Any:
    """Return a function that writes a clouds.yaml with the endpoint of the cloud "here"."""

    def write(endpoint: str) -> None:
        path = canned_services.describe(tmp_path, endpoint)
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))

    return write


def test_query_command_lists_providers_of_cloud(server: Server, os_cloud: Any, capsys: Any) -> None:
    os_cloud(server.url)
    server.answers["/resource_providers"] = (200, b'{"resource_providers": [{"name": "n1"}]}')
    found = {
        "allocation_requests": [{"allocations": {"u2": {}, "u1": {}}}],
        "provider_summaries": {"x": {}},
    }
    server.answers["/allocation_candidates"] = (200, json.dumps(found).encode())
    argv = ["query", "--resources", "VCPU:1", "--os-cloud", "here", "-f", "json"]
    assert cli.main([*argv, "--providers"]) == 0
    assert json.loads(capsys.readouterr().out)["providers"] == ["n1"]
    assert cli.main(argv) == 0
    assert json.loads(capsys.readouterr().out)["providers"] == ["u1", "u2"]


def test_query_command_reports_unreachable_cloud_in_one_line(os_cloud: Any, capsys: Any) -> None:
    os_cloud("http://127.0.0.1:9")
    assert cli.main(["query", "--resources", "VCPU:1", "--os-cloud", "here"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("steelyard: ")
    assert "internal error" not in err


def test_query_command_names_unknown_cloud(os_cloud: Any, capsys: Any) -> None:
    os_cloud("http://127.0.0.1:9")
    assert cli.main(["query", "--resources", "VCPU:1", "--os-cloud", "there"]) == 2
    assert "--os-cloud there: clouds.yaml has no cloud 'there'" in capsys.readouterr().err


PROVIDERS = "/resource_providers"
C1, C2, C3 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
BACKFILL = ["consumer", "backfill", "--type", "INSTANCE", "--project", "p", "--os-cloud", "here"]


@pytest.fixture
def consumers(server: Server, os_cloud: Any) -> dict[str, tuple[int, bytes]]:
    """Return the answers of a Placement with three consumers that have a type."""
    os_cloud(server.url)
    found = {
        "allocations": {PROVIDER: {"generation": 1, "resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": 1,
        "consumer_type": "INSTANCE",
    }
    several: Any = {"allocations": {C1: {}, C2: {}, C3: {}}}
    server.answers |= {
        PROVIDERS: (200, json.dumps({"resource_providers": [{"uuid": PROVIDER}]}).encode()),
        f"{PROVIDERS}/{PROVIDER}/allocations": (200, json.dumps(several).encode()),
        **{f"/allocations/{uuid}": (200, json.dumps(found).encode()) for uuid in (C1, C2, C3)},
    }
    return server.answers


def test_backfill_rejects_placement_without_types(
    server: Server, os_cloud: Any, capsys: Any
) -> None:
    os_cloud(server.url)
    old = {"versions": [VERSION | LINKS | {"max_version": "1.37"}]}
    server.answers["/"] = (200, json.dumps(old).encode())
    assert cli.main(BACKFILL) == 2
    out, err = capsys.readouterr()
    assert "supports microversions up to 1.37: consumer types need 1.38; upgrade Placement" in err
    assert out == ""
    assert not [path for path, _ in server.asked if path != "/"]


@pytest.mark.parametrize(
    ("status", "detail"), [(401, "who?"), (403, "not you"), (406, "Unacceptable version header")]
)
def test_backfill_stops_at_error_of_all_consumers(
    server: Server, consumers: Any, capsys: Any, status: int, detail: str
) -> None:
    body = {"errors": [{"detail": detail}]}
    consumers[f"/allocations/{C2}"] = (status, json.dumps(body).encode())
    assert cli.main([*BACKFILL, "-f", "json"]) == 2
    out, err = capsys.readouterr()
    reason = "already has type INSTANCE"
    assert json.loads(out)["outcomes"] == [{"outcome": "skipped", "consumers": 1, "reason": reason}]
    assert f"steelyard: Placement answered {status}: {detail}\n" in err
    assert "steelyard: stopped after 1 of 3 consumers; the listed ones are done" in err
    assert f"/allocations/{C3}" not in [path for path, _ in server.asked]


def test_backfill_continues_after_failed_consumer(consumers: Any, capsys: Any) -> None:
    consumers[f"/allocations/{C2}"] = (500, b'{"errors": [{"detail": "oops"}]}')
    assert cli.main([*BACKFILL, "--long", "-f", "csv", "--quote", "none"]) == 1
    out, err = capsys.readouterr()
    assert out.split() == [
        *["Consumer,Outcome,Reason", f"{C1},skipped,already", "has", "type", "INSTANCE"],
        *[f"{C2},failed,Placement", "answered", "500:", "oops"],
        *[f"{C3},skipped,already", "has", "type", "INSTANCE"],
    ]
    assert err == ""


@pytest.mark.parametrize("path", [PROVIDERS, f"{PROVIDERS}/{PROVIDER}/allocations"])
def test_backfill_reports_failed_listing(consumers: Any, capsys: Any, path: str) -> None:
    consumers[path] = (503, b"down")
    assert cli.main(BACKFILL) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "steelyard: Placement answered 503: down\n")


def test_backfill_shows_progress_on_terminal(consumers: Any, capsys: Any, monkeypatch: Any) -> None:
    seen: list[Any] = []

    def watched(uuids: Any, **options: Any) -> Any:
        seen.append((options["desc"], len(uuids), options["disable"]))
        return contextlib.nullcontext(uuids) if options["desc"] == "consumers" else uuids

    monkeypatch.setattr("tqdm.tqdm", watched)
    for terminal in (True, False):
        monkeypatch.setattr("sys.stderr.isatty", lambda terminal=terminal: terminal)
        assert cli.main(BACKFILL) == 0
    assert seen == [
        *[("resource providers", 1, False), ("consumers", 3, False)],
        *[("resource providers", 1, True), ("consumers", 3, True)],
    ]
    capsys.readouterr()
