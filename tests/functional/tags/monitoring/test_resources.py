"""The answers of ``/health`` and ``/metrics``."""

import time
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.http.api import make_application
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.monitoring.parts import MonitoredPart
from steelyard.tags.states.values import Kind, Operation, StateChange
from support.tags import in_process_api, queues
from support.tags.in_process_api import ALL, MINE, STRANGER, Client

pytestmark = pytest.mark.usefixtures("closed_databases")

DOWN = "amqp://u:secret@127.0.0.1:1/tags"


@pytest.fixture
def service(tmp_path: Any) -> TagService:
    return in_process_api.service(f"sqlite:///{tmp_path}/tags.db", MemoryBackend(patient=True))


@pytest.fixture
def ask(service: TagService) -> Client:
    # Validation would refuse unknown methods.
    app = make_application(service, in_process_api.configuration())
    return Client(app, validated=False)


def samples(ask: Any, **environ: Any) -> dict[str, float]:
    """Return the value of each series, by its name and its labels."""
    answer = ask("GET", "/metrics", **environ)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        sample.name + "".join(f" {value}" for _, value in sorted(sample.labels.items())): float(
            sample.value
        )
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def of_part(service: TagService, broker: Broker | None) -> Client:
    """Return a client of the watch or a dispatcher."""
    return Client(MonitoredPart(service.store, broker).application)


def begin(service: TagService, age: float) -> None:
    """Record an operation that began some seconds ago."""
    operation = Operation("o", Kind.DELETE, "cyclades:user:", (), time.time() - age, 7)
    service.store.change(MINE, lambda _: (StateChange(begun=(operation,)), None))


def test_health_has_the_checks_and_the_age_of_the_oldest_operation(
    ask: Client, service: TagService
) -> None:
    assert ask("GET", "/health").json == {
        "healthy": True,
        "checks": {"database": "ok"},
        "oldest_pending_seconds": 0.0,
    }
    begin(service, 50)
    ask("PUT", f"{ALL}/new")
    assert 50 <= ask("GET", "/health").json["oldest_pending_seconds"] < 70


@pytest.mark.parametrize("path", ["/health", "/metrics"])
def test_monitoring_needs_no_identity(service: TagService, path: str) -> None:
    stranger = Client(make_application(service, in_process_api.configuration()), (), STRANGER)
    assert stranger("GET", path).status == 200
    assert stranger("HEAD", path).body == b""
    assert stranger("GET", ALL).status == 401


def test_health_fails_without_tables(caplog: Any) -> None:
    store = TagStore("sqlite://")
    client = Client(
        make_application(TagService(store, MemoryBackend()), in_process_api.configuration())
    )
    answer = client("GET", "/health")
    assert (answer.status, answer.json) == (
        503,
        {
            "healthy": False,
            "checks": {"database": "upgrade needed"},
            "oldest_pending_seconds": None,
        },
    )
    found = samples(client)
    assert found["steelyard_tags_check_success database"] == 0
    assert "steelyard_tags_pending_operations" not in found


def test_api_works_without_the_broker_and_reports_it(service: TagService, tmp_path: Any) -> None:
    conf = in_process_api.configuration(transport_url=DOWN)
    answer = Client(make_application(service, conf))("GET", "/health")
    assert answer.status == 200
    assert answer.json["healthy"] is True
    assert answer.json["checks"] == {"database": "ok", "broker": "failed"}


def test_watch_and_dispatchers_are_unhealthy_without_the_broker(
    service: TagService, caplog: Any
) -> None:
    part = of_part(service, Broker(DOWN))
    answer = part("GET", "/health")
    assert answer.status == 503
    assert answer.json["healthy"] is False
    assert answer.json["checks"] == {"database": "ok", "broker": "failed"}
    assert "secret" not in caplog.text
    found = samples(part)
    assert found["steelyard_tags_check_success broker"] == 0
    assert found["steelyard_tags_check_success database"] == 1
    assert "steelyard_tags_dead_letters" not in found


def test_metrics_have_the_lengths_of_the_queues(service: TagService) -> None:
    with queues.own_queue() as broker:
        queues.send(broker, b"one", b"two")
        with broker.connected() as connection:
            broker.dead_letter(connection.default_channel, b"odd", "malformed")
        found = samples(of_part(service, broker))
    assert found["steelyard_tags_check_success broker"] == 1
    assert found["steelyard_tags_queued_outcomes"] == 2
    assert found["steelyard_tags_dead_letters"] == 1


def test_metrics_have_the_backlog_and_the_last_reconciliation(
    ask: Client, service: TagService
) -> None:
    found = samples(ask)
    assert found["steelyard_tags_pending_operations"] == 0
    assert "steelyard_tags_oldest_pending_operation_timestamp_seconds" not in found
    assert "steelyard_tags_last_reconciliation_timestamp_seconds" not in found
    begin(service, 50)
    service.store.note_reconciled(1234.5)
    found = samples(ask)
    assert found["steelyard_tags_pending_operations"] == 1
    since = found["steelyard_tags_oldest_pending_operation_timestamp_seconds"]
    assert 50 <= time.time() - since < 70
    assert found["steelyard_tags_last_reconciliation_timestamp_seconds"] == 1234.5


def test_requests_are_counted_by_route_without_names(ask: Client) -> None:
    for target, status in (
        (f"{ALL}/red", 201),
        (f"{ALL}/blue", 201),
        ("/servers/other/tags/red", 404),
        ("/nowhere/secret", 404),
    ):
        assert ask("PUT", target).status == status
    assert ask("BREW", ALL).status == 400
    found = samples(ask)
    total = "steelyard_tags_http_requests_total"
    assert found[f"{total} PUT /servers/{{server}}/tags/{{tag:path}} 201"] == 2
    assert found[f"{total} PUT /servers/{{server}}/tags/{{tag:path}} 404"] == 1
    assert found[f"{total} PUT other 404"] == 1
    assert found[f"{total} other /servers/{{server}}/tags 400"] == 1
    seconds = "steelyard_tags_http_request_duration_seconds"
    assert found[f"{seconds}_count PUT /servers/{{server}}/tags/{{tag:path}}"] == 3
    assert 0 < found[f"{seconds}_sum PUT /servers/{{server}}/tags/{{tag:path}}"] < 30
    named = [name for name in found if {"red", MINE, "secret", "BREW"} & set(name.split())]
    assert named == []


def test_changes_are_counted_by_event(ask: Client, service: TagService) -> None:
    before = samples(ask)
    assert before["steelyard_tags_changes_total failed"] == 0
    ask("PUT", f"{ALL}/red")
    assert isinstance(service.backend, MemoryBackend)
    service.backend.fail(1)
    service.backend.run()
    service.jobs.poll()
    after = samples(ask)
    for event, count in (("submitted", 1), ("failed", 1), ("refused", 0)):
        name = f"steelyard_tags_changes_total {event}"
        assert after[name] - before[name] == count


def test_metrics_of_one_of_several_processes_are_refused(ask: Client) -> None:
    several: dict[str, Any] = {"wsgi.multiprocess": True}
    answer = ask("GET", "/metrics", **several)
    assert answer.status == 500
    name, message = answer.fault
    assert name == "computeFault"
    assert "set PROMETHEUS_MULTIPROC_DIR to an empty folder" in message
