"""Notifications from other programs: of other clusters, and of jobs that were never issued."""

import json
import logging
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard import errors
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import BackendIdentity, TagJob
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.jobs import messages
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.jobs.dispatcher import Dispatcher
from steelyard.tags.jobs.reports import _MOST_CLUSTERS, Reports
from steelyard.tags.jobs.watch import Watch
from steelyard.tags.states.values import Instance, Kind, Outcome
from support.tags import queues
from support.tags.databases import upgrade
from support.tags.patient_service import ACTIVE, CALLER, made, ours
from support.tags.queues import own_queue, send

pytestmark = pytest.mark.usefixtures("closed_databases")

S1 = "s1.example.org"
CLUSTER = "in-process"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with own_queue() as broker:
        yield broker


@pytest.fixture
def service(tmp_path: pathlib.Path) -> TagService:
    store = TagStore(f"sqlite:///{tmp_path}/tags.db")
    upgrade(store)
    return made(store, "s1")[0]


def of_eventd(job: int, tag: str, cluster: str = CLUSTER, **other: Any) -> bytes:
    """Return a notification as snf-ganeti-eventd publishes it."""
    fields = {
        "type": "ganeti-op-status",
        "instance": S1,
        "operation": "OP_TAGS_SET",
        "tags": [ours(tag)],
        "job_fields": {"dry_run": False},
        "event_time": [1795084801, 449297],
        "status": "success",
        "cluster": cluster,
        "logmsg": None,
        "result": None,
        "jobId": job,
    }
    return json.dumps({**fields, **other}).encode()


def dispatched(broker: Broker, service: TagService, *bodies: bytes) -> list[tuple[bytes, str]]:
    """Dispatch the messages and return those that were put aside."""
    send(broker, *bodies)
    queues.drain(broker, Dispatcher(broker, Reports(service.jobs).apply))
    return queues.dead_letters(broker)


def test_notifications_of_eventd_are_applied(broker: Broker, service: TagService) -> None:
    bodies = [
        of_eventd(1, "red"),
        of_eventd(2, "dry", job_fields={"dry_run": True}),
        of_eventd(3, "blue"),
        of_eventd(4, "red", operation="OP_TAGS_DEL"),
        of_eventd(5, "late", status="running"),
        of_eventd(6, "x", operation="OP_INSTANCE_STARTUP"),
    ]
    assert dispatched(broker, service, *bodies) == []
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE}
    removal = of_eventd(9, "blue", operation="OP_INSTANCE_REMOVE", tags=[])
    assert dispatched(broker, service, removal, of_eventd(8, "late")) == []
    assert service.tags(CALLER, "s1") == {}


def test_notifications_of_another_cluster_are_ignored(
    broker: Broker, service: TagService, caplog: pytest.LogCaptureFixture
) -> None:
    bodies = [of_eventd(each, "red", "other.example.org") for each in (1, 2, 10**12)]
    assert dispatched(broker, service, *bodies, of_eventd(3, "blue")) == []
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE}
    message = "Ignoring notifications of cluster 'other.example.org': the database belongs to"
    assert caplog.text.count(message) == 1


class Counting(MemoryBackend):
    """A backend that counts identity queries and can be unreachable."""

    asked = 0
    unreachable = False

    def identity(self) -> BackendIdentity:
        self.asked += 1
        if self.unreachable:
            raise errors.BackendUnreachable("no route")
        return super().identity()


def outcome(job: int, cluster: str | None, tag: str = "red") -> Outcome:
    keys = frozenset({Tag("cyclades:user:", tag)})
    return Outcome(job, S1, Kind.ADD, keys, succeeded=True, cluster=cluster)


def test_backend_identity_is_queried_once_a_minute_for_other_clusters(
    service: TagService, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = Counting()
    now = [0.0]
    reports = Reports(TagService(service.store, backend).jobs, clock=lambda: now[0])
    for job in range(1000):
        reports.apply(outcome(job, "other"))
    assert backend.asked == 1
    now[0] = 61.0
    reports.apply(outcome(1, "other"))
    assert backend.asked == 2
    backend.unreachable = True
    for now[0] in (62.0, 200.0):
        reports.apply(outcome(1, "other"))
    with pytest.raises(errors.BackendUnreachable):
        reports.apply(outcome(1, "never seen"))  # our cluster may have been renamed
    monkeypatch.setattr(service.store, "reading", None)  # a remembered name needs no database
    reports.apply(outcome(1, "other"))


def test_names_of_other_clusters_are_remembered_up_to_a_limit(service: TagService) -> None:
    backend = Counting()
    reports = Reports(TagService(service.store, backend).jobs)
    for name in range(_MOST_CLUSTERS + 1):
        reports.apply(outcome(1, f"other-{name}"))
    reports.apply(outcome(1, "other-0"))
    reports.apply(outcome(1, "other-0"))
    assert backend.asked == _MOST_CLUSTERS + 2


def test_highest_job_number_is_queried_again_after_a_minute(service: TagService) -> None:
    # Job numbers restart if the backend is set up again.
    now = [0.0]
    reports = Reports(service.jobs, clock=lambda: now[0])
    assert isinstance(service.backend, MemoryBackend)
    service.backend.adopt({}, last_job=10**6)
    reports.apply(outcome(10**6, CLUSTER))
    service.backend.__init__()  # type: ignore[misc]
    service.administration.forget_jobs()
    now[0] = 61.0
    with pytest.raises(errors.InvalidMessage, match="invalid job number 900000"):
        reports.apply(outcome(900000, CLUSTER))


def test_notification_with_the_wrong_backend_configured_is_retried(service: TagService) -> None:
    class Other(MemoryBackend):
        def identity(self) -> BackendIdentity:
            return BackendIdentity("memory", "other")

    reports = Reports(TagService(service.store, Other()).jobs)
    for cluster in (CLUSTER, "other", None):
        outcome = Outcome(10**12, S1, Kind.ADD, frozenset(), succeeded=True, cluster=cluster)
        with pytest.raises(errors.WrongBackend):
            reports.apply(outcome)


@pytest.mark.parametrize("job", [10**6, 2**62, 2**63 - 1])
@pytest.mark.parametrize("operation", ["OP_TAGS_SET", "OP_TAGS_DEL", "OP_INSTANCE_REMOVE"])
def test_unissued_job_number_is_put_aside_and_leaves_no_mark(
    broker: Broker, service: TagService, job: int, operation: str
) -> None:
    own = {"job": job, "instance": S1, "operation": operation, "tags": [ours("red")]}
    bodies = [
        of_eventd(job, "red", operation=operation),
        json.dumps({**own, "status": "success"}).encode(),
    ]
    rejected = dispatched(broker, service, *bodies)
    assert [body for body, _ in rejected] == bodies
    assert {reason for _, reason in rejected} == {
        f"invalid job number {job}: the backend has not issued it; correct the program that "
        f"publishes such notifications"
    }
    assert isinstance(service.backend, MemoryBackend)
    service.backend.adopt({"vm-9": ()})
    service.register(Instance("s9", "vm-9", "p", "u"))
    assert service.store.last_job() == 0
    for instance, server in ((S1, "s1"), ("vm-9", "s9")):
        number = service.backend.add(instance, [ours("red")])
        service.backend.run()
        keys = frozenset([Tag("cyclades:user:", "red")])
        outcome = Outcome(number, instance, Kind.ADD, keys, succeeded=True)
        assert dispatched(broker, service, messages.write(outcome).encode()) == []
        assert service.tags(CALLER, server) == {"red": ACTIVE}


def test_unexpected_backend_error_is_retried(service: TagService) -> None:
    class Broken(MemoryBackend):
        def has_issued(self, number: int) -> bool:
            raise ZeroDivisionError("no")

    outcome = Outcome(1, S1, Kind.ADD, frozenset(), succeeded=True)
    with pytest.raises(errors.BackendRefused, match="for job 1: ZeroDivisionError: no"):
        Reports(TagService(service.store, Broken()).jobs).apply(outcome)


def test_queue_receives_messages_with_the_bound_routing_key(
    service: TagService, caplog: Any
) -> None:
    caplog.set_level(logging.INFO)
    with own_queue() as plain:
        bound = Broker(queue=plain.queue.name, bound_to=("ganeti", "ganeti.#.event.op"))
        queues.publish_to(bound, "ganeti", "ganeti.snf.event.op", of_eventd(1, "red"))
        queues.publish_to(bound, "ganeti", "ganeti.snf.event.progress", b"{}")
        assert dispatched(bound, service) == []
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}


def test_second_step_of_a_job_is_applied_by_the_watch(broker: Broker, service: TagService) -> None:
    # Steps share a job number, so the notification of the second is not newer than the first.
    backend = service.backend
    assert isinstance(backend, MemoryBackend)
    service.store.follow(None, 0)
    assert backend.add(S1, [ours("red")]) == 1
    backend.run()
    backend._described[1] = TagJob(S1, Kind.DELETE, frozenset([ours("red")]))
    backend._delete(S1, [ours("red")])
    bodies = [of_eventd(1, "red"), of_eventd(1, "red", operation="OP_TAGS_DEL")]
    assert dispatched(broker, service, *bodies) == []
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    Watch(service.jobs, 86400.0, broker).look()
    assert dispatched(broker, service) == []
    assert service.tags(CALLER, "s1") == {}
    assert dispatched(broker, service, *bodies) == []
    assert service.tags(CALLER, "s1") == {}
