"""Outcomes of jobs, published and applied through a broker in memory."""

import functools
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard import errors
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.jobs import messages
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.jobs.dispatcher import Dispatcher
from steelyard.tags.jobs.loops import Stop
from steelyard.tags.jobs.watch import Watch
from steelyard.tags.states.values import Kind, Outcome
from support.tags import queues
from support.tags.databases import upgrade
from support.tags.patient_service import ACTIVE, CALLER, PENDADD, made
from support.tags.queues import dispatching, own_queue, send, until

pytestmark = pytest.mark.usefixtures("closed_databases")

KEPT = 86400.0


@pytest.fixture
def broker() -> Iterator[Broker]:
    with own_queue() as broker:
        yield broker


@pytest.fixture
def service(tmp_path: Any) -> TagService:
    """Return a service with two instances, whose backend runs jobs on request."""
    store = TagStore(f"sqlite:///{tmp_path}/tags.db")
    upgrade(store)
    return made(store, "s1", "s2")[0]


class Clock:
    """A clock whose time tests set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def backend(service: TagService) -> MemoryBackend:
    assert isinstance(service.backend, MemoryBackend)
    return service.backend


def dispatcher(broker: Broker, service: TagService, **more: Any) -> Dispatcher:
    return Dispatcher(broker, service.jobs.apply, first_pause=0.01, **more)


def all_finished(service: TagService) -> bool:
    return not service.store.pending()


def empty(broker: Broker) -> bool:
    return queues.count(broker, broker.queue) == 0


def test_watch_publishes_outcomes_and_dispatcher_applies_them(
    broker: Broker, service: TagService
) -> None:
    watch = Watch(service.jobs, KEPT, broker)
    service.add(CALLER, "s1", "red")
    service.create(CALLER, "vm", ["blue"], "s3")
    service.add(CALLER, "s2", "fails")
    watch.look()
    assert empty(broker)
    backend(service).fail(3)
    backend(service).run()
    watch.look()
    assert queues.count(broker, broker.queue) == 3
    assert service.tags(CALLER, "s1") == {"red": PENDADD}
    with dispatching(dispatcher(broker, service)):
        until(lambda: all_finished(service))
        assert service.tags(CALLER, "s1") == {"red": ACTIVE}
        assert service.tags(CALLER, "s2") == {}
        assert service.tags(CALLER, "s3") == {"blue": ACTIVE}
        service.delete(CALLER, "s1", "red")
        backend(service).run()
        watch.look()
        until(lambda: all_finished(service))
    assert service.tags(CALLER, "s1") == {}
    assert empty(broker)
    assert queues.dead_letters(broker) == []


def test_unapplied_outcome_is_published_again_at_growing_intervals(
    broker: Broker, service: TagService
) -> None:
    clock = Clock()
    watch = Watch(service.jobs, KEPT, broker, clock)
    service.store.follow(None, 0)  # otherwise the first look reconciles all instances
    service.add(CALLER, "s1", "red")
    backend(service).run()
    times: list[float] = []
    for second in range(0, 10_000, 20):
        clock.now = second
        watch.look()
        if queues.count(broker, broker.queue) > len(times):
            times.append(second)
    assert times == [0, 60, 180, 420, 900, 1860, 3780, 7380]
    queues.drain(broker, dispatcher(broker, service))
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    clock.now += 10_000
    watch.look()
    assert empty(broker)


def test_unpublished_outcome_is_published_by_the_next_look(
    service: TagService, broker: Broker
) -> None:
    down: Any = Broker("amqp://127.0.0.1:1/")
    watch = Watch(service.jobs, KEPT, down)
    service.add(CALLER, "s1", "red")
    watch.look()  # there is nothing to publish yet
    backend(service).run()
    with pytest.raises(errors.NoAccess, match=r"the broker 'amqp://.*127\.0\.0\.1:1//' failed"):
        watch.look()
    down.__dict__.update(broker.__dict__)
    watch.look()
    assert queues.count(broker, broker.queue) == 1


@pytest.mark.parametrize("published", [True, False])
def test_lost_jobs_are_reconciled_with_the_instances(
    broker: Broker, service: TagService, published: bool
) -> None:
    service.add(CALLER, "s1", "red")
    service.add(CALLER, "s2", "blue")
    restarted = MemoryBackend(patient=True)
    restarted.adopt({"s1.example.org": ["cyclades:user:red"], "s2.example.org": []}, last_job=9)
    service = TagService(service.store, restarted)
    Watch(service.jobs, KEPT, broker if published else None).look()
    assert all_finished(service)
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert service.tags(CALLER, "s2") == {}
    assert empty(broker)


def test_watch_without_a_broker_applies_outcomes_and_prunes_hourly(
    service: TagService, monkeypatch: Any
) -> None:
    pruned: list[float] = []
    monkeypatch.setattr(service.store, "prune", pruned.append)
    clock = Clock()
    watch = Watch(service.jobs, KEPT, clock=clock)
    service.add(CALLER, "s1", "red")
    backend(service).run()
    for clock.now in (0.0, 3599.0, 3600.0, 3601.0, 7200.0):
        watch.look()
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert pruned == [KEPT] * 3


def test_repeated_late_and_reordered_outcomes_give_the_same_tags(
    broker: Broker, service: TagService
) -> None:
    # 'red' is added, deleted and added; 'blue' is added and deleted, and its deletion is unapplied.
    outcomes: list[Outcome] = []

    def done(step: Any, name: str) -> None:
        step(CALLER, "s1", name)
        backend(service).run()
        outcomes.extend(outcome for _, outcome in service.jobs.finished().outcomes)

    for step, name in (
        (service.add, "red"),
        (service.add, "blue"),
        (service.delete, "red"),
        (service.add, "red"),
    ):
        done(step, name)
        service.jobs.poll()
    done(service.delete, "blue")
    before = service.store.snapshots_of(["s1"])[0].generation
    for order in (outcomes, outcomes[::-1], outcomes[3:] + outcomes[:3]):
        send(broker, *(messages.write(each).encode() for each in order))
    with dispatching(dispatcher(broker, service)):
        until(lambda: empty(broker) and all_finished(service))
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert service.store.snapshots_of(["s1"])[0].generation == before + 1


MALFORMED = [b"", b"{", b"\xff\xfe", b'{"job": "7"}', b"null", "größe".encode(), b"\x00" * 10]


@pytest.mark.parametrize("encoding", ["binary", "utf-8", "utf-16", "nonsense"])
def test_malformed_messages_are_put_aside(
    broker: Broker, service: TagService, caplog: Any, encoding: str
) -> None:
    service.add(CALLER, "s1", "red")
    backend(service).run()
    ((_, outcome),) = service.jobs.finished().outcomes
    send(broker, *MALFORMED[:4], content_encoding=encoding)
    send(broker, messages.write(outcome).encode(), *MALFORMED[4:])
    with dispatching(dispatcher(broker, service)):
        until(lambda: empty(broker) and all_finished(service))
        until(lambda: queues.count(broker, broker.dead) == len(MALFORMED))
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    aside = queues.dead_letters(broker)
    assert [body for body, _ in aside] == MALFORMED
    assert all(reason.startswith("malformed notification") for _, reason in aside)
    assert "'job' is '7', expected a whole number" in aside[3][1]
    assert caplog.text.count("Moved a message to the dead letters") == len(MALFORMED)


def test_outcome_that_raises_is_put_aside_and_others_are_applied(
    broker: Broker, service: TagService, caplog: Any
) -> None:
    def apply(outcome: Outcome) -> None:
        if outcome.job == 13:
            raise ZeroDivisionError("unlucky")
        service.jobs.apply(outcome)

    outcomes = [Outcome(job, "s1.example.org", Kind.ADD, _tags(job), True) for job in (12, 13, 14)]
    send(broker, *(messages.write(each).encode() for each in outcomes))
    with dispatching(Dispatcher(broker, apply)):
        until(lambda: len(service.tags(CALLER, "s1")) == 2)
    ((body, reason),) = queues.dead_letters(broker)
    assert messages.parse(body) == outcomes[1]
    assert reason == "ZeroDivisionError: unlucky"
    assert "ZeroDivisionError: unlucky" in caplog.text


def _tags(job: int) -> frozenset[Tag]:
    return frozenset([Tag("cyclades:user:", str(job))])


def test_database_errors_delay_outcomes_and_lose_none(
    broker: Broker, service: TagService, caplog: Any
) -> None:
    calls: list[int] = []

    def apply(outcome: Outcome) -> None:
        calls.append(outcome.job)
        if len(calls) <= 5:
            raise errors.ServiceError("database error: no")
        service.jobs.apply(outcome)

    outcomes = [Outcome(job, "s1.example.org", Kind.ADD, _tags(job), True) for job in (1, 2, 3)]
    send(broker, *(messages.write(each).encode() for each in outcomes))
    with dispatching(Dispatcher(broker, apply, first_pause=0.02)):
        until(lambda: len(service.tags(CALLER, "s1")) == 3)
    assert sorted(calls[5:]) == [1, 2, 3]
    assert caplog.text.count("Cannot apply outcomes; retrying in ") == 5
    assert empty(broker)
    assert queues.dead_letters(broker) == []


def test_pause_is_short_again_after_a_success(
    broker: Broker, service: TagService, caplog: Any
) -> None:
    failing = iter([True, True, True, True, False, True, False])

    def apply(outcome: Outcome) -> None:
        if next(failing):
            raise errors.ServiceError("no")
        service.jobs.apply(outcome)

    outcomes = [Outcome(job, "s1.example.org", Kind.ADD, _tags(job), True) for job in (1, 2)]
    send(broker, *(messages.write(each).encode() for each in outcomes))
    with dispatching(Dispatcher(broker, apply, first_pause=0.2)):
        until(lambda: len(service.tags(CALLER, "s1")) == 2)
    *_, last, again = map(float, re.findall(r"in (\d+\.\d) seconds", caplog.text))
    assert last >= 0.8
    assert again <= 0.2


def test_dispatcher_survives_errors_of_the_broker(
    broker: Broker, service: TagService, caplog: Any, monkeypatch: Any
) -> None:
    failures = [AttributeError("bug"), errors.NoAccess("the broker cannot do it: gone")]
    real = broker.connected

    def connected() -> Any:
        if failures:
            raise failures.pop()
        return real()

    send(broker, messages.write(Outcome(1, "s1.example.org", Kind.ADD, _tags(1), True)).encode())
    monkeypatch.setattr(broker, "connected", connected)
    with dispatching(dispatcher(broker, service)):
        until(lambda: service.tags(CALLER, "s1") == {"1": ACTIVE})
    assert "seconds: the broker cannot do it: gone" in caplog.text
    assert "AttributeError: bug" in caplog.text


def test_dispatcher_stops_after_the_current_message(broker: Broker, service: TagService) -> None:
    stop = Stop()
    done: list[int] = []

    def apply(outcome: Outcome) -> None:
        stop.set()
        service.jobs.apply(outcome)
        done.append(outcome.job)

    outcomes = [Outcome(job, "s1.example.org", Kind.ADD, _tags(job), True) for job in range(1, 6)]
    send(broker, *(messages.write(each).encode() for each in outcomes))
    with dispatching(Dispatcher(broker, apply), stop):
        until(lambda: done)
    assert len(done) == 1
    assert queues.count(broker, broker.queue) == 4
    with dispatching(dispatcher(broker, service)):
        until(lambda: len(service.tags(CALLER, "s1")) == 5)


def test_irrelevant_messages_are_consumed(broker: Broker, service: TagService, caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    reboot = {"job": 1, "instance": "x", "operation": "OP_INSTANCE_REBOOT", "status": "success"}
    running = {**reboot, "operation": "OP_TAGS_SET", "tags": ["x"], "status": "running"}
    stranger = {**running, "status": "success"}
    send(broker, *(json.dumps(each).encode() for each in (reboot, running, stranger)))
    with dispatching(dispatcher(broker, service)):
        until(lambda: "Ignored job 1: no instance 'x'" in caplog.text)
        until(functools.partial(empty, broker))
    assert queues.dead_letters(broker) == []
