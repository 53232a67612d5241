"""Placement over HTTP, as a keystoneauth session and openstacksdk reach it: when it is none, too."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import canned_services
import pytest
from canned_services import Server
from keystoneauth1 import adapter, noauth, session

from steelyard import cli
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
from steelyard.placement import Placement
from steelyard.traits import ProvidersRequest
from steelyard.traits.asking import ask

# What openstacksdk deprecates of itself.
pytestmark = pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)")

# What a Placement says of itself.
VERSION = {"id": "v1.0", "max_version": "1.39", "min_version": "1.0"}
LINKS = {"status": "CURRENT", "links": [{"rel": "self", "href": ""}]}
ROOT = {"versions": [VERSION | LINKS]}
CONCURRENT = "placement.concurrent_update"


@pytest.fixture
def server() -> Iterator[Server]:
    with canned_services.answering({"/": (200, json.dumps(ROOT).encode())}) as made:
        yield made


def placement(server: Server) -> Placement:
    open_to_all = session.Session(auth=noauth.NoAuth(endpoint=server.url))
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
        path = canned_services.describe(tmp_path, endpoint)
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))

    return write


def test_the_command_asks_a_cloud(server: Server, os_cloud: Any, capsys: Any) -> None:
    os_cloud(server.url)
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


PROVIDERS = "/resource_providers"
C1, C2, C3 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
BACKFILL = ["consumer", "backfill", "--type", "INSTANCE", "--project", "p", "--os-cloud", "here"]


@pytest.fixture
def consumers(server: Server, os_cloud: Any) -> dict[str, tuple[int, bytes]]:
    """A Placement with three consumers who have their type; the answers about each."""
    os_cloud(server.url)
    found = {
        "allocations": {"r": {"generation": 1, "resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": 1,
        "consumer_type": "INSTANCE",
    }
    several: Any = {"allocations": {C1: {}, C2: {}, C3: {}}}
    server.answers |= {
        PROVIDERS: (200, json.dumps({"resource_providers": [{"uuid": "r"}]}).encode()),
        f"{PROVIDERS}/r/allocations": (200, json.dumps(several).encode()),
        **{f"/allocations/{uuid}": (200, json.dumps(found).encode()) for uuid in (C1, C2, C3)},
    }
    return server.answers


def test_a_backfill_needs_a_placement_with_types(
    server: Server, os_cloud: Any, capsys: Any
) -> None:
    os_cloud(server.url)
    old = {"versions": [VERSION | LINKS | {"max_version": "1.37"}]}
    server.answers["/"] = (200, json.dumps(old).encode())
    assert cli.main(BACKFILL) == 2
    out, err = capsys.readouterr()
    assert "speaks up to 1.37: consumers have types from 1.38 on; upgrade Placement" in err
    assert out == ""
    assert not [path for path, _ in server.asked if path != "/"]


@pytest.mark.parametrize(
    ("status", "detail"), [(401, "who?"), (403, "not you"), (406, "Unacceptable version header")]
)
def test_a_backfill_stops_at_what_all_would_meet(
    server: Server, consumers: Any, capsys: Any, status: int, detail: str
) -> None:
    body = {"errors": [{"detail": detail}]}
    consumers[f"/allocations/{C2}"] = (status, json.dumps(body).encode())
    assert cli.main([*BACKFILL, "-f", "json"]) == 2
    out, err = capsys.readouterr()
    reason = "has the type INSTANCE already"
    assert json.loads(out) == [{"Outcome": "skipped", "Consumers": 1, "Reason": reason}]
    assert f"steelyard: Placement answered {status}: {detail}\n" in err
    assert "steelyard: stopped after 1 of 3 consumers; what is listed is done" in err
    assert f"/allocations/{C3}" not in [path for path, _ in server.asked]


def test_a_backfill_goes_on_where_one_consumer_fails(consumers: Any, capsys: Any) -> None:
    consumers[f"/allocations/{C2}"] = (500, b'{"errors": [{"detail": "oops"}]}')
    assert cli.main([*BACKFILL, "--long", "-f", "csv", "--quote", "none"]) == 1
    out, err = capsys.readouterr()
    assert out.split() == [
        *["Consumer,Outcome,Reason", f"{C1},skipped,has", "the", "type", "INSTANCE", "already"],
        *[f"{C2},failed,Placement", "answered", "500:", "oops"],
        *[f"{C3},skipped,has", "the", "type", "INSTANCE", "already"],
    ]
    assert err == ""


@pytest.mark.parametrize("path", [PROVIDERS, f"{PROVIDERS}/r/allocations"])
def test_a_backfill_that_cannot_begin_says_why(consumers: Any, capsys: Any, path: str) -> None:
    consumers[path] = (503, b"down")
    assert cli.main(BACKFILL) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "steelyard: Placement answered 503: down\n")


def test_a_backfill_shows_how_far_it_is(consumers: Any, capsys: Any, monkeypatch: Any) -> None:
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
