"""Callers of the HTTP API of instance tags: trusted proxies, the middleware and the system."""

from typing import Any

import pytest

from steelyard import errors
from steelyard.tags import TagService
from steelyard.tags.http import api
from steelyard.web.callers import Trust
from support.tags import in_process_api
from support.tags.in_process_api import (
    ALL,
    PROXY,
    ROUTES,
    STRANGER,
    SYSTEM,
    SYSTEM_PROXY,
    Client,
    P,
    there,
)

pytestmark = pytest.mark.usefixtures("closed_databases")


def test_only_trusted_proxies_may_set_caller_headers(application: Any) -> None:
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
def test_untrusted_address_is_unauthorized_with_any_header(application: Any, headers: Any) -> None:
    ask = Client(application, (*P, *headers), STRANGER)
    assert ask("GET", ALL).fault[0] == "unauthorized"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], "X-Project-Id is missing or empty"),
        ([P[0]], "X-User-Id is missing or empty"),
        ([P[1]], "X-Project-Id is missing or empty"),
        ([("X-Project-Id", ""), P[1]], "X-Project-Id is missing or empty"),
        ([P[0], ("X-User-Id", " ")], "invalid X-User-Id ' ': expected one value"),
        ([*P, ("X-Project-Id", "q")], "invalid X-Project-Id 'p, q': expected one value"),
        ([*P, *P], "invalid X-Project-Id 'p, p': expected one value"),
        ([("X-Project-Id", "p,q"), P[1]], "invalid X-Project-Id 'p,q'"),
        ([("X-Project-Id", "p" * 256), P[1]], "1 to 255 ASCII characters"),
        ([("X-Project-Id", "p\xe9"), P[1]], "invalid X-Project-Id 'p\\xe9'"),
        ([("X-Project-Id", "p\xc3\xa9"), P[1]], "invalid X-Project-Id 'p\\xc3\\xa9'"),
        ([("X-Project-Id", "p\x00"), P[1]], "invalid X-Project-Id 'p\\x00'"),
        ([("X-Project-Id", "p\n"), P[1]], "invalid X-Project-Id 'p\\n'"),
        ([("X-Project-Id", "p\x7f"), P[1]], "invalid X-Project-Id 'p\\x7f'"),
    ],
)
def test_invalid_caller_headers_are_named(application: Any, headers: Any, expected: str) -> None:
    name, message = Client(application, headers)("GET", ALL).fault
    assert name == "unauthorized"
    assert expected in message


def test_longest_project_id_and_explicit_owner_are_accepted(application: Any) -> None:
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
def test_untrusted_or_invalid_tag_owner_is_rejected(
    application: Any, address: str, owner: str
) -> None:
    ask = Client(application, [*P, ("X-Tag-Owner", owner)], address)
    name, message = ask("GET", ALL).fault
    assert name == "unauthorized"
    assert message.startswith("invalid X-Tag-Owner ")
    assert message.isascii()


def test_system_proxy_also_serves_users(application: Any, system: Client) -> None:
    assert system("PUT", ALL + "/s").status == 201
    assert there(Client(application, P, SYSTEM_PROXY)) == []


def test_middleware_replaces_trust_in_addresses(application: Any) -> None:
    # The middleware is recognized by an object in the environment, which no header can forge.
    confirmed = ("X-Identity-Status", "Confirmed")
    passed: dict[str, Any] = {"keystone.token_auth": object()}
    for address in (STRANGER, PROXY, SYSTEM_PROXY):
        ask = Client(application, P, address)
        assert ask("GET", ALL, headers=[confirmed], **passed).status == 200
        assert ask("GET", ALL, **passed).status == 401
        for status in ("Invalid", "confirmed", "Confirmed, Confirmed"):
            answer = ask("GET", ALL, headers=[("X-Identity-Status", status)], **passed)
            assert answer.fault == ("unauthorized", "the token is missing or invalid")
        answer = ask("GET", ALL, headers=[confirmed, SYSTEM], **passed)
        assert answer.fault[0] == "unauthorized"
        unscoped = Client(application, [P[1], confirmed], address)
        name, message = unscoped("GET", ALL, **passed).fault
        assert name == "forbidden"
        assert message.startswith("the token has no project: ")


@pytest.mark.parametrize(("method", "tail"), ROUTES)
def test_every_route_requires_a_caller(application: Any, method: str, tail: str) -> None:
    ask = Client(application, P, STRANGER)
    assert ask(method, ALL + tail, {"tags": []}).status == 401
    assert ask("POST", "/servers", {"server": {"name": "vm-new"}}).status == 401


def test_openapi_description_needs_no_caller(application: Any) -> None:
    assert Client(application, (), STRANGER)("GET", "/openapi.json").status == 200


@pytest.mark.parametrize("bad", ["10.0.0.0/33", "10.0.0.1/16", "proxy.example.org", "", "10.0.0"])
@pytest.mark.parametrize("option", ["trusted_proxies", "system_proxies"])
def test_invalid_proxy_address_stops_the_start(service: TagService, option: str, bad: str) -> None:
    conf = in_process_api.configuration(**{option: [PROXY, bad]})
    with pytest.raises(errors.BadRequest, match=rf"^{option} in \[steelyard_tags\]: "):
        api.make_application(service, conf)


def test_system_proxies_must_be_within_trusted_proxies(service: TagService) -> None:
    with pytest.raises(errors.BadRequest, match=r"^system: '10.0.0.0/8' is not within proxies; "):
        Trust.parse(["10.0.0.0/16", "::/0"], ["10.0.0.0/8"])
    conf = in_process_api.configuration(
        trusted_proxies=["10.0.0.0/16"], system_proxies=["10.0.0.0/8"]
    )
    with pytest.raises(errors.BadRequest, match=r"^system_proxies in .* within trusted_proxies in"):
        api.make_application(service, conf)
    trust = Trust.parse(["10.0.0.0/16", "fe80::/10"], ["10.0.1.0/24", "fe80::1"])
    assert [str(each) for each in trust.system] == ["10.0.1.0/24", "fe80::1/128"]
