"""Requests generated from the description of the HTTP API of consumers, behind keystonemiddleware."""

import json
from collections.abc import Iterator
from typing import Any

import hypothesis
import openapi_spec_validator
import pytest
import schemathesis

from steelyard.consumers import ConsumerStore
from steelyard.consumers.http import openapi
from steelyard.consumers.http.api import make_application
from steelyard.web.callers import Trust
from support.consumers.in_process_api import CONSUMER, PROVIDER, PROXY, configuration
from support.examples import examples
from support.web.keystone import behind_keystone, knowing
from support.web.wsgi_client import WsgiClient

TOKEN = {"X-Auth-Token": "a-token-of-an-administrator"}
READERS = {"X-Auth-Token": "a-token-of-a-reader"}

STORE = ConsumerStore("sqlite://")
STORE.upgrade()
application = behind_keystone(
    make_application(STORE, configuration(trusted_proxies=[], max_body=1048576))
)
schema = schemathesis.openapi.from_wsgi("/openapi.json", application)
settings = hypothesis.settings(deadline=None, suppress_health_check=list(hypothesis.HealthCheck))


@pytest.fixture(autouse=True)
def keystone() -> Iterator[None]:
    """Provide a Keystone that knows the tokens of an administrator and of a reader."""
    with knowing({TOKEN["X-Auth-Token"]: "admin", READERS["X-Auth-Token"]: "reader"}):
        yield


@schema.parametrize()
@hypothesis.settings(settings, max_examples=examples(25))
def test_generated_requests_are_answered_as_described(case: Any) -> None:
    case.validate_response(case.call(headers=TOKEN), headers=TOKEN)


def test_example_of_each_write_is_answered_as_described() -> None:
    """Check requests that random ones hardly ever match: with current and wrong generations."""
    one = {
        "allocations": {PROVIDER: {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    target = {"consumer_uuid": CONSUMER}
    for operation, body, status in (
        (schema["/allocations/{consumer_uuid}"]["PUT"], one, 204),
        (schema["/allocations/{consumer_uuid}"]["PUT"], one, 409),
        (schema["/allocations/{consumer_uuid}"]["GET"], None, 200),
        (schema["/allocations"]["POST"], {CONSUMER: {**one, "consumer_generation": 1}}, 204),
        (
            schema["/reshaper"]["POST"],
            {"allocations": {CONSUMER: {**one, "consumer_generation": 2}}, "inventories": {}},
            204,
        ),
        (schema["/usages"]["GET"], None, 200),
        (schema["/allocations/{consumer_uuid}"]["DELETE"], None, 204),
        (schema["/allocations/{consumer_uuid}"]["DELETE"], None, 404),
    ):
        path = target if "{" in operation.path else {}
        query = {"project_id": "p"} if operation.path == "/usages" else {}
        more: dict[str, Any] = (
            {} if body is None else {"body": body, "media_type": "application/json"}
        )
        case = operation.Case(path_parameters=path, query=query, **more)
        response = case.call(headers=TOKEN)
        assert response.status_code == status, response.text
        case.validate_response(response, headers=TOKEN)


def test_roles_are_those_of_the_token() -> None:
    reading = schema["/usages"]["GET"].Case(query={"project_id": "p"})
    case = schema["/allocations/{consumer_uuid}"]["GET"].Case(
        path_parameters={"consumer_uuid": CONSUMER}
    )
    forged = {"X-Identity-Status": "Confirmed", "X-Project-Id": "p", "X-User-Id": "u"}
    assert reading.call(headers=READERS).status_code == 200
    assert case.call(headers=TOKEN).status_code == 200
    assert case.call(headers=READERS).status_code == 403
    # The middleware drops forged headers.
    assert case.call(headers={**READERS, "X-Roles": "admin"}).status_code == 403
    assert case.call(headers={**forged, "X-Roles": "admin"}).status_code == 401


@pytest.mark.parametrize(
    ("proxies", "keys"),
    [([], {"X-Auth-Token"}), ([PROXY], {"X-Project-Id", "X-User-Id", "X-Roles"})],
    ids=["by a token", "by a proxy"],
)
def test_description_is_valid_and_names_the_headers_of_callers(
    proxies: list[str], keys: set[str]
) -> None:
    client = WsgiClient(make_application(STORE, configuration(trusted_proxies=proxies)), (), PROXY)
    description = client("GET", "/openapi.json").json
    openapi_spec_validator.validate(description)
    assert description == json.loads(json.dumps(openapi.description(Trust.parse(proxies))))
    (together,) = description["security"]
    schemes = description["components"]["securitySchemes"]
    assert together.keys() == schemes.keys()
    assert {each["name"] for each in schemes.values()} == keys
