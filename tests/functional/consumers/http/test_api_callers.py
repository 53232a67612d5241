"""The microversions and callers of the HTTP API of consumers, and its public paths."""

from typing import Any

import pytest

from steelyard import errors
from steelyard.consumers import ConsumerStore
from steelyard.consumers.http.api import make_application
from support.consumers.in_process_api import (
    CONSUMER,
    PROXY,
    STRANGER,
    Client,
    configuration,
    headers,
)
from support.consumers.store_laws import body
from support.web.wsgi_client import WsgiClient

URL = f"/allocations/{CONSUMER}"
PUBLIC = ["/", "/health", "/openapi.json"]
READING = ["/usages?project_id=p"]
ADMINISTRATION = [
    ("GET", URL),
    ("PUT", URL),
    ("DELETE", URL),
    ("POST", "/allocations"),
    ("POST", "/reshaper"),
]


def test_discovery_names_the_only_microversion(ask: Client) -> None:
    (version,) = ask("GET", "/").json["versions"]
    assert (version["min_version"], version["max_version"]) == ("1.38", "1.38")
    assert (version["status"], version["links"]) == ("CURRENT", [{"rel": "self", "href": ""}])
    assert ask("GET", "", SCRIPT_NAME="/placement").json["versions"] == [version]


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("placement 1.38", 200),
        ("placement latest", 200),
        ("compute 2.1", 200),
        ("placement", 200),
        ("Placement  1.38 , compute 2.1", 200),
        ("placement 1.37, placement 1.38", 200),
        ("placement 1.038", 200),
        ("placement 1.39", 406),
        ("placement 1.0", 406),
        ("placement 1.38, placement 1.37", 406),
        ("placement Latest", 400),
        ("placement 1", 400),
        ("placement 1.38.1", 400),
    ],
)
@pytest.mark.parametrize("target", ["/", *READING])
def test_other_microversions_are_refused(
    ask: Client, target: str, version: str, status: int
) -> None:
    answer = ask("GET", target, headers=[("OpenStack-API-Version", version)])
    assert answer.status == status
    assert answer.headers["openstack-api-version"] == "placement 1.38"
    assert "OpenStack-API-Version" in answer.headers["vary"]
    if status == 406:
        assert (answer.error["min_version"], answer.error["max_version"]) == ("1.38", "1.38")


def test_every_error_has_the_fields_of_placements(ask: Client) -> None:
    for answer in (
        ask("GET", "/usages"),
        ask("GET", "/cows"),
        ask("GET", "/", headers=[("OpenStack-API-Version", "placement 1.1")]),
        WsgiClient(make_application(ConsumerStore("sqlite://"), configuration()), (), PROXY)(
            "GET", URL
        ),
    ):
        found = dict(answer.error)
        assert found.pop("status") == answer.status
        assert found.pop("request_id") == answer.headers["x-openstack-request-id"]
        assert found.pop("code") == "placement.undefined_code"
        assert all(found[name] for name in ("title", "detail"))


@pytest.mark.parametrize(
    ("roles", "may"),
    [("admin", True), ("SERVICE,reader", True), ("member,reader", False), ("", False)],
)
@pytest.mark.parametrize("request_line", ADMINISTRATION, ids=" ".join)
def test_administrators_and_services_have_access_to_allocations(
    store: ConsumerStore, request_line: tuple[str, str], roles: str, *, may: bool
) -> None:
    client = WsgiClient(make_application(store, configuration()), headers(roles=roles), PROXY)
    answer = client(*request_line, {})
    assert (answer.status == 403) is not may
    if not may:
        assert answer.error["detail"] == (
            "the roles of the caller do not suffice: expected one of the roles admin and service"
        )


@pytest.mark.parametrize(
    ("project", "roles", "status"),
    [
        ("p", "member,reader", 200),
        ("q", "reader", 403),
        ("p", "member", 403),
        ("q", "admin", 200),
        ("q", "Service", 200),
    ],
)
def test_readers_have_access_to_the_usages_of_their_project(
    store: ConsumerStore, project: str, roles: str, status: int
) -> None:
    client = WsgiClient(make_application(store, configuration()), headers(project, roles), PROXY)
    assert client("GET", READING[0]).status == status
    assert client("GET", "/usages").status == (400 if status == 200 and project == "q" else 403)


@pytest.mark.parametrize("missing", range(2))
def test_request_without_identity_is_a_401(store: ConsumerStore, missing: int) -> None:
    sent = [header for number, header in enumerate(headers()) if number != missing]
    client = WsgiClient(make_application(store, configuration()), sent, PROXY)
    for method, target in [*ADMINISTRATION, ("GET", READING[0]), ("GET", "/cows")]:
        answer = client(method, target)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == 'Keystone realm="placement"'


@pytest.mark.parametrize("project", [(), (("X-Project-Id", ""),)])
def test_token_without_a_project_is_a_403(
    store: ConsumerStore, project: tuple[tuple[str, str], ...]
) -> None:
    sent = [*headers()[1:], *project, ("X-Identity-Status", "Confirmed")]
    client = WsgiClient(make_application(store, configuration()), sent, STRANGER)
    passed: dict[str, Any] = {"keystone.token_auth": object()}
    for method, target in [*ADMINISTRATION, ("GET", READING[0])]:
        answer = client(method, target, **passed)
        assert answer.status == 403
        assert answer.error["detail"].startswith("the token has no project: ")


def test_stranger_cannot_name_itself(store: ConsumerStore) -> None:
    assert Client(store, address=STRANGER)("GET", READING[0]).status == 401


@pytest.mark.parametrize("target", PUBLIC)
def test_public_path_needs_no_identity(store: ConsumerStore, target: str) -> None:
    client = WsgiClient(make_application(store, configuration()), (), STRANGER)
    assert client("GET", target, headers=[("Accept", "text/html")]).status == 200
    assert client("HEAD", target).body == b""


def test_health_fails_without_tables(caplog: Any) -> None:
    answer = Client(ConsumerStore("sqlite://"))("GET", "/health")
    assert (answer.status, answer.json) == (
        503,
        {"healthy": False, "checks": {"database": "upgrade needed"}},
    )
    assert "the tables of consumers are missing" in caplog.text


def test_health_check_that_passes_logs_nothing(ask: Client, caplog: Any) -> None:
    caplog.set_level("INFO")
    caplog.clear()
    assert ask("GET", "/health").status == 200
    assert caplog.text == ""


def test_missing_tables_are_a_503_that_names_the_upgrade(caplog: Any) -> None:
    answer = Client(ConsumerStore("sqlite://"))("GET", URL)
    assert answer.status == 503
    assert answer.error["detail"] == (
        "the tables of consumers are missing or outdated; correct the database URL of the service, "
        "or run 'steelyard db upgrade --url URL'"
    )
    assert "no such table" in caplog.text


def test_missing_column_is_a_503_that_names_the_upgrade(ask: Client, store: ConsumerStore) -> None:
    store.downgrade("0003")
    answer = ask("PUT", URL, body(p1={"VCPU": 1}))
    assert answer.status == 503
    assert "are missing or outdated; " in answer.error["detail"]
    assert ask("GET", "/health").json["checks"] == {"database": "upgrade needed"}


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (errors.TransactionAborted("hunter2"), "aborted the transaction, and nothing was changed;"),
        (errors.NoAccess("hunter2"), "the database is unreachable; try again later"),
    ],
)
def test_failure_of_the_database_is_a_503_that_says_what_to_do(
    ask: Client, monkeypatch: pytest.MonkeyPatch, raised: Exception, told: str
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(ConsumerStore, "get_allocations", fail)
    answer = ask("GET", URL)
    assert answer.status == 503
    assert told in answer.error["detail"]
    assert answer.error["request_id"] in answer.error["detail"]
    assert "hunter2" not in answer.error["detail"]


def test_internal_error_is_a_500_without_details(
    ask: Client, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("hunter2")

    monkeypatch.setattr(ConsumerStore, "get_allocations", fail)
    answer = ask("GET", URL)
    assert answer.status == 500
    assert answer.error["detail"] == (
        f"internal error; see {answer.error['request_id']} in the log of the consumer service"
    )
    assert "hunter2" in caplog.text


def test_invalid_proxy_is_rejected(store: ConsumerStore) -> None:
    message = r"trusted_proxies in \[steelyard_consumers\]: 'nowhere'"
    with pytest.raises(errors.BadRequest, match=message):
        make_application(store, configuration(trusted_proxies=["nowhere"]))
