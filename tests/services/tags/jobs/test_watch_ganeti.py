"""Changes by hand in a real Ganeti, which the watch finds in the list of jobs."""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from steelyard.tags import TagService, encode
from steelyard.tags.backends.base import JobStatus
from steelyard.tags.backends.ganeti import GanetiBackend
from steelyard.tags.jobs import following
from steelyard.tags.jobs.watch import Watch
from steelyard.tags.reconciliation import Reconciliation
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import Status
from support.services.ganeti_cluster import (
    CREATION,
    INST1,
    INST2,
    NEW,
    Cluster,
    done,
    filtered,
    last_job,
    remove_from_archive,
    service_of,
    settle,
    wait,
)

CALLER, OPERATOR = Caller("p", "u"), Operator()
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD
USER, SYSTEM = "cyclades:user:", "cyclades:system:"


def ours(name: str) -> str:
    return encode(name, USER)


def watched(service: TagService) -> Watch:
    """Return a watch that has finished its first look."""
    watch = Watch(service.jobs, marks_kept=86400.0)
    watch.look()
    return watch


def look_until(watch: Watch, until: Callable[[], Any]) -> None:
    def seen() -> Any:
        watch.look()
        return until()

    wait(seen)


@pytest.fixture
def no_reconciliation(service: TagService, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Return a watch that fails the test if it reconciles after its first look."""
    watch = watched(service)
    monkeypatch.setattr(Reconciliation, "apply", lambda _: pytest.fail("reconciled"))
    return watch


def test_changes_by_hand_are_applied_without_reconciliation(
    cluster: Cluster, service: TagService, no_reconciliation: Watch
) -> None:
    # Ganeti accepts a part of the instance's name, in upper or lower case.
    watch = no_reconciliation
    cluster.inside("gnt-instance", "add-tags", INST1, ours("red"), ours("blue"), "foreign")
    cluster.inside("gnt-instance", "add-tags", "inst1", ours("green"))
    look_until(watch, lambda: len(service.tags(CALLER, "s1")) == 3)
    cluster.inside("gnt-instance", "remove-tags", "INST1.GNT.test", ours("red"), "foreign")
    look_until(watch, lambda: service.tags(CALLER, "s1") == {"blue": ACTIVE, "green": ACTIVE})
    assert service.tags(CALLER, "s2") == {}
    assert service.store.watched().job == last_job(cluster)


def test_dry_runs_and_failures_by_hand_change_nothing(
    cluster: Cluster, service: TagService, no_reconciliation: Watch
) -> None:
    rapi = service.backend._rapi  # type: ignore[attr-defined]
    dry = f"/2/instances/{INST1}/tags?tag={ours('dry')}&dry-run=1"
    done(service.backend, rapi.submit("PUT", dry))
    missing = f"/2/instances/{INST1}/tags?tag={ours('missing')}"
    done(service.backend, rapi.submit("DELETE", missing), expected=JobStatus.FAILED)
    no_reconciliation.look()
    assert service.tags(CALLER, "s1") == {}
    assert service.store.watched().job == last_job(cluster)


def test_mark_stays_below_a_paused_job(
    cluster: Cluster, service: TagService, no_reconciliation: Watch
) -> None:
    watch = no_reconciliation
    cluster.inside("gnt-instance", "add-tags", INST2, ours("red"))
    look_until(watch, lambda: service.tags(CALLER, "s2") == {"red": ACTIVE})
    with filtered(cluster, "PAUSE", '[["opcode", ["=", "OP_ID", "OP_TAGS_SET"]]]'):
        service.add(CALLER, "s1", "paused")
        ((_, operation),) = service.store.pending()
        cluster.inside("gnt-instance", "remove-tags", INST2, ours("red"))
        look_until(watch, lambda: service.tags(CALLER, "s2") == {})
        assert service.store.watched().job == (operation.job or 0) - 1
        assert service.tags(CALLER, "s1") == {"paused": PENDADD}
    look_until(watch, lambda: service.tags(CALLER, "s1") == {"paused": ACTIVE})
    look_until(watch, lambda: service.store.watched().job == last_job(cluster))


def test_paused_job_by_hand_is_applied_after_a_restart(
    cluster: Cluster, service: TagService
) -> None:
    watch = watched(service)
    mark = service.store.watched().job
    with filtered(cluster, "PAUSE"):
        cluster.inside("gnt-instance", "add-tags", "--submit", INST1, ours("red"))
        watch.look()
        assert service.store.watched().job == mark == last_job(cluster) - 1
        assert service.tags(CALLER, "s1") == {}
    look_until(Watch(service.jobs, 86400.0), lambda: service.tags(CALLER, "s1") == {"red": ACTIVE})


def test_first_look_ignores_archived_jobs(
    cluster: Cluster, service: TagService, backend: GanetiBackend
) -> None:
    for change in (backend.add, backend.delete):
        done(backend, change(INST1, [ours("ghost")]))
    cluster.inside("gnt-job", "autoarchive", "0")  # archives all finished jobs
    assert backend.jobs_since(0) == {}
    watch = watched(service)
    for _ in range(5):
        watch.look()
        assert service.tags(CALLER, "s1") == {}
        assert service.store.watched().job is None
    cluster.inside("gnt-instance", "add-tags", INST1, ours("red"))
    look_until(watch, lambda: service.tags(CALLER, "s1") == {"red": ACTIVE})
    assert service.store.watched().job == last_job(cluster)
    cluster.inside("gnt-instance", "remove-tags", INST1, ours("red"))
    look_until(watch, lambda: service.tags(CALLER, "s1") == {})


def test_archived_jobs_are_applied(
    cluster: Cluster, service: TagService, no_reconciliation: Watch
) -> None:
    cluster.inside("gnt-instance", "add-tags", INST1, ours("red"))
    cluster.inside("gnt-job", "archive", str(last_job(cluster)))
    cluster.inside("gnt-instance", "add-tags", INST1, ours("blue"))
    cluster.inside("gnt-job", "archive", str(last_job(cluster)))
    look_until(no_reconciliation, lambda: len(service.tags(CALLER, "s1")) == 2)
    cluster.inside("gnt-instance", "remove-tags", INST1, ours("blue"))
    cluster.inside("gnt-job", "archive", str(last_job(cluster)))
    cluster.inside("gnt-instance", "add-tags", INST2, ours("last"))
    look_until(no_reconciliation, lambda: service.tags(CALLER, "s2") == {"last": ACTIVE})
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}


def test_jobs_removed_from_the_archive_are_reconciled(
    cluster: Cluster, service: TagService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_LISTED_AFTER", 0.5)
    watch = watched(service)
    cluster.inside("gnt-instance", "add-tags", INST1, ours("red"))
    remove_from_archive(cluster, last_job(cluster))
    cluster.inside("gnt-instance", "add-tags", INST2, ours("last"))
    look_until(watch, lambda: service.tags(CALLER, "s1") == {"red": ACTIVE})
    assert service.store.watched().job == last_job(cluster)


def test_instance_removed_by_hand_loses_its_tags(cluster: Cluster, tmp_path: pathlib.Path) -> None:
    backend = cluster.backend(ganeti_instance=CREATION)
    service = service_of(backend, tmp_path)
    instance, _ = service.create(CALLER, NEW, ["red"])
    settle(service)
    watch = watched(service)
    assert service.tags(CALLER, instance.id) == {"red": ACTIVE}
    cluster.inside("gnt-instance", "remove", "--force", "new1")
    look_until(watch, lambda: service.tags(CALLER, instance.id) == {})


def test_killed_watch_resumes_at_its_mark(
    cluster: Cluster, service: TagService, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watched(service)
    cluster.inside("gnt-instance", "add-tags", INST1, ours("red"))
    with monkeypatch.context() as patched:
        patched.setattr(service.store, "follow", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            watch.look()
    monkeypatch.setattr(Reconciliation, "apply", lambda _: pytest.fail("reconciled"))
    Watch(service.jobs, 86400.0).look()
    assert service.tags(CALLER, "s1") == {"red": ACTIVE}
    assert service.store.watched().job == last_job(cluster)
