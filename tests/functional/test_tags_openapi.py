"""What the description of the HTTP API lets one ask, asked: with keystonemiddleware in front."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

import hypothesis
import openapi_spec_validator
import pytest
import schemathesis
import tag_apis
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tag_apis import MINE, PROXY, STRANGER, Client

from steelyard.tags import api, openapi, schemas
from steelyard.tags.callers import Trust
from steelyard.tags.names import Owner

with warnings.catch_warnings():
    # What WebOb imports warns of its own end.
    warnings.simplefilter("ignore")
    from keystonemiddleware import auth_token, fixture

TOKEN = {"X-Auth-Token": "a-token-of-p"}
# No schema can say how long a name is when it is encoded, or what is there already.
BEYOND_SCHEMAS = ("too long when it is encoded", "an instance has at most")

SERVICE = tag_apis.service("sqlite://")
BEHIND = auth_token.AuthProtocol(
    api.make_application(SERVICE, tag_apis.configuration(trusted_proxies=[], system_proxies=[])),
    {"delay_auth_decision": True, "www_authenticate_uri": "http://keystone.invalid"},
)


def application(environ: dict[str, Any], start_response: Any) -> Any:
    """The API as it stands in production, asked from anywhere."""
    return BEHIND({**environ, "REMOTE_ADDR": STRANGER}, start_response)


schema = schemathesis.openapi.from_wsgi("/openapi.json", application)
settings = hypothesis.settings(
    deadline=None, suppress_health_check=list(hypothesis.HealthCheck), derandomize=True
)


@pytest.fixture(autouse=True)
def keystone() -> Iterator[None]:
    """Knows one token, of an administrator."""
    with fixture.AuthTokenFixture() as tokens:
        tokens.add_token_data(
            token_id=TOKEN["X-Auth-Token"], project_id="p", user_id="u", role_list=["admin"]
        )
        yield


def check(case: Any, response: Any) -> None:
    beyond = response.status_code == 400 and any(said in response.text for said in BEYOND_SCHEMAS)
    excluded = [positive_data_acceptance] if beyond else []
    case.validate_response(response, headers=TOKEN, excluded_checks=excluded)


@schema.parametrize()
@hypothesis.settings(settings, max_examples=80)
def test_nothing_is_found(case: Any) -> None:
    valid = case.meta is not None and case.meta.generation.mode.is_positive
    if valid and "server" in case.path_parameters:
        case.path_parameters["server"] = MINE  # else hardly any question would find a server
    check(case, case.call(headers=TOKEN))
    SERVICE.poll()


class Sequences(schema.as_state_machine()):  # type: ignore[misc]
    """Servers are created, and asked about by their ids."""

    def get_call_kwargs(self, case: Any) -> dict[str, Any]:
        return {"headers": TOKEN}

    def validate_response(self, response: Any, case: Any, **_: Any) -> None:
        check(case, response)
        SERVICE.poll()


def test_nothing_is_found_in_sequences() -> None:
    hypothesis.stateful.run_state_machine_as_test(
        Sequences, settings=hypothesis.settings(settings, max_examples=10, stateful_step_count=10)
    )


def test_a_token_is_what_it_takes() -> None:
    case = schema["/servers/{server}/tags"]["GET"].Case(path_parameters={"server": MINE})
    vouched = {"X-Identity-Status": "Confirmed", "X-Project-Id": "p", "X-User-Id": "u"}
    assert case.call(headers=TOKEN).status_code == 200
    assert case.call(headers=vouched).status_code == 401
    assert case.call(headers={**vouched, "X-Auth-Token": "another"}).status_code == 401
    assert case.call(headers={**TOKEN, "X-Tag-Owner": "system"}).status_code == 401
    assert case.call(headers={**TOKEN, "X-Project-Id": "q"}).status_code == 200  # taken away


def test_description_is_valid_and_has_the_schemas() -> None:
    said = Client(api.make_application(SERVICE, tag_apis.configuration()))(
        "GET", "/openapi.json"
    ).json
    openapi_spec_validator.validate(said)
    assert said == json.loads(json.dumps(openapi.description(Trust.parse([PROXY]))))
    assert said["components"]["schemas"]["Tags"] == json.loads(json.dumps(schemas.tags(Owner.USER)))


@pytest.mark.parametrize(
    ("proxies", "keys"),
    [([], {"X-Auth-Token"}), ([PROXY], {"X-Project-Id", "X-User-Id"})],
    ids=["by a token", "by a proxy"],
)
def test_description_names_the_headers_of_callers(proxies: list[str], keys: set[str]) -> None:
    conf = tag_apis.configuration(trusted_proxies=proxies, system_proxies=[])
    said = Client(api.make_application(SERVICE, conf))("GET", "/openapi.json").json
    openapi_spec_validator.validate(said)
    (together,) = said["security"]
    schemes = said["components"]["securitySchemes"]
    assert together.keys() == schemes.keys()
    assert {each["name"] for each in schemes.values()} == keys
