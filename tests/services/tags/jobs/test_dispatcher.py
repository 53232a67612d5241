"""Outcomes of jobs through RabbitMQ into PostgreSQL, by the installed commands."""

import contextlib
import json
import pathlib
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.jobs import messages
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.jobs.dispatcher import Dispatcher
from steelyard.tags.states.values import Instance, Kind, Operation, Outcome, StateChange, Status
from support.services import brokers, databases
from support.soaks import outcome_soak
from support.soaks.outcome_soak import COMMAND, PREFIX, started
from support.tags import queues
from support.tags.databases import upgrade
from support.tags.queues import until


@pytest.fixture
def store(upgraded_postgresql: sa.Engine) -> TagStore:
    """Return a store without instances that belongs to the backend in memory."""
    store = TagStore(upgraded_postgresql)
    store.record_backend(MemoryBackend().identity())
    return store


@pytest.fixture
def broker(host: str) -> Iterator[Broker]:
    with queues.own_queue(host) as broker:
        yield broker


@pytest.fixture
def file(
    host: str, broker: Broker, upgraded_postgresql: sa.Engine, tmp_path: pathlib.Path
) -> pathlib.Path:
    return outcome_soak.configuration(str(tmp_path), broker, host, upgraded_postgresql)


def additions(count: int) -> list[Outcome]:
    """Return the outcomes of tags added by hand, one outcome per tag."""
    return [
        Outcome(job, "vm", Kind.ADD, frozenset([Tag(PREFIX, f"tag {job}")]), succeeded=True)
        for job in range(1, count + 1)
    ]


def send(broker: Broker, outcomes: list[Outcome]) -> None:
    with broker.publishing() as publish:
        for each in outcomes:
            publish(each)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_terminated_dispatcher_finishes_the_current_message(
    postgresql: sa.Engine, host: str, broker: Broker, tmp_path: pathlib.Path, number: signal.Signals
) -> None:
    # The current message waits for a row that another transaction has locked.
    store = TagStore(postgresql)
    upgrade(store)
    store.register(Instance("vm", "vm", "p", "u"))
    file = outcome_soak.configuration(str(tmp_path), broker, host, postgresql)
    waiting = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with postgresql.connect() as connection, started(file, "dispatch") as process:
        send(broker, additions(20))
        until(lambda: len(store.state("vm").tags) == 20)
        connection.exec_driver_sql("SELECT * FROM tag_instances FOR UPDATE")
        send(broker, additions(25)[20:])
        until(lambda: connection.exec_driver_sql(waiting).scalar())
        process.send_signal(number)
        connection.rollback()
        _, log = process.communicate(timeout=60)
    assert (process.returncode, log) == (0, "")
    (row,) = store.snapshots_of(["vm"])
    assert len(row.state.tags) == 21
    assert queues.count(broker, broker.queue) == 4
    assert row.generation == 21


def test_dispatcher_prefetches_no_more_than_configured(broker: Broker) -> None:
    # The other messages remain for other dispatchers.
    resume = threading.Event()

    def apply(_outcome: Outcome) -> None:
        assert resume.wait(20)

    send(broker, additions(10))
    with queues.dispatching(Dispatcher(broker, apply, prefetch=4)):
        try:
            until(lambda: queues.count(broker, broker.queue) == 6)
            time.sleep(0.2)  # further messages would arrive meanwhile
            assert queues.count(broker, broker.queue) == 6
        finally:
            resume.set()
        until(lambda: queues.count(broker, broker.queue) == 0)


def test_database_errors_are_retried_with_pauses(
    postgresql: sa.Engine, host: str, broker: Broker, tmp_path: pathlib.Path
) -> None:
    store = TagStore(postgresql)
    upgrade(store)
    store.register(Instance("vm", "vm", "p", "u"))
    file = outcome_soak.configuration(str(tmp_path), broker, host, postgresql)
    with started(file, "dispatch") as process:
        assert process.stderr is not None
        with postgresql.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE tag_marks RENAME TO elsewhere")
        send(broker, additions(30))
        for _ in range(2):
            log = process.stderr.readline()
            assert "Cannot apply outcomes; retrying in " in log
            assert 'database error: relation "tag_marks" does not exist' in log
        with postgresql.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO tag_marks")
        until(lambda: len(store.state("vm").tags) == 30)
        process.terminate()
        _, log = process.communicate(timeout=20)
    assert process.returncode == 0
    # Retries without pauses would log hundreds of lines.
    assert log.count("Cannot apply outcomes; retrying in ") < 8
    assert queues.count(broker, broker.queue) == 0
    assert queues.dead_letters(broker) == []


def test_outcome_that_the_database_cannot_store_is_put_aside(broker: Broker) -> None:
    # The encoding of the database lacks the characters of a tag that was added by hand.
    latin = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with databases.own_database(databases.needed("postgresql"), latin) as engine:
        store = TagStore(engine)
        upgrade(store)
        store.register(Instance("vm", "vm", "p", "u"))
        unstorable = Outcome(9, "vm", Kind.ADD, frozenset([Tag(PREFIX, "日本")]), succeeded=True)
        send(broker, [unstorable, *additions(3)])
        apply = TagService(store, MemoryBackend()).jobs.apply
        with queues.dispatching(Dispatcher(broker, apply)):
            until(lambda: len(store.state("vm").tags) == 3)
    ((body, reason),) = queues.dead_letters(broker)
    assert messages.parse(body) == unstorable
    assert "cannot" in reason


def test_dispatcher_refused_by_the_broker_logs_no_password(
    host: str, store: TagStore, broker: Broker, file: pathlib.Path
) -> None:
    # The broker rejects this password.
    text = file.read_text()
    file.write_text(text.replace("guest:guest@", "guest:hunter2@"))
    with debugging(file) as process:
        assert process.stderr is not None
        log = ""
        while "Cannot apply outcomes" not in log:
            log += process.stderr.readline()
        process.terminate()
        log += "".join(process.communicate(timeout=30))
    assert "ACCESS_REFUSED" in log
    assert "hunter2" not in log
    assert process.returncode == 0


def debugging(file: pathlib.Path) -> subprocess.Popen[str]:
    """Start the dispatcher with all log messages enabled."""
    return subprocess.Popen(
        [*COMMAND, "--debug", "-v", "--config-file", str(file), "tags", "dispatch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_deleted_queue_is_declared_again(
    host: str, store: TagStore, broker: Broker, file: pathlib.Path
) -> None:
    store.register(Instance("vm", "vm", "p", "u"))
    send(broker, additions(1))
    with started(file, "dispatch") as process:
        until(lambda: len(store.state("vm").tags) == 1)
        with broker.connected() as connection:
            broker.queue(connection.default_channel).delete()
        until(lambda: brokers.consumers(host, broker.queue.name) == 1)
        send(broker, additions(2))
        until(lambda: len(store.state("vm").tags) == 2)
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


BACKEND = '''
import json
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend


class Written(TagBackend):
    """A backend that reads its jobs and tags from a file."""
    def __init__(self, conf):
        conf.register_opts([], group="steelyard_tags")
    def _read(self):
        with open(FILE) as file:
            return json.load(file)
    def identity(self):
        return BackendIdentity("written", "file")
    def create(self, instance, tags): raise NotImplementedError
    def add(self, instance, tags): raise NotImplementedError
    def delete(self, instance, tags): raise NotImplementedError
    def jobs(self, numbers):
        known = self._read()["jobs"]
        return {each: JobStatus(known.get(str(each), "lost")) for each in numbers}
    def horizon(self):
        return 0
    def tags(self, instances):
        return {name: frozenset(tags) for name, tags in self._read()["tags"].items()}
'''


@pytest.fixture
def backend(tmp_path: pathlib.Path, file: pathlib.Path) -> pathlib.Path:
    """Configure a backend of another distribution and return its file of jobs and tags."""
    there = tmp_path / "written.json"
    (tmp_path / "written.py").write_text(f"FILE = {str(there)!r}\n{BACKEND}")
    about = tmp_path / "written-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: written\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[steelyard.tag_backends]\nwritten = written:Written\n")
    file.write_text(f"{file.read_text()}\nbackend = written\npoll_interval = 0.2\n")
    return there


def replace(backend: pathlib.Path, content: object) -> None:
    """Replace the file of the backend at once, so that no process reads half of it."""
    new = backend.with_suffix(".new")
    new.write_text(json.dumps(content))
    new.rename(backend)


@pytest.mark.parametrize("through", ["broker", "watch"])
def test_results_at_the_backend_reach_the_tables(
    store: TagStore, file: pathlib.Path, backend: pathlib.Path, through: str
) -> None:
    # Without a broker, the watch applies the outcomes itself.
    begun = tuple(
        Operation(str(job), Kind.ADD, PREFIX, (Tag(PREFIX, f"tag {job}"),), time.time(), job)
        for job in range(1, 5)
    )
    pending = {key: Status.PENDADD for each in begun for key in each.tags}
    store.move_to_backend(BackendIdentity("written", "file"))
    store.register(Instance("s1", "vm", "p", "u"), StateChange(pending, begun=begun))
    content = {
        "jobs": {1: "succeeded", 2: "failed", 3: "running"},
        "tags": {"vm": [f"{PREFIX}tag+1", f"{PREFIX}tag+4"]},
    }
    replace(backend, content)
    path = {"PYTHONPATH": str(backend.parent)}
    if through == "watch":
        lines = [line for line in file.read_text().splitlines() if "transport_url" not in line]
        file.write_text("\n".join(lines))
    processes = [started(file, "watch", **path)]
    if through == "broker":
        processes.append(started(file, "dispatch", **path))
    try:
        until(lambda: len(store.pending()) == 1)
        assert store.state("s1").tags == {
            Tag(PREFIX, "tag 1"): Status.ACTIVE,
            Tag(PREFIX, "tag 3"): Status.PENDADD,
            Tag(PREFIX, "tag 4"): Status.ACTIVE,
        }
        tags = [f"{PREFIX}tag+{number}" for number in (1, 3, 4)]
        replace(backend, {"jobs": {3: "succeeded"}, "tags": {"vm": tags}})
        until(lambda: not store.pending())
        assert store.state("s1").tags[Tag(PREFIX, "tag 3")] is Status.ACTIVE
    finally:
        for process in processes:
            process.terminate()
        results = [process.communicate(timeout=20) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    assert [log for _, log in results] == [""] * len(processes)


def test_notifications_of_eventd_are_applied(
    host: str, store: TagStore, file: pathlib.Path, broker: Broker
) -> None:
    # The dispatcher applies those of this cluster that have the bound routing key.
    exchange = f"ganeti.{uuid.uuid4().hex}"
    lines = f"exchange = {exchange}\nrouting_key = ganeti.snf.event.op\n"
    file.write_text(f"{file.read_text()}\n{lines}")
    for name in ("snf-1", "other-1", "snf-2.example.org"):
        store.register(Instance(name, name, "p", "u"))

    def publish(job: int, instance: str, **other: Any) -> None:
        fields = {
            "type": "ganeti-op-status",
            "instance": instance,
            "operation": "OP_TAGS_SET",
            "tags": [f"{PREFIX}tag+{job}"],
            "job_fields": {"dry_run": False},
            "event_time": [1795084801, 449297],
            "status": "success",
            "cluster": "in-process",
            "logmsg": None,
            "result": None,
            "jobId": job,
            **other,
        }
        key = f"ganeti.{instance.split('-', maxsplit=1)[0]}.event.op"
        queues.publish_to(broker, exchange, key, json.dumps(fields).encode())

    with started(file, "dispatch") as process, contextlib.ExitStack() as stack:
        stack.callback(process.terminate)
        # The dispatcher binds the queue before it consumes from it.
        until(lambda: brokers.consumers(host, broker.queue.name) == 1)
        publish(1, "snf-1")
        publish(2, "other-1")
        publish(3, "snf-1", cluster="elsewhere")
        publish(4, "snf-1", job_fields={"dry_run": True})
        publish(10**15, "snf-1", operation="OP_INSTANCE_REMOVE")
        publish(5, "snf-2.example.org")
        until(lambda: store.state("snf-2.example.org").tags)
        process.terminate()
        process.communicate(timeout=20)
    assert store.state("snf-1").tags == {Tag(PREFIX, "tag 1"): Status.ACTIVE}
    assert store.state("other-1").tags == {}
    ((_, reason),) = queues.dead_letters(broker)
    assert reason.startswith("invalid job number 1000000000000000: the backend has not issued it")
