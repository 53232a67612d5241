"""The steps of the watch: interrupted, failing, periodic, and over another backend."""

import time
from collections.abc import Iterable, Mapping

import pytest

from steelyard import errors
from steelyard.tags import TagService
from steelyard.tags.backends.base import BackendIdentity, TagBackend
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.jobs.following import _LISTED_AFTER
from steelyard.tags.jobs.watch import Watch
from steelyard.tags.states.values import Outcome, StateChange, TagMark
from support.tags.patient_service import ACTIVE, CALLER, PENDADD, ours
from support.tags.watched_jobs import S1, S2, Archiving, Clock, done, failing, watching

pytestmark = pytest.mark.usefixtures("closed_databases")


class Killed(BaseException):
    """The end of the process."""


@pytest.mark.parametrize("where", ["apply", "check_backend", "follow", "note_reconciled"])
def test_watch_killed_between_steps_loses_nothing(
    service: TagService, backend: Archiving, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def die(*_: object, **__: object) -> None:
        raise Killed

    watch = watching(service, clock=(clock := Clock()))
    for tag in ("red", "blue", "green"):
        done(backend, backend.add(S1, [ours(tag)]))
    backend.lose(2)
    watch.look()
    clock.now = _LISTED_AFTER
    owner = service.jobs if where == "apply" else service.store
    with monkeypatch.context() as patched:
        patched.setattr(owner, where, die)
        for _ in range(3):
            done(backend, backend.add(S2, [ours("last")]))
            with pytest.raises(Killed):
                watch.look()
    later = Clock()
    watch = watching(service, clock=later)
    later.now = _LISTED_AFTER
    watch.look()
    assert service.tags(CALLER, "s1").keys() == {"red", "blue", "green"}
    assert service.tags(CALLER, "s2") == {"last": ACTIVE}
    assert service.store.watched().job == 6


def test_failed_record_of_a_job_is_retried(
    service: TagService, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = failing(3, service.store.record_job)
    monkeypatch.setattr(service.store, "record_job", record)
    service.add(CALLER, "s1", "red")
    assert service.store.pending()[0][1].job == 1


def test_failing_record_of_a_job_is_logged_and_given_up(
    service: TagService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(TagService, "_record_for", 0.5)
    monkeypatch.setattr(service.store, "record_job", failing(1000))
    assert service.add(CALLER, "s1", "red")
    assert "Cannot record job 1" in caplog.text
    assert service.tags(CALLER, "s1") == {"red": PENDADD}


def test_watch_does_not_follow_another_backend(
    service: TagService, backend: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watching(service)
    done(backend, backend.add(S1, [ours("red")]))
    monkeypatch.setattr(backend, "identity", lambda: BackendIdentity("memory", "other"))
    with pytest.raises(errors.WrongBackend, match="'other'"):
        watch.look()
    assert service.tags(CALLER, "s1") == {}
    assert service.store.watched().job == 0


class Bare(TagBackend):
    """A third-party backend that has no list of jobs."""

    def __init__(self, memory: MemoryBackend) -> None:
        for name in ("identity", "create", "add", "delete", "jobs", "horizon", "tags"):
            setattr(self, name, getattr(memory, name))

    identity = create = add = delete = jobs = horizon = tags = None  # type: ignore[assignment]


def test_backend_without_a_list_of_jobs_is_reconciled_at_intervals(
    new_service: TagService, backend: Archiving
) -> None:
    service = TagService(new_service.store, Bare(backend))
    watch = watching(service)
    done(backend, backend.add(S1, [ours("red")]))
    service.add(CALLER, "s2", "blue")
    backend.run()
    watch.look()
    assert service.tags(CALLER, "s1") == {}
    assert service.tags(CALLER, "s2") == {"blue": ACTIVE}
    assert service.store.watched().job is None
    watch = watching(service, reconcile_every=1000.0)
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    done(backend, backend.delete(S1, [ours("red")]))
    watch.look()
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    service.store.note_reconciled(0.0)
    watching(service, reconcile_every=1000.0)
    assert service.tags(CALLER, "s1") == {}


def test_instance_that_changes_during_reconciliation_is_retried(
    service: TagService, backend: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.adopt({S1: [ours("red")]})
    real = backend.tags

    def tags(instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        monkeypatch.setattr(backend, "tags", real)
        service.add(CALLER, "s1", "blue")
        return real(instances)

    monkeypatch.setattr(backend, "tags", tags)
    service.jobs.reconciliation().apply()
    assert service.tags(CALLER, "s1") == {"red": ACTIVE, "blue": PENDADD}


def test_periodic_reconciliation_is_due_after_the_clock_was_set_back(
    service: TagService, backend: Archiving, reconciled: list[None]
) -> None:
    watch = watching(service, reconcile_every=1000.0)
    watch.look()
    assert len(reconciled) == 1
    service.store.note_reconciled(time.time() + 86400.0)
    watch.look()
    watch.look()
    assert len(reconciled) == 2


def test_failing_steps_of_a_look_stop_no_other_step(
    service: TagService,
    backend: Archiving,
    reconciled: list[None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("instance_name")

    service.store.change(
        "s2",
        lambda _: (
            StateChange(marked={Tag("cyclades:user:", "old"): TagMark(1, there=False)}),
            None,
        ),
    )
    service.add(CALLER, "s2", "blue")
    done(backend, backend.add(S1, [ours("red")]))
    monkeypatch.setattr(backend, "tag_jobs", fail)
    with monkeypatch.context() as patched:
        patched.setattr(service.store, "prune", failing(1))
        with pytest.raises(KeyError, match="instance_name"):
            Watch(service.jobs, -1.0, reconcile_every=1000.0).look()
    assert len(reconciled) == 1
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert service.tags(CALLER, "s2") == {"blue": ACTIVE}
    assert caplog.text.count("Cannot process the backend's jobs: database error") == 1
    with monkeypatch.context() as patched:
        patched.setattr(service.store, "prune", fail)
        with pytest.raises(KeyError):
            Watch(service.jobs, -1.0).look()
    assert caplog.text.count("Traceback") == 1
    with pytest.raises(KeyError):
        Watch(service.jobs, -1.0).look()
    assert ("cyclades:user:", "old") not in service.store.state("s2").marks


@pytest.mark.parametrize(
    "error", [KeyError("project"), errors.CannotBeKept("unsupported character")]
)
def test_outcome_that_cannot_be_applied_is_skipped(
    service: TagService,
    backend: Archiving,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    real = service.jobs.apply

    def apply(outcome: Outcome) -> None:
        if outcome.job == 1:
            raise error
        real(outcome)

    watch = watching(service)
    monkeypatch.setattr(service.jobs, "apply", apply)
    for tag in ("red", "blue"):
        done(backend, backend.add(S1, [ours(tag)]))
    watch.look()
    assert service.tags(CALLER, "s1") == {"blue": ACTIVE}
    assert service.store.watched().job == 2
    assert caplog.text.count("Skipped the outcome of job 1") == 1
