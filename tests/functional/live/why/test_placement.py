"""A Placement that rejects, fails or misbehaves while it is asked for candidates."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.analysis.why.placement_view import CandidateRoot, ClassUsage
from steelyard.errors import BadRequest, Forbidden, NoAccess, ServiceError
from steelyard.live.why.placement import LivePlacement
from steelyard.traits import CandidatesRequest, ProvidersRequest
from support.clients import canned_services
from support.clients.canned_services import Server
from support.live.canned_look import clients, encoded

ROOT = "00000000-0000-4000-8000-000000000001"
CANDIDATES, PROVIDERS = CandidatesRequest.path, ProvidersRequest.path
REQUEST = CandidatesRequest.parse("resources=VCPU:1")
USAGE = {"VCPU": {"capacity": 8, "used": 3}}
SUMMARY = {"resources": USAGE, "traits": ["CUSTOM_A"], "root_provider_uuid": ROOT}
ALLOCATION = {"allocations": {ROOT: {"resources": {"VCPU": 1}}}}
ANSWER = {"allocation_requests": [ALLOCATION], "provider_summaries": {ROOT: SUMMARY}}


@pytest.fixture
def server() -> Iterator[Server]:
    answers = {
        "/": encoded({"versions": [{"max_version": "1.39"}]}),
        CANDIDATES: encoded(ANSWER),
        PROVIDERS: encoded(
            {"resource_providers": [{"uuid": ROOT, "name": "n", "root_provider_uuid": ROOT}]}
        ),
    }
    with canned_services.answering(answers) as made:
        yield made


def live(server: Server) -> LivePlacement:
    placement = clients(server.url).placement
    assert placement is not None
    return LivePlacement(placement)


def test_answers_are_parsed_and_counted(server: Server) -> None:
    placement = live(server)
    found = placement.candidates(REQUEST)
    root = CandidateRoot(ROOT, "", {"VCPU": ClassUsage(8, 3)}, frozenset({"CUSTOM_A"}))
    assert (found.roots, found.requests) == ({ROOT: root}, 1)
    assert placement.providers(ProvidersRequest()) == {ROOT}
    assert {version for _, version in server.asked[1:]} == {"placement 1.39"}


def test_root_that_supplies_nothing_is_no_host(server: Server) -> None:
    # Nova takes only hosts whose own provider is in an allocation.
    below, other = (ROOT.replace("1", digit) for digit in "23")
    shared = SUMMARY | {"traits": ["MISC_SHARES_VIA_AGGREGATE"]}
    allocation: dict[str, Any] = {"allocations": {other: {}, below: {}}}
    summaries = {ROOT: SUMMARY, below: shared, other: SUMMARY | {"root_provider_uuid": other}}
    server.answers[CANDIDATES] = encoded(
        {"allocation_requests": [allocation], "provider_summaries": summaries}
    )
    found = live(server).candidates(REQUEST)
    assert (set(found.roots), found.requests) == ({other}, 1)


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"allocation_requests": []},
        ANSWER | {"allocation_requests": [{"allocations": []}]},
        ANSWER | {"allocation_requests": [{"allocations": {"unknown": {}}}]},
        ANSWER | {"provider_summaries": {ROOT: {"traits": []}}},
        ANSWER | {"provider_summaries": {ROOT: SUMMARY | {"root_provider_uuid": "other"}}},
        ANSWER | {"provider_summaries": {ROOT: SUMMARY | {"resources": {"VCPU": {"used": 1}}}}},
        ANSWER | {"provider_summaries": {ROOT: SUMMARY | {"traits": None}}},
    ],
)
def test_malformed_answer_is_a_service_error(server: Server, answer: Any) -> None:
    server.answers[CANDIDATES] = server.answers[PROVIDERS] = encoded(answer)
    with pytest.raises(ServiceError, match=f"invalid content in {CANDIDATES} "):
        live(server).candidates(REQUEST)
    with pytest.raises(ServiceError, match=f"invalid content in {PROVIDERS} "):
        live(server).providers(ProvidersRequest())


@pytest.mark.parametrize(
    ("status", "kind"), [(400, BadRequest), (403, Forbidden), (401, NoAccess), (500, ServiceError)]
)
def test_rejection_has_reason_of_placement(server: Server, status: int, kind: type) -> None:
    body = json.dumps({"errors": [{"detail": "not that"}]}).encode()
    server.answers[CANDIDATES] = status, body
    with pytest.raises(kind, match=f"^Placement answered {status}: not that$"):
        live(server).candidates(REQUEST)


@pytest.mark.parametrize(
    ("newest", "message", "requests"),
    [
        ("1.31", r"^this Placement supports up to 1\.31: .*; upgrade Placement$", 1),
        ("1.16", r"^this Placement supports up to microversion 1\.16, and the traits", 0),
    ],
)
def test_older_placement_is_no_bad_request(
    server: Server, newest: str, message: str, requests: int
) -> None:
    server.answers["/"] = encoded({"versions": [{"max_version": newest}]})
    placement = live(server)
    with pytest.raises(ServiceError, match=message) as raised:
        placement.candidates(CandidatesRequest.parse("resources=VCPU:1&root_required=!CUSTOM_A"))
    assert not isinstance(raised.value, BadRequest)
