"""The names of all metrics, in the reference and in the alert rules of the guide."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from steelyard.tags import TagService
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.http.api import make_application
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.jobs.dispatcher import Dispatcher
from steelyard.tags.jobs.watch import Watch
from steelyard.tags.monitoring.parts import MonitoredPart
from support.repository import DOCS, EXAMPLES
from support.services import required
from support.tags import in_process_api, queues
from support.tags.in_process_api import ALL, Client

pytestmark = pytest.mark.usefixtures("closed_databases")

RULES = EXAMPLES / "prometheus-tags.yaml"
REFERENCE = DOCS / "reference" / "tags-metrics.rst"
_NAME = re.compile(r"\bsteelyard_tags_\w+")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with queues.own_queue() as broker:
        yield broker


@pytest.fixture
def service(tmp_path: Any) -> TagService:
    """Return a service with a pending operation, whose instances were reconciled."""
    made = in_process_api.service(f"sqlite:///{tmp_path}/tags.db", MemoryBackend(patient=True))
    made.store.note_reconciled(1.0)
    return made


def watch_of(service: TagService, broker: Broker) -> tuple[Watch, Client]:
    """Return a watch with metrics, and a client that reads them."""
    part = MonitoredPart(service.store, broker)
    watch = Watch(service.jobs, 86400.0, broker)
    watch.observer = part.watch_metrics()
    return watch, Client(part.application)


def dispatcher_of(service: TagService, broker: Broker) -> tuple[Dispatcher, Client]:
    """Return a dispatcher with metrics, and a client that reads them."""
    part = MonitoredPart(service.store, broker)
    dispatcher = Dispatcher(broker, service.jobs.apply, first_pause=0.01)
    dispatcher.observer = part.dispatcher_metrics()
    return dispatcher, Client(part.application)


def text(client: Client) -> str:
    return client("GET", "/metrics").body.decode()


@pytest.fixture
def texts(service: TagService, broker: Broker) -> list[str]:
    """Return the metrics of the API, of a watch and of a dispatcher."""
    api = Client(make_application(service, in_process_api.configuration()))
    assert api("PUT", f"{ALL}/red").status == 201
    watch, of_watch = watch_of(service, broker)
    watch.look()
    _, of_dispatcher = dispatcher_of(service, broker)
    return [text(api), text(of_watch), text(of_dispatcher)]


def families(texts: list[str]) -> dict[str, str]:
    """Return the type of each metric of the service, by its name as in queries."""
    return {
        family.name + ("_total" if family.type == "counter" else ""): family.type
        for each in texts
        for family in text_string_to_metric_families(each)
        if family.name.startswith("steelyard_") and not family.name.endswith("_created")
    }


def test_reference_lists_all_metrics_with_their_types(texts: list[str]) -> None:
    rows = re.findall(
        r"^   \* - ``(steelyard_\w+)``\n     - (\w+)$", REFERENCE.read_text(), re.MULTILINE
    )
    assert sorted(rows) == sorted(families(texts).items())


def test_rules_use_existing_metrics(texts: list[str]) -> None:
    known = {
        f"{name}{suffix}"
        for name, kind in families(texts).items()
        for suffix in (("_bucket", "_count", "_sum") if kind == "histogram" else ("",))
    }
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])
    used = {name for rule in group["rules"] for name in _NAME.findall(rule["expr"])}
    assert used
    assert used <= known


def test_rules_use_existing_values_of_labels(texts: list[str]) -> None:
    there = "\n".join(texts)
    for name, label, value in re.findall(r'(\w+)\{(\w+)="([^"]+)"\}', RULES.read_text()):
        if name != "up":
            assert re.search(rf'^{name}{{.*{label}="{value}"', there, re.MULTILINE), (name, value)


@pytest.mark.parametrize("subject", ["rules", "metrics"])
def test_promtool_accepts_rules_and_metrics(texts: list[str], subject: str) -> None:
    if shutil.which("promtool") is None:
        required.missing("no promtool: install prometheus")
    if subject == "rules":
        runs = [(["promtool", "check", "rules", str(RULES)], "")]
    else:
        runs = [(["promtool", "check", "metrics"], each) for each in texts]
    for command, given in runs:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def value(client: Client, series: str) -> float:
    (found,) = re.findall(rf"^{re.escape(series)} (\S+)$", text(client), re.MULTILINE)
    return float(found)


def test_watch_counts_runs_and_published_outcomes(service: TagService, broker: Broker) -> None:
    watch, client = watch_of(service, broker)
    service.store.follow(None, 0)
    assert isinstance(service.backend, MemoryBackend)
    Client(make_application(service, in_process_api.configuration()))("PUT", f"{ALL}/red")
    service.backend.run()
    watch.look()
    assert value(client, 'steelyard_tags_watch_runs_total{result="success"}') == 1
    assert value(client, "steelyard_tags_outcomes_published_total") == 1
    last = value(client, "steelyard_tags_watch_last_success_timestamp_seconds")
    service.store.downgrade("0003")
    with pytest.raises(Exception, match="no such table"):
        watch.look()
    assert value(client, 'steelyard_tags_watch_runs_total{result="failure"}') == 1
    assert value(client, "steelyard_tags_watch_last_success_timestamp_seconds") == last > 0


def test_dispatcher_counts_messages_by_their_result(service: TagService, broker: Broker) -> None:
    dispatcher, client = dispatcher_of(service, broker)
    outcome = {
        "job": 1,
        "instance": "vm",
        "operation": "OP_TAGS_SET",
        "tags": [],
        "status": "error",
    }
    bodies: tuple[object, ...] = (outcome, {**outcome, "status": "running"}, {})
    queues.send(broker, *(json.dumps(body).encode() for body in bodies))
    queues.drain(broker, dispatcher)
    for result, count in (("applied", 1), ("ignored", 1), ("dead_letter", 1), ("retried", 0)):
        assert value(client, f'steelyard_tags_messages_total{{result="{result}"}}') == count
