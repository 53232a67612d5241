"""Outcomes of jobs, published and settled, through a broker that is only here."""

import functools
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import tag_brokers
from tag_brokers import dispatching, own_queue, send, until
from tag_databases import upgrade
from tag_stores import ACTIVE, CALLER, PENDADD, made

from steelyard import errors
from steelyard.loops import Stop
from steelyard.tags import TagService, TagStore, messages
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.broker import Broker
from steelyard.tags.dispatcher import Dispatcher
from steelyard.tags.states import Kind, Outcome
from steelyard.tags.watch import Watch

pytestmark = pytest.mark.usefixtures("closed_databases")

KEPT = 86400.0


@pytest.fixture
def broker() -> Iterator[Broker]:
    with own_queue() as broker:
        yield broker


@pytest.fixture
def service(tmp_path: Any) -> TagService:
    """With two instances, whose jobs are done when the backend is told so."""
    store = TagStore(f"sqlite:///{tmp_path}/tags.db")
    upgrade(store)
    return made(store, "s1", "s2")[0]


class Clock:
    """It shows what it is set to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def backend(service: TagService) -> MemoryBackend:
    assert isinstance(service.backend, MemoryBackend)
    return service.backend


def dispatcher(broker: Broker, service: TagService, **more: Any) -> Dispatcher:
    return Dispatcher(broker, service.settle, first_pause=0.01, **more)


def settled(service: TagService) -> bool:
    return not service.store.pending()


def empty(broker: Broker) -> bool:
    return tag_brokers.count(broker, broker.queue) == 0


def test_what_is_watched_is_published_and_settled(broker: Broker, service: TagService) -> None:
    watch = Watch(service, KEPT, broker)
    service.add(CALLER, "s1", "red")
    service.create(CALLER, "vm", ["blue"], "s3")
    service.add(CALLER, "s2", "fails")
    watch.look()
    assert empty(broker)
    backend(service).fail(3)
    backend(service).run()
    watch.look()
    assert tag_brokers.count(broker, broker.queue) == 3
    assert service.tags(CALLER, "s1") == {"red": PENDADD}
    with dispatching(dispatcher(broker, service)):
        until(lambda: settled(service))
        assert service.tags(CALLER, "s1") == {"red": ACTIVE}
        assert service.tags(CALLER, "s2") == {}
        assert service.tags(CALLER, "s3") == {"blue": ACTIVE}
        service.delete(CALLER, "s1", "red")
        backend(service).run()
        watch.look()
        until(lambda: settled(service))
    assert service.tags(CALLER, "s1") == {}
    assert empty(broker)
    assert tag_brokers.put_aside(broker) == []


def test_the_same_is_published_again_only_after_a_while(
    broker: Broker, service: TagService
) -> None:
    clock = Clock()
    watch = Watch(service, KEPT, broker, clock)
    service.add(CALLER, "s1", "red")
    backend(service).run()
    times: list[float] = []
    for second in range(0, 10_000, 20):
        clock.now = second
        watch.look()
        if tag_brokers.count(broker, broker.queue) > len(times):
            times.append(second)
    assert times == [0, 60, 180, 420, 900, 1860, 3780, 7380]
    with dispatching(dispatcher(broker, service)):
        until(lambda: empty(broker))
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    clock.now += 10_000
    watch.look()
    assert empty(broker)


def test_what_could_not_be_published_is_published_the_next_time(
    service: TagService, broker: Broker
) -> None:
    down: Any = Broker("amqp://127.0.0.1:1/")
    watch = Watch(service, KEPT, down)
    service.add(CALLER, "s1", "red")
    watch.look()  # there is nothing to publish yet
    backend(service).run()
    with pytest.raises(errors.NoAccess, match=r"the broker amqp://.*127\.0\.0\.1:1// cannot"):
        watch.look()
    down.__dict__.update(broker.__dict__)
    watch.look()
    assert tag_brokers.count(broker, broker.queue) == 1


@pytest.mark.parametrize("published", [True, False])
def test_what_the_backend_has_lost_shows_in_what_is_there(
    broker: Broker, service: TagService, published: bool
) -> None:
    service.add(CALLER, "s1", "red")
    service.add(CALLER, "s2", "blue")
    forgetful = MemoryBackend(patient=True)
    forgetful.adopt({"s1.example.org": ["cyclades:user:red"], "s2.example.org": []}, last_job=9)
    service.backend = forgetful
    Watch(service, KEPT, broker if published else None).look()
    assert settled(service)
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert service.tags(CALLER, "s2") == {}
    assert empty(broker)


def test_without_a_broker_it_settles_by_itself_and_old_marks_are_forgotten_each_hour(
    service: TagService, monkeypatch: Any
) -> None:
    pruned: list[float] = []
    monkeypatch.setattr(service.store, "prune", pruned.append)
    clock = Clock()
    watch = Watch(service, KEPT, clock=clock)
    service.add(CALLER, "s1", "red")
    backend(service).run()
    for clock.now in (0.0, 3599.0, 3600.0, 3601.0, 7200.0):
        watch.look()
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert pruned == [KEPT] * 3


def test_twice_late_and_in_any_order(broker: Broker, service: TagService) -> None:
    """Red is added, deleted and added again; blue is deleted in the end, and nobody knows yet."""
    told: list[Outcome] = []

    def done(step: Any, name: str) -> None:
        step(CALLER, "s1", name)
        backend(service).run()
        told.extend(outcome for _, outcome in service.over().outcomes)

    for step, name in (
        (service.add, "red"),
        (service.add, "blue"),
        (service.delete, "red"),
        (service.add, "red"),
    ):
        done(step, name)
        service.poll()
    done(service.delete, "blue")
    before = service.store.snapshots_of(["s1"])[0].generation
    for order in (told, told[::-1], told[3:] + told[:3]):
        send(broker, *(messages.write(each).encode() for each in order))
    with dispatching(dispatcher(broker, service)):
        until(lambda: empty(broker) and settled(service))
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert service.store.snapshots_of(["s1"])[0].generation == before + 1


MALFORMED = [b"", b"{", b"\xff\xfe", b'{"job": "7"}', b"null", "größe".encode(), b"\x00" * 10]


@pytest.mark.parametrize("encoding", ["binary", "utf-8", "utf-16", "nonsense"])
def test_what_is_malformed_is_put_aside_and_nothing_stops(
    broker: Broker, service: TagService, caplog: Any, encoding: str
) -> None:
    service.add(CALLER, "s1", "red")
    backend(service).run()
    ((_, outcome),) = service.over().outcomes
    send(broker, *MALFORMED[:4], content_encoding=encoding)
    send(broker, messages.write(outcome).encode(), *MALFORMED[4:])
    with dispatching(dispatcher(broker, service)):
        until(lambda: empty(broker) and settled(service))
        until(lambda: tag_brokers.count(broker, broker.dead) == len(MALFORMED))
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    aside = tag_brokers.put_aside(broker)
    assert [body for body, _ in aside] == MALFORMED
    assert all("is no notification about a job" in why for _, why in aside)
    assert "'job' is '7', and must be a whole number" in aside[3][1]
    assert caplog.text.count("A message is put aside") == len(MALFORMED)


def test_of_a_fault_in_the_settling_the_others_take_no_harm(
    broker: Broker, service: TagService, caplog: Any
) -> None:
    def settle(outcome: Outcome) -> None:
        if outcome.job == 13:
            raise ZeroDivisionError("unlucky")
        service.settle(outcome)

    outcomes = [Outcome(job, "s1.example.org", Kind.ADD, _key(job), True) for job in (12, 13, 14)]
    send(broker, *(messages.write(each).encode() for each in outcomes))
    with dispatching(Dispatcher(broker, settle)):
        until(lambda: len(service.tags(CALLER, "s1")) == 2)
    ((body, why),) = tag_brokers.put_aside(broker)
    assert messages.parse(body) == outcomes[1]
    assert why == "ZeroDivisionError: unlucky"
    assert "ZeroDivisionError: unlucky" in caplog.text


def _key(job: int) -> frozenset[tuple[str, str]]:
    return frozenset([("cyclades:user:", str(job))])


def test_while_the_database_is_in_trouble_nothing_is_lost(
    broker: Broker, service: TagService, caplog: Any
) -> None:
    calls: list[int] = []

    def settle(outcome: Outcome) -> None:
        calls.append(outcome.job)
        if len(calls) <= 5:
            raise errors.ServiceError("the database cannot do it: no")
        service.settle(outcome)

    outcomes = [Outcome(job, "s1.example.org", Kind.ADD, _key(job), True) for job in (1, 2, 3)]
    send(broker, *(messages.write(each).encode() for each in outcomes))
    with dispatching(Dispatcher(broker, settle, first_pause=0.02)):
        until(lambda: len(service.tags(CALLER, "s1")) == 3)
    assert sorted(calls[5:]) == [1, 2, 3]
    assert caplog.text.count("Outcomes wait; in ") == 5
    assert empty(broker)
    assert tag_brokers.put_aside(broker) == []


def test_after_a_success_the_pauses_begin_anew(
    broker: Broker, service: TagService, caplog: Any
) -> None:
    """The second trouble is another one than the first."""
    failing = iter([True, True, True, True, False, True, False])

    def settle(outcome: Outcome) -> None:
        if next(failing):
            raise errors.ServiceError("no")
        service.settle(outcome)

    outcomes = [Outcome(job, "s1.example.org", Kind.ADD, _key(job), True) for job in (1, 2)]
    send(broker, *(messages.write(each).encode() for each in outcomes))
    with dispatching(Dispatcher(broker, settle, first_pause=0.2)):
        until(lambda: len(service.tags(CALLER, "s1")) == 2)
    *_, last, again = map(float, re.findall(r"in (\d+\.\d) seconds", caplog.text))
    assert last >= 0.8
    assert again <= 0.2


def test_it_goes_on_whatever_happens_at_the_broker(
    broker: Broker, service: TagService, caplog: Any, monkeypatch: Any
) -> None:
    failures = [AttributeError("odd"), errors.NoAccess("the broker cannot do it: gone")]
    real = broker.connected

    def connected() -> Any:
        if failures:
            raise failures.pop()
        return real()

    send(broker, messages.write(Outcome(1, "s1.example.org", Kind.ADD, _key(1), True)).encode())
    monkeypatch.setattr(broker, "connected", connected)
    with dispatching(dispatcher(broker, service)):
        until(lambda: service.tags(CALLER, "s1") == {"1": ACTIVE})
    assert "tried again: the broker cannot do it: gone" in caplog.text
    assert "AttributeError: odd" in caplog.text


def test_it_stops_after_the_message_that_it_is_at(broker: Broker, service: TagService) -> None:
    stop = Stop()
    done: list[int] = []

    def settle(outcome: Outcome) -> None:
        stop.set()
        service.settle(outcome)
        done.append(outcome.job)

    outcomes = [Outcome(job, "s1.example.org", Kind.ADD, _key(job), True) for job in range(1, 6)]
    send(broker, *(messages.write(each).encode() for each in outcomes))
    with dispatching(Dispatcher(broker, settle), stop):
        until(lambda: done)
    assert len(done) == 1
    assert tag_brokers.count(broker, broker.queue) == 4
    with dispatching(dispatcher(broker, service)):
        until(lambda: len(service.tags(CALLER, "s1")) == 5)


def test_what_is_about_nothing_here_is_taken_off(
    broker: Broker, service: TagService, caplog: Any
) -> None:
    caplog.set_level(logging.INFO)
    reboot = {"job": 1, "instance": "x", "operation": "OP_INSTANCE_REBOOT", "status": "success"}
    running = {**reboot, "operation": "OP_TAGS_SET", "tags": ["x"], "status": "running"}
    stranger = {**running, "status": "success"}
    send(broker, *(json.dumps(each).encode() for each in (reboot, running, stranger)))
    with dispatching(dispatcher(broker, service)):
        until(lambda: "Job 1 is about 'x', which is not known here" in caplog.text)
        until(functools.partial(empty, broker))
    assert tag_brokers.put_aside(broker) == []
