"""Requests generated from the description of the HTTP API, behind keystonemiddleware."""

import json
from collections.abc import Iterator
from typing import Any

import hypothesis
import openapi_spec_validator
import pytest
import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

from steelyard.tags.http import api, openapi, schemas
from steelyard.tags.names import TAG_FILTERS, Owner
from steelyard.web.callers import Trust
from support.examples import examples
from support.tags import in_process_api
from support.tags.in_process_api import MINE, PROXY, Client
from support.web.keystone import behind_keystone, knowing

TOKEN = {"X-Auth-Token": "a-token-of-p"}
# No schema can express the length of an encoded name or the number of existing tags.
BEYOND_SCHEMAS = ("when encoded", "too many tags")

SERVICE = in_process_api.service("sqlite://")
application = behind_keystone(
    api.make_application(
        SERVICE, in_process_api.configuration(trusted_proxies=[], system_proxies=[])
    )
)
schema = schemathesis.openapi.from_wsgi("/openapi.json", application)
settings = hypothesis.settings(deadline=None, suppress_health_check=list(hypothesis.HealthCheck))


@pytest.fixture(autouse=True)
def keystone() -> Iterator[None]:
    """Provide a Keystone that knows one token, of an administrator."""
    with knowing({TOKEN["X-Auth-Token"]: "admin"}):
        yield


def check(case: Any, response: Any) -> None:
    beyond = response.status_code == 400 and any(text in response.text for text in BEYOND_SCHEMAS)
    excluded = [positive_data_acceptance] if beyond else []
    case.validate_response(response, headers=TOKEN, excluded_checks=excluded)


@schema.parametrize()
@hypothesis.settings(settings, max_examples=examples(15))
def test_generated_requests_are_answered_as_described(case: Any) -> None:
    valid = case.meta is not None and case.meta.generation.mode.is_positive
    if valid and "server" in case.path_parameters:
        case.path_parameters["server"] = MINE  # random ids hardly ever match a server
    check(case, case.call(headers=TOKEN))
    SERVICE.jobs.poll()


class Sequences(schema.as_state_machine()):  # type: ignore[misc]
    """Requests in sequence: servers are created, then requested by their ids."""

    def get_call_kwargs(self, case: Any) -> dict[str, Any]:
        return {"headers": TOKEN}

    def validate_response(self, response: Any, case: Any, **_: Any) -> None:
        check(case, response)
        SERVICE.jobs.poll()


def test_generated_sequences_are_answered_as_described() -> None:
    hypothesis.stateful.run_state_machine_as_test(
        Sequences,
        settings=hypothesis.settings(settings, max_examples=examples(5), stateful_step_count=10),
    )


def test_caller_needs_a_valid_token() -> None:
    case = schema["/servers/{server}/tags"]["GET"].Case(path_parameters={"server": MINE})
    forged = {"X-Identity-Status": "Confirmed", "X-Project-Id": "p", "X-User-Id": "u"}
    assert case.call(headers=TOKEN).status_code == 200
    assert case.call(headers=forged).status_code == 401
    assert case.call(headers={**forged, "X-Auth-Token": "another"}).status_code == 401
    assert case.call(headers={**TOKEN, "X-Tag-Owner": "system"}).status_code == 401
    # The middleware drops the forged header.
    assert case.call(headers={**TOKEN, "X-Project-Id": "q"}).status_code == 200


def test_description_is_valid_and_has_the_schemas() -> None:
    description = Client(api.make_application(SERVICE, in_process_api.configuration()))(
        "GET", "/openapi.json"
    ).json
    openapi_spec_validator.validate(description)
    assert description == json.loads(json.dumps(openapi.description(Trust.parse([PROXY]))))
    assert description["components"]["schemas"]["Tags"] == json.loads(
        json.dumps(schemas.tags(Owner.USER))
    )


@pytest.mark.parametrize(
    ("proxies", "keys"),
    [([], {"X-Auth-Token"}), ([PROXY], {"X-Project-Id", "X-User-Id"})],
    ids=["by a token", "by a proxy"],
)
def test_description_names_the_headers_of_callers(proxies: list[str], keys: set[str]) -> None:
    conf = in_process_api.configuration(trusted_proxies=proxies, system_proxies=[])
    description = Client(api.make_application(SERVICE, conf))("GET", "/openapi.json").json
    openapi_spec_validator.validate(description)
    (together,) = description["security"]
    schemes = description["components"]["securitySchemes"]
    assert together.keys() == schemes.keys()
    assert {each["name"] for each in schemes.values()} == keys


def test_description_names_the_filters_that_requests_may_have() -> None:
    assert list(openapi._FILTERS) == list(TAG_FILTERS)
