"""The answers of the HTTP API of instance tags when the backend or the database fails."""

from typing import Any

import pytest

from steelyard import errors
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.http import api
from support.tags import in_process_api
from support.tags.in_process_api import ALL, Client, Troubled

pytestmark = pytest.mark.usefixtures("closed_databases")

SECRET = "https://admin:hunter2@ganeti.internal"

CHANGES: list[tuple[str, str, object]] = [
    ("PUT", ALL + "/new", None),
    ("PUT", ALL, {"tags": ["new"]}),
    ("DELETE", ALL + "/old", None),
    ("DELETE", ALL, None),
    ("POST", "/servers", {"server": {"name": "vm-new", "id": "new"}}),
]


@pytest.mark.parametrize("change", CHANGES, ids=[f"{each[0]} {each[1]}" for each in CHANGES])
def test_backend_refusal_is_a_502_and_changes_nothing(
    troubled: Any, backend: Troubled, caplog: Any, change: Any
) -> None:
    _, ask = troubled
    before = ask("GET", ALL).json
    backend.trouble = errors.BackendRefused(f"drained at {SECRET}")
    answer = ask(*change)
    name, message = answer.fault
    assert (answer.status, name) == (502, "badGateway")
    assert "the backend refused the request" in message
    assert answer.headers["x-openstack-request-id"] in message
    assert "ganeti" not in message
    assert "ganeti" in caplog.text  # the log has the cause under the same request id
    assert answer.headers["x-openstack-request-id"] in caplog.text
    assert ask("GET", ALL).json == before
    assert ask("GET", "/servers/new/tags").status == 404


@pytest.mark.parametrize("change", CHANGES, ids=[f"{each[0]} {each[1]}" for each in CHANGES])
@pytest.mark.parametrize(
    "trouble", [errors.OutcomeUnknown(f"timed out: {SECRET}"), ConnectionResetError(SECRET)]
)
def test_unknown_outcome_is_a_503_and_leaves_the_operation_pending(
    troubled: Any, backend: Troubled, trouble: Exception, change: Any
) -> None:
    service, ask = troubled
    backend.trouble = trouble
    answer = ask(*change)
    name, message = answer.fault
    assert (answer.status, name) == (503, "serviceUnavailable")
    assert "may still apply the request" in message
    assert answer.json[name]["reason"] == "outcomeUnknown"
    assert "ganeti" not in message
    assert len(service.store.pending()) == 1


def test_unexpected_error_is_a_500_without_details(
    troubled: Any, backend: Troubled, caplog: Any
) -> None:
    _, ask = troubled
    backend.trouble = AssertionError(SECRET)
    answer = ask("PUT", ALL + "/new")
    name, message = answer.fault
    assert (answer.status, name) == (500, "computeFault")
    assert "ganeti" not in answer.body.decode()
    assert answer.headers["x-openstack-request-id"] in message
    assert "Traceback" in caplog.text
    backend.trouble = None
    assert ask("PUT", ALL + "/new").status == 201


def test_internal_steelyard_error_is_a_500(
    troubled: Any, backend: Troubled, monkeypatch: Any
) -> None:
    _, ask = troubled
    monkeypatch.setattr(TagStore, "tags", property(_broken))
    assert ask("GET", ALL).fault[0] == "computeFault"


def _broken(_: object) -> None:
    raise errors.PluginError(SECRET)


def test_missing_tables_are_a_503_that_names_the_upgrade(url: str, caplog: Any) -> None:
    bare = TagService(TagStore(url), MemoryBackend())
    answer = Client(api.make_application(bare, in_process_api.configuration()))("GET", ALL)
    assert (answer.status, answer.fault[0]) == (503, "serviceUnavailable")
    assert answer.json["serviceUnavailable"]["reason"] == "upgradeNeeded"
    assert "run 'steelyard db upgrade --schema tags --url URL'" in answer.fault[1]
    assert "no file" in caplog.text


def test_aborted_transaction_is_a_503_with_advice(
    troubled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def abort(*_: object) -> None:
        raise errors.TransactionAborted(SECRET)

    _, ask = troubled
    monkeypatch.setattr(TagService, "tags", abort)
    answer = ask("GET", ALL)
    assert (answer.status, answer.json["serviceUnavailable"]["reason"]) == (
        503,
        "transactionAborted",
    )
    assert "list the tags to see the result, and retry later" in answer.fault[1]
