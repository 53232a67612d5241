"""The jobs of the backend that the watch follows: changes by others arrive, however late."""

import pytest

from steelyard import errors
from steelyard.tags import TagService
from steelyard.tags.backends.base import JobStatus, TagJob
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.jobs.dispatcher import Dispatcher
from steelyard.tags.jobs.following import _AHEAD, _LISTED_AFTER, _UNLISTED
from steelyard.tags.jobs.reports import Reports
from steelyard.tags.jobs.watch import Watch
from steelyard.tags.states.values import Kind
from support.tags import queues
from support.tags.patient_service import ACTIVE, CALLER, ours
from support.tags.queues import dispatching, own_queue, until
from support.tags.watched_jobs import KEPT, S1, S2, Archiving, Clock, done, failing, watching

pytestmark = pytest.mark.usefixtures("closed_databases")


def test_changes_by_others_are_applied(service: TagService, backend: Archiving) -> None:
    watch = watching(service)
    done(backend, backend.add(S1, [ours("red"), ours("blue"), "foreign"]))
    done(backend, backend.delete(S1, [ours("blue")]))
    watch.look()
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert service.store.watched().job == 2
    done(backend, backend.delete(S1, [ours("red")]))
    watch.look()
    assert service.tags(CALLER, "s1") == {}


def test_changes_by_others_are_applied_through_a_broker(
    service: TagService, backend: Archiving
) -> None:
    with own_queue() as broker:
        watch = watching(service, broker=broker)
        done(backend, backend.add(S1, [ours("red")]))
        service.add(CALLER, "s1", "blue")
        backend.run()
        watch.look()
        assert queues.count(broker, broker.queue) == 2
        with dispatching(Dispatcher(broker, Reports(service.jobs).apply)):
            until(lambda: service.tags(CALLER, "s1") == {"red": ACTIVE, "blue": ACTIVE})
        watch.look()
        assert queues.count(broker, broker.queue) == 0


def test_first_look_reconciles_earlier_changes(
    new_service: TagService, backend: Archiving, reconciled: list[None]
) -> None:
    done(backend, backend.add(S1, [ours("red")]))
    backend.add(S1, [ours("late")])
    watch = watching(new_service)
    assert new_service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert new_service.store.watched().job == 1
    backend.run()
    watch.look()
    watching(new_service)
    assert new_service.tags(CALLER, "s1").keys() == {"late", "red"}
    assert len(reconciled) == 1


def test_first_look_ignores_archived_jobs(
    new_service: TagService, backend: Archiving, reconciled: list[None]
) -> None:
    service = new_service
    for job in (backend.add, backend.delete):
        done(backend, job(S1, [ours("ghost")]))
    for _ in range(2 * _AHEAD):
        done(backend, backend.add(S2, ["x"]))
    backend.archived = set(range(1, backend.horizon() + 1))
    watch = watching(service)
    for _ in range(4):
        watch.look()
        assert service.tags(CALLER, "s1") == {}
        assert service.store.watched().job is None
    assert len(reconciled) == 1
    done(backend, backend.add(S1, [ours("red")]))
    watch.look()
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert service.store.watched().job == backend.horizon()
    assert len(reconciled) == 2


def test_mark_stays_below_the_oldest_unfinished_job(
    service: TagService, backend: Archiving
) -> None:
    watch = watching(service)
    backend.add(S1, [ours("late")])
    second = backend.add(S2, [ours("red")])
    backend._end(second, None)
    backend._add(S2, [ours("red")])
    watch.look()
    assert service.tags(CALLER, "s2") == {"red": ACTIVE}
    assert service.store.watched().job == 0
    backend.run()
    watching(service)  # another process
    assert service.tags(CALLER, "s1") == {"late": ACTIVE}
    assert service.store.watched().job == 2


def test_archived_jobs_are_queried_by_number(
    service: TagService, backend: Archiving, reconciled: list[None]
) -> None:
    watch = watching(service)
    for tag in ("red", "blue", "green"):
        done(backend, backend.add(S1, [ours(tag)]))
    backend.archived = {1, 2}
    watch.look()
    assert service.tags(CALLER, "s1").keys() == {"red", "blue", "green"}
    done(backend, backend.add(S2, [ours("last")]))
    backend.archived = {1, 2, 3, 4}
    watch.look()
    assert service.tags(CALLER, "s2") == {"last": ACTIVE}
    assert service.store.watched().job == 4
    assert not reconciled


def test_jobs_missing_at_the_backend_trigger_one_reconciliation(
    service: TagService, backend: Archiving, reconciled: list[None]
) -> None:
    clock = Clock()
    watch = watching(service, clock=clock)
    for tag in ("red", "blue"):
        done(backend, backend.add(S1, [ours(tag)]))
    backend.lose(1)
    watch.look()
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE}
    assert service.store.watched().job == 0  # job 1 may still appear in the list
    clock.now = _LISTED_AFTER
    watch.look()
    watch.look()
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE, "red": ACTIVE}
    assert service.store.watched().job == 2
    assert len(reconciled) == 1


def test_job_listed_late_is_applied(
    service: TagService, backend: Archiving, reconciled: list[None]
) -> None:
    watch = watching(service)
    for tag in ("red", "blue"):
        done(backend, backend.add(S1, [ours(tag)]))
    hidden = backend._described.pop(1), backend._over.pop(1)
    watch.look()
    backend._described[1], backend._over[1] = hidden
    watch.look()
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE, "red": ACTIVE}
    assert service.store.watched().job == 2
    assert not reconciled


@pytest.mark.parametrize("paused", [False, True])
def test_long_gap_is_reconciled_once(
    service: TagService, backend: Archiving, reconciled: list[None], paused: bool
) -> None:
    watch = watching(service, clock=(clock := Clock()))
    if paused:
        backend.add(S1, [ours("late")])
    backend.adopt({S1: [ours("red")]}, last_job=5 * _UNLISTED)
    last = backend.add(S2, [ours("blue")])
    backend._end(last, JobStatus.SUCCEEDED)
    backend._add(S2, [ours("blue")])
    for clock.now in (0.0, _LISTED_AFTER, 2 * _LISTED_AFTER):
        watch.look()
    assert service.tags(CALLER, "s1").items() >= {"red": ACTIVE}.items()
    assert service.tags(CALLER, "s2") == {"blue": ACTIVE}
    assert service.store.watched().job == (0 if paused else last)
    assert max(map(len, backend.asked)) == _UNLISTED
    assert len(reconciled) == 2  # once for the skipped numbers, once for those that stay unknown


def test_unrecorded_job_is_recognised_in_the_list(
    service: TagService, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watching(service)
    monkeypatch.setattr(TagService, "_record_for", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(service.store, "record_job", failing(1))
        service.add(CALLER, "s1", "red")
    assert service.store.pending()[0][1].job is None
    assert isinstance(service.backend, MemoryBackend)
    service.backend.run()
    watch.look()
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert service.store.pending() == []


def test_removed_instance_has_no_tags(
    service: TagService, backend: Archiving, caplog: pytest.LogCaptureFixture
) -> None:
    watch = watching(service)
    done(backend, backend.add(S1, [ours("red")]))
    watch.look()
    backend._described[2] = TagJob(S1, Kind.REMOVE, frozenset())
    backend._over[2], backend._last = JobStatus.SUCCEEDED, 2
    backend.remove(S1)
    watch.look()
    assert service.tags(CALLER, "s1") == {}
    watching(service)
    assert caplog.text.count("run 'steelyard tags forget s1'") == 1
    assert (
        "Job 2 removed instance 's1.example.org' at the backend, but it is still registered"
        in caplog.text
    )


def test_parts_of_one_job_are_applied_in_order(
    service: TagService, backend: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watching(service)
    done(backend, backend.add(S1, [ours("red")]))
    parts = [
        TagJob(S1, Kind.ADD, frozenset([ours("red"), ours("blue")])),
        TagJob(S1, Kind.DELETE, frozenset([ours("red")])),
    ]
    monkeypatch.setattr(backend, "tag_jobs", lambda numbers: dict.fromkeys(numbers, parts))
    watch.look()
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE}


def test_record_of_the_watch_is_reset_with_the_job_numbers(
    service: TagService, backend: Archiving
) -> None:
    watch = watching(service, clock=(clock := Clock()))
    backend.add(S1, ["late"])
    for tag in ("a", "b", "c", "d"):
        job = backend.add(S2, [ours(tag)])
        backend._end(job, None)
    backend.lose(2)
    for clock.now in (0.0, _LISTED_AFTER):
        watch.look()
    service.administration.forget_jobs()
    assert service.store.watched().job is None
    service.store.follow(0, 7)  # a watch that started before the reset
    assert service.store.watched().job is None
    backend.__init__()  # type: ignore[misc]
    backend.adopt({S1: (), S2: ()})
    backend.add(S1, ["late"])
    watch.look()
    assert service.store.watched().job == 0
    for tag in ("a", "b", "c", "d"):
        job = backend.add(S2, [ours(tag)])
        backend._end(job, backend._add(S2, [ours(tag)]))
    backend.lose(2)
    backend.archived = {3}
    watch.look()
    assert service.tags(CALLER, "s2").keys() == {"b", "c", "d"}
    backend.run()
    for clock.now in (2 * _LISTED_AFTER, 3 * _LISTED_AFTER):
        watch.look()
    assert service.tags(CALLER, "s2").keys() == {"a", "b", "c", "d"}
    assert service.store.watched().job == 5


def test_backend_with_fewer_jobs_is_reported_once(
    service: TagService, caplog: pytest.LogCaptureFixture
) -> None:
    watch = watching(service)
    service.store.follow(0, 10**6)
    watch.look()
    watch.look()
    assert caplog.text.count("The backend has not issued job 1000000") == 1


@pytest.mark.parametrize("first_look", [False, True])
def test_instance_that_changes_during_each_attempt_keeps_the_mark(
    request: pytest.FixtureRequest,
    new_service: TagService,
    backend: Archiving,
    monkeypatch: pytest.MonkeyPatch,
    *,
    first_look: bool,
) -> None:
    service = new_service if first_look else request.getfixturevalue("service")
    watch = Watch(service.jobs, KEPT, clock=(clock := Clock()))
    for tag in ("red", "blue"):
        done(backend, backend.add(S1, [ours(tag)]))
    backend.lose(1)
    if not first_look:
        watch.look()
        clock.now = _LISTED_AFTER
    before = service.store.watched()
    with monkeypatch.context() as patched:
        patched.setattr(service.store, "change_unchanged", lambda changes: {"s1"})
        with pytest.raises(errors.ConcurrentUpdate, match=r"1 changed during each .* such as 's1'"):
            watch.look()
    assert service.store.watched() == before
    watch.look()
    assert service.tags(CALLER, "s1").keys() == {"red", "blue"}
    assert service.store.watched().job == 2
