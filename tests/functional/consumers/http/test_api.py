"""Requests to the HTTP API of consumers, and their answers."""

import email.utils
from typing import Any

import pytest

from steelyard.consumers import ConsumerStore
from support.consumers.in_process_api import CONSUMER, MOST, PROVIDER, Client
from support.consumers.store_laws import body as stored

URL = f"/allocations/{CONSUMER}"
OTHER = CONSUMER.replace("7", "8")


def body(generation: int | None = None, **changed: Any) -> dict[str, Any]:
    return {
        "allocations": {PROVIDER: {"resources": {"VCPU": 2, "MEMORY_MB": 512}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
        **changed,
    }


ONE = {"consumer_count": 1, "MEMORY_MB": 512, "VCPU": 2}


def test_written_allocations_are_read_and_written_back(ask: Client) -> None:
    assert ask("PUT", URL, body()).status == 204
    found = ask("GET", URL)
    assert (found.status, found.json) == (200, body(1))
    assert ask("PUT", URL, found.json).status == 204
    assert ask("GET", URL).json == body(2)
    assert ask("GET", f"/allocations/{OTHER}").json == {"allocations": {}}


def test_empty_answer_has_no_body_and_no_type(ask: Client) -> None:
    answer = ask("PUT", URL, body())
    assert (answer.status, answer.body) == (204, b"")
    assert "content-type" not in answer.headers


@pytest.mark.parametrize("target", [URL, "/usages?project_id=p"])
def test_answer_is_not_cached(ask: Client, target: str) -> None:
    headers = ask("GET", target).headers
    assert headers["cache-control"] == "no-cache"
    assert email.utils.parsedate_to_datetime(headers["last-modified"])


def test_deleted_consumer_cannot_be_deleted_again(ask: Client) -> None:
    ask("PUT", URL, body())
    assert ask("DELETE", URL).status == 204
    again = ask("DELETE", URL)
    assert (again.status, again.error["title"]) == (404, "Not Found")
    assert again.error["detail"] == f"consumer {CONSUMER} has no allocations"


def test_post_writes_all_consumers_or_none(ask: Client) -> None:
    ask("PUT", URL, body())
    both = {CONSUMER: body(1, consumer_type="MIGRATION"), OTHER: body(7)}
    conflict = ask("POST", "/allocations", both)
    assert (conflict.status, conflict.error["code"]) == (409, "placement.concurrent_update")
    assert ask("GET", URL).json == body(1)
    both[OTHER] = body()
    assert ask("POST", "/allocations", both).status == 204
    assert ask("GET", URL).json["consumer_type"] == "MIGRATION"


def test_reshape_writes_consumers_beside_empty_inventories(ask: Client) -> None:
    empty = {PROVIDER: {"resource_provider_generation": 1, "inventories": {}}}
    given: list[dict[str, Any]] = [{}, {"inventories": {}}, {"inventories": empty}]
    for generation, inventories in enumerate(given):
        sent = {"allocations": {CONSUMER: body(generation or None)}, **inventories}
        assert ask("POST", "/reshaper", sent).status == 204
    full = {PROVIDER: {"inventories": {"VCPU": {"total": 1}}}}
    refused = ask("POST", "/reshaper", {"allocations": {}, "inventories": full})
    assert (refused.status, refused.error["detail"].partition(":")[0]) == (
        400,
        f"$.inventories['{PROVIDER}'].inventories",
    )


def test_usages_are_by_type_or_of_one_type_or_of_all(ask: Client, store: ConsumerStore) -> None:
    ask("PUT", URL, body())
    store.put_allocations(OTHER, body(consumer_type="UNKNOWN", user_id="v"))
    for query, usages in {
        "project_id=p": {"INSTANCE": ONE, "UNKNOWN": ONE},
        "project_id=p&user_id=v": {"UNKNOWN": ONE},
        "project_id=q": {},
        "project_id=p&consumer_type=INSTANCE": {"INSTANCE": ONE},
        "project_id=p&consumer_type=MIGRATION": {},
        "project_id=p&consumer_type=UNKNOWN": {"UNKNOWN": ONE},
        "project_id=p&consumer_type=unknown": {"UNKNOWN": ONE},
        "project_id=p&consumer_type=all": {"all": {name: 2 * ONE[name] for name in ONE}},
        "project_id=q&project_id=p&user_id=v": {"UNKNOWN": ONE},  # the last one applies
        "project_id=%70&user_id=%76": {"UNKNOWN": ONE},
    }.items():
        answer = ask("GET", f"/usages?{query}")
        assert (answer.status, answer.json) == (200, {"usages": usages}), query


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("", "missing query parameter 'project_id'"),
        ("user_id=u", "missing query parameter 'project_id'"),
        ("project_id=", "$.project_id: '' should be non-empty"),
        ("project_id=p&user_id=", "$.user_id: '' should be non-empty"),
        ("project_id=p&consumer_type=small", "invalid consumer type 'small': expected 1 to 255"),
        ("project_id=p&consumer_type=", "invalid consumer type '': expected 1 to 255"),
        ("project_id=p&project=q", "unknown query parameter 'project': expected project_id, user"),
        ("project_id=%FF", "invalid query: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_malformed_query_is_rejected(ask: Client, query: str, detail: str) -> None:
    answer = ask("GET", f"/usages?{query}")
    assert (answer.status, answer.error["detail"][: len(detail)]) == (400, detail)


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        ({"consumer_type": ...}, "$: 'consumer_type' is a required property"),
        ({"consumer_type": "small"}, "$.consumer_type: 'small' does not match '^[A-Z0-9_]+$'"),
        ({"consumer_type": "unknown"}, "$.consumer_type: 'unknown' does not match"),
        ({"consumer_generation": "1"}, "$.consumer_generation: '1' is not of type 'integer'"),
        (
            {"allocations": {PROVIDER: {"resources": {"VCPU": 0}}}},
            f"$.allocations['{PROVIDER}'].resources.VCPU: 0 is less than the minimum of 1",
        ),
    ],
)
def test_malformed_body_is_rejected_with_the_path_of_the_fault(
    ask: Client, said: dict[str, Any], detail: str
) -> None:
    whole = {name: value for name, value in body(**said).items() if value is not ...}
    one = ask("PUT", URL, whole)
    assert (one.status, one.error["detail"][: len(detail)]) == (400, detail)
    several = ask("POST", "/allocations", {CONSUMER: whole})
    assert (several.status, several.error["detail"][: len(detail) + 40]) == (
        400,
        detail.replace("$", f"$['{CONSUMER}']", 1),
    )
    assert ask("GET", URL).json == {"allocations": {}}


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_malformed_uuid_is_rejected(ask: Client, method: str) -> None:
    answer = ask(method, "/allocations/mine", body() if method == "PUT" else None)
    assert answer.status == 400
    assert answer.error["detail"].startswith("consumer: invalid UUID 'mine'")


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"", "invalid JSON in the body: Expecting value"),
        (b"{", "invalid JSON in the body: Expecting property name"),
        (b"\xff", "invalid JSON in the body: 'utf-8' codec"),
        (b'{"a": 1, "a": 2}', "invalid JSON in the body: duplicate key 'a'"),
        (b"[" * 3000, "invalid JSON in the body: objects and lists are nested too deeply"),
        (b"[NaN]", "invalid JSON in the body: invalid number NaN"),
        (b"[]", "$: [] is not of type 'object'"),
    ],
)
def test_body_that_is_not_an_object_in_json_is_rejected(
    ask: Client, data: bytes, detail: str
) -> None:
    answer = ask("PUT", URL, body=data, headers=[("Content-Type", "application/json")])
    assert (answer.status, answer.error["detail"][: len(detail)]) == (400, detail)


def test_body_above_the_limit_is_rejected(ask: Client) -> None:
    for more in ({}, {"chunked": True}):
        kind = [("Content-Type", "application/json")]
        answer = ask("PUT", URL, body=b" " * (MOST + 1), headers=kind, **more)
        assert (answer.status, answer.error["code"]) == (413, "placement.undefined_code")
        assert answer.error["detail"] == f"request too large: expected at most {MOST} bytes"


def test_media_types_are_checked_as_in_placement(ask: Client) -> None:
    assert ask("PUT", URL, body=b"{}", headers=[("Content-Type", "text/plain")]).status == 415
    assert ask("PUT", URL).status == 415
    for charset, status in {"utf-8": 400, "latin-1": 415}.items():
        kind = [("Content-Type", f"application/json; charset={charset}")]
        assert ask("PUT", URL, body=b"{}", headers=kind).status == status
    untyped = ask("PUT", URL, body=b"{}")
    assert (untyped.status, untyped.error["detail"]) == (
        400,
        "missing header Content-Type: the request has a body",
    )
    for accepted, status in {"*/*": 200, "application/json;q=0.5": 200, "text/html": 406}.items():
        assert ask("GET", URL, headers=[("Accept", accepted)]).status == status


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("POST", URL, {"GET", "PUT", "DELETE"}),
        ("GET", "/allocations", {"POST"}),
        ("DELETE", "/usages", {"GET"}),
        ("GET", "/reshaper", {"POST"}),
        ("PUT", "/", {"GET", "HEAD"}),
        ("OPTIONS", "/allocations", {"POST"}),
        ("OPTIONS", URL, {"GET", "PUT", "DELETE"}),
    ],
)
def test_unsupported_method_is_a_405_with_the_supported_ones(
    ask: Client, method: str, target: str, allowed: set[str]
) -> None:
    answer = ask(method, target)
    assert (answer.status, answer.error["title"]) == (405, "Method Not Allowed")
    assert set(answer.headers["allow"].split(", ")) == allowed


@pytest.mark.parametrize(
    "target", ["/resource_providers", "/usages/", "/allocations/", "/allocations/a/b", "//"]
)
def test_unknown_path_is_a_404(ask: Client, target: str) -> None:
    answer = ask("GET", target)
    assert answer.status == 404
    assert answer.error["detail"].endswith("see /openapi.json")


def test_answers_of_the_store_are_those_of_its_methods(ask: Client, store: ConsumerStore) -> None:
    sent = stored(None, p1={"VCPU": 1})
    store.put_allocations(CONSUMER, sent)
    assert ask("GET", URL).json == store.get_allocations(CONSUMER)
    target = f"/usages?project_id={sent['project_id']}"
    assert ask("GET", target).json == store.usages(sent["project_id"])
