"""Ownership of the tag database: a service with another backend changes nothing."""

import concurrent.futures
import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from oslo_config import cfg

from steelyard import errors
from steelyard.tags import TagService, TagStore, configured
from steelyard.tags.backends.base import BackendIdentity, JobStatus
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.database.model import backend as backend_table
from steelyard.tags.database.model import failures
from steelyard.tags.database.model import watch as watch_table
from steelyard.tags.http import api
from steelyard.tags.jobs import messages
from steelyard.tags.jobs.dispatcher import Dispatcher
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import Instance, Kind, Outcome, Status
from support.tags import in_process_api, queues
from support.tags.databases import dump, upgrade
from support.tags.owned_database import BOTH, CLUSTER, MEMORY, OTHER, USER, fill

pytestmark = pytest.mark.usefixtures("closed_databases")


class Cluster(MemoryBackend):
    """A backend that reports a given identity."""

    def __init__(self, reported: BackendIdentity) -> None:
        super().__init__()
        self.reported = reported

    def identity(self) -> BackendIdentity:
        return self.reported


def conf() -> cfg.ConfigOpts:
    made = cfg.ConfigOpts()
    made([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return made


@pytest.mark.parametrize("status", [JobStatus.LOST, JobStatus.SUCCEEDED, JobStatus.FAILED])
def test_poll_applies_no_outcomes_of_another_backend(
    store: TagStore, url: str, status: JobStatus
) -> None:
    # Another backend reports unknown numbers as lost and known numbers as its own jobs.

    class Knowing(MemoryBackend):
        def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
            return dict.fromkeys(numbers, status)

    service = TagService(store, Knowing())
    before = dump(url)
    for attempt in (service.jobs.poll, service.jobs.finished):
        with pytest.raises(errors.WrongBackend, match=BOTH):
            attempt()
    with pytest.raises(errors.WrongBackend, match=BOTH):
        service.jobs.reconcile_lost(["s1", "s2"])
    assert dump(url) == before


def test_dispatcher_of_another_backend_requeues_messages(store: TagStore, url: str) -> None:
    outcome = Outcome(17, "vm-1", Kind.ADD, frozenset([Tag(USER, "new")]), succeeded=True)
    before = dump(url)
    with queues.own_queue() as broker:
        queues.send(broker, messages.write(outcome).encode())
        refused = []

        def apply(outcome: Outcome) -> None:
            try:
                TagService(store, MemoryBackend()).jobs.apply(outcome)
            except errors.WrongBackend as error:
                refused.append(str(error))
                raise

        with queues.dispatching(Dispatcher(broker, apply, first_pause=0.01)):
            queues.until(lambda: len(refused) > 1)
        assert BOTH in refused[0]
        assert dump(url) == before
        assert queues.dead_letters(broker) == []
        service = TagService(store, Cluster(CLUSTER))
        with queues.dispatching(Dispatcher(broker, service.jobs.apply)):
            queues.until(lambda: store.state("s1").tags[Tag(USER, "new")] is Status.ACTIVE)


def test_prune_changes_nothing_of_another_backend(store: TagStore, url: str) -> None:
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("INSERT INTO tag_marks VALUES (1, 'cyclades:user:', 'gone', 3, 0, 1.0)")
        connection.commit()
    before = dump(url)
    with pytest.raises(errors.WrongBackend):
        TagService(store, MemoryBackend()).store.prune(10.0)
    assert dump(url) == before


def test_request_after_the_backend_was_replaced_is_a_500(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = in_process_api.service(url)
    ask = in_process_api.Client(api.make_application(made, in_process_api.configuration()))
    made.store.move_to_backend(CLUSTER)
    before = dump(url)
    with caplog.at_level(logging.WARNING):
        answer = ask("PUT", f"/servers/{in_process_api.MINE}/tags/web")
    assert (answer.status, answer.fault[0]) == (500, "computeFault")
    assert "the wrong backend for its database, and nothing was changed" in answer.fault[1]
    assert BOTH in caplog.text
    assert dump(url) == before


def test_upgrade_of_a_database_of_the_first_release_keeps_everything(url: str) -> None:
    store = TagStore(url)
    store.upgrade()
    fill(store)
    before = dump(url)
    store.downgrade("0006")
    upgrade(store, CLUSTER)
    after = dump(url)
    assert after.pop(backend_table.name) == ["(1, 'ganeti', 'cluster.example.org')"]
    assert after.pop(watch_table.name) == []
    del before[backend_table.name], before[watch_table.name]
    assert after == before


def test_renamed_backend_keeps_its_jobs(store: TagStore, url: str) -> None:
    before = dump(url)
    store.rename_backend(OTHER)
    after = dump(url)
    assert after.pop(backend_table.name) == ["(1, 'ganeti', 'other.example.org')"]
    del before[backend_table.name]
    assert after == before
    with pytest.raises(errors.Conflict, match="the drivers differ"):
        store.rename_backend(MEMORY)


def test_move_to_another_backend_drops_its_unfinished_jobs(store: TagStore, url: str) -> None:
    # The new backend has job numbers of its own.
    before = dump(url)
    with pytest.raises(errors.Conflict, match=r"unfinished operations of ganeti .*: 4; .*--drop"):
        store.move_to_backend(OTHER)
    assert dump(url) == before
    store.move_to_backend(OTHER, drop_unfinished=True)
    assert store.backend() == OTHER
    assert store.last_job() == 0
    assert [each.kind for _, each in store.pending()] == [Kind.CREATE]
    assert store.state("s1").tags == {
        Tag(USER, "smtp"): Status.ACTIVE,
        Tag(USER, "new"): Status.PENDADD,
        Tag(USER, "unsure"): Status.PENDADD,
    }


def test_move_to_the_recorded_backend_is_refused(store: TagStore, url: str) -> None:
    before = dump(url)
    with pytest.raises(errors.Conflict, match=r"belongs to it already.*reconcile --forget-jobs"):
        store.move_to_backend(CLUSTER, drop_unfinished=True)
    assert dump(url) == before


def test_rename_without_a_recorded_backend_is_refused(url: str) -> None:
    store = TagStore(url)
    store.upgrade()
    with pytest.raises(errors.Conflict, match="the database records none"):
        store.rename_backend(CLUSTER)
    assert store.backend() is None


def test_another_cluster_of_the_same_driver_changes_nothing(store: TagStore, url: str) -> None:
    service = TagService(store, Cluster(OTHER))
    before = dump(url)
    with pytest.raises(errors.WrongBackend, match=r"'cluster\.example.org', and .*'other\.example"):
        service.add(Caller("p", "u"), "s1", "web")
    assert dump(url) == before


@pytest.mark.parametrize("creating", [False, True])
def test_backend_without_the_instances_or_jobs_is_not_recorded(url: str, creating: bool) -> None:
    # A database of the first release records only instances and jobs.
    store = TagStore(url)
    store.upgrade()
    fill(store)
    if creating:  # only the job identifies the backend: its instance does not exist yet
        store.forget("s1")
    before = dump(url)
    message = "knows no job 19" if creating else "has no instance 'vm-1'"
    with pytest.raises(errors.Conflict, match=message):
        TagService(store, MemoryBackend()).administration.record_backend()
    assert dump(url) == before
    there = Cluster(CLUSTER)
    there.adopt({"vm-1": []}, 18)
    there.create("vm-2", [])
    TagService(store, there).administration.record_backend()
    assert store.backend() == CLUSTER


def test_backend_with_none_of_the_instances_is_not_recorded(url: str) -> None:
    store = TagStore(url)
    store.upgrade()
    for number in range(3):
        store.register(Instance(f"s{number}", f"vm-{number}", "p", "u"))
    some = Cluster(CLUSTER)
    with pytest.raises(errors.Conflict, match="has no instance 'vm-0'"):
        TagService(store, some).administration.record_backend()
    some.adopt({"vm-2": []})  # the others may have been removed meanwhile
    TagService(store, some).administration.record_backend()
    assert store.backend() == CLUSTER


def test_backend_identity_is_read_before_the_transaction(url: str) -> None:
    # The database must not be locked while the backend answers.

    class Writing(Cluster):
        def identity(self) -> BackendIdentity:
            with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), 0)) as other:
                other.execute("BEGIN IMMEDIATE")
            return super().identity()

    store = TagStore(url)
    upgrade(store, CLUSTER)
    backend = Writing(CLUSTER)
    backend.adopt({"vm-1": []})
    TagService(store, backend).register(Instance("s1", "vm-1", "p", "u"))
    assert [each.id for each in store.instances()] == ["s1"]


def test_threads_check_the_backend_concurrently(url: str) -> None:
    together = threading.Barrier(2)

    class Slow(Cluster):
        def identity(self) -> BackendIdentity:
            together.wait(20)
            return super().identity()

    store = TagStore(url)
    upgrade(store, CLUSTER)
    backend = Slow(CLUSTER)
    backend.adopt({"vm-0": [], "vm-1": []})
    service = TagService(store, backend)
    new = [Instance(f"s{number}", f"vm-{number}", "p", "u") for number in range(2)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(service.register, new))
    assert store.instances() == new


def test_poll_without_unfinished_operations_skips_the_backend(url: str) -> None:
    class Silent(Cluster):
        def identity(self) -> BackendIdentity:
            pytest.fail("asked")

    store = TagStore(url)
    upgrade(store, CLUSTER)
    assert TagService(store, Silent(CLUSTER)).jobs.poll() == 0


def test_poll_detects_a_replaced_backend(store: TagStore, url: str) -> None:
    # The address of a cluster may lead to another cluster while the service runs.
    backend = Cluster(CLUSTER)
    backend.adopt({"vm-1": [], "vm-3": []}, 100)
    service = TagService(store, backend)
    service.register(Instance("s3", "vm-3", "p", "u"))
    before = dump(url)
    backend.reported = OTHER
    with pytest.raises(errors.WrongBackend, match=r"'other\.example\.org'"):
        service.jobs.poll()
    assert dump(url) == before


def test_memory_adopts_no_instances_of_another_backend(store: TagStore, url: str) -> None:
    service = configured.service(conf(), url)
    assert service.backend.tags(["vm-1", "vm-2"]) == {}
    assert service.tags(Operator(), "s1") == {}


def test_service_upgrade_changes_nothing_of_another_backend(url: str) -> None:
    store = TagStore(url)
    store.upgrade("0006")
    before = dump(url)
    service = TagService(store, Cluster(OTHER))
    service.administration.upgrade()
    new = {backend_table.name, watch_table.name, failures.name}
    assert dump(url).keys() - before.keys() == new
    after = dump(url)
    with pytest.raises(
        errors.WrongBackend, match=r"'other\.example.org', and backend ganeti 'clus"
    ):
        TagService(store, Cluster(CLUSTER)).administration.upgrade()
    assert dump(url) == after


@pytest.mark.parametrize(
    ("driver", "name"), [("", "x"), ("x", ""), ("d" * 65, "x"), ("x", "n" * 256), ("x", "a\nb")]
)
def test_invalid_backend_identity_is_rejected(driver: str, name: str) -> None:
    with pytest.raises(errors.BadRequest, match="of a tag backend: expected 1 to"):
        BackendIdentity(driver, name)


def test_identity_of_another_type_is_rejected(url: str) -> None:
    class Untyped(MemoryBackend):
        def identity(self) -> Any:
            return "memory", "in-process"

    with pytest.raises(errors.PluginError, match="expected a BackendIdentity"):
        TagService(TagStore(url), Untyped()).administration.upgrade()


def test_failed_identity_query_is_retried(url: str) -> None:
    class Unreliable(MemoryBackend):
        failures = 2

        def identity(self) -> BackendIdentity:
            if self.failures:
                self.failures -= 1
                raise ZeroDivisionError("bug")
            return super().identity()

    store = TagStore(url)
    upgrade(store, MEMORY)
    backend = Unreliable()
    backend.adopt({"vm-1": []})
    service = TagService(store, backend)
    service.administration.refuse_wrong_backend()  # only warns: a service may start before its backend does
    with pytest.raises(errors.BackendRefused, match="cannot ask the backend for its name: Zero"):
        service.register(Instance("s1", "vm-1", "p", "u"))
    service.register(Instance("s1", "vm-1", "p", "u"))
    assert [each.id for each in store.instances()] == ["s1"]
