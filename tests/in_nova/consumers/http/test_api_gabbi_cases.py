"""Placement's own cases of consumer types, run by gabbi against the HTTP API of consumers.

The store is filled as Placement's fixture fills its database. The API has the microversion 1.38
alone, calls the type of consumers without one UNKNOWN, and has no inventories; CHANGED lists what
this changes in the cases.
"""

import os
import pathlib
import sys
import unittest
import uuid
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from gabbi import driver, fixture
from oslo_config import cfg
from placement.tests import functional

from steelyard import conf as options
from steelyard.consumers import ConsumerStore
from steelyard.consumers.http.api import make_application

CASES = pathlib.Path(functional.__file__).with_name("gabbits")
Case = dict[str, Any]


def put_as_unknown(case: Case) -> None:
    del case["request_headers"]
    case["data"]["consumer_type"] = "UNKNOWN"


def answer_unknown(case: Case) -> None:
    paths = case["response_json_paths"]
    paths["$.usages.UNKNOWN"] = paths.pop("$.usages.unknown")


def find_unknown(case: Case) -> None:
    case["response_json_paths"] = {"$.usages.`len`": 1, "$.usages.UNKNOWN.consumer_count": 3}


def reshape_without_inventories(case: Case) -> None:
    for provider in case["data"]["inventories"].values():
        provider["inventories"] = {}


def refuse_older_microversion(case: Case) -> None:
    case |= {"status": 406, "response_strings": ["unsupported microversion '1.36'"]}


def read_as_unknown(case: Case) -> None:
    case["response_json_paths"]["$.consumer_type"] = "UNKNOWN"


CHANGED: dict[str, dict[str, Callable[[Case], None]]] = {
    "consumer-types-1.38.yaml": {
        "consumer put without type": put_as_unknown,
        "usages include consumer_type": answer_unknown,
        "limit usages by unknown": answer_unknown,
        "UNKNOWN is not unknown": find_unknown,
        "reshaper accepts consumer type": reshape_without_inventories,
        "reshaper requires consumer type": reshape_without_inventories,
        "reshaper refuses consumer type earlier microversion": refuse_older_microversion,
    },
    "consumer-types-bug-story-2009167.yaml": {
        "put an allocation with older than 1.38 so no consumer_type is provided": put_as_unknown,
        'get allocation with 1.38 expected "unknown" consumer_type': read_as_unknown,
    },
}
STORES: list[ConsumerStore] = []


class AllocationFixture(fixture.GabbiFixture):  # type: ignore[misc]
    """The consumers of Placement's fixture of that name, in a store."""

    def start_fixture(self) -> None:
        for name in ("RP_UUID", "PROJECT_ID", "USER_ID", "ALT_USER_ID"):
            os.environ[name] = str(uuid.uuid4())
        store = ConsumerStore("sqlite://")
        store.upgrade()
        for user, used in (
            ("USER_ID", {"DISK_GB": 1000}),
            ("USER_ID", {"VCPU": 6}),
            ("ALT_USER_ID", {"VCPU": 1, "DISK_GB": 20}),
        ):
            body = {
                "allocations": {os.environ["RP_UUID"]: {"resources": used}},
                "project_id": os.environ["PROJECT_ID"],
                "user_id": os.environ[user],
                "consumer_generation": None,
                "consumer_type": "UNKNOWN",
            }
            store.put_allocations(str(uuid.uuid4()), body)
        STORES.append(store)

    def stop_fixture(self) -> None:
        STORES.pop().close()


def application(environ: dict[str, Any], start_response: Any) -> Any:
    """Answer as behind a proxy that knows the token of Placement's administrator."""
    assert environ.pop("HTTP_X_AUTH_TOKEN") == "admin"
    who = {"PROJECT_ID": "admin", "USER_ID": "admin", "ROLES": "admin"}
    environ |= {f"HTTP_X_{name}": value for name, value in who.items()}
    environ["REMOTE_ADDR"] = "127.0.0.1"
    conf = cfg.ConfigOpts()
    options.register_consumers(conf)
    conf.set_override("trusted_proxies", ["127.0.0.1"], group=options.CONSUMERS_GROUP)
    return make_application(STORES[0], conf)(environ, start_response)


@pytest.mark.parametrize("name", CHANGED)
def test_api_passes_the_cases_of_placement(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("RP_UUID", "PROJECT_ID", "USER_ID", "ALT_USER_ID"):
        monkeypatch.setenv(variable, "")  # restores it after the test
    whole = yaml.safe_load((CASES / name).read_text())
    cases = {case["name"]: case for case in whole["tests"]}
    for changed, change in CHANGED[name].items():
        change(cases[changed])
    whole["defaults"]["request_headers"]["openstack-api-version"] = "placement 1.38"
    (tmp_path / name).write_text(yaml.safe_dump(whole, sort_keys=False))
    suite = driver.build_tests(
        str(tmp_path),
        unittest.TestLoader(),
        intercept=lambda: application,
        fixture_module=sys.modules[__name__],
    )
    result = unittest.TestResult()
    suite.run(result)
    assert [text for _, text in result.failures + result.errors] == []
    assert result.testsRun >= len(whole["tests"])
