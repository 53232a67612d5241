"""The store of tags on SQLite."""

import concurrent.futures
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.errors import BackendRefused, BadRequest, Conflict, NotFound, ServiceError
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import JobStatus
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import MOST
from steelyard.tags.states.values import Instance, State
from support.tags import reconciliation_laws, schema_laws, store_laws
from support.tags.databases import upgrade
from support.tags.patient_service import ACTIVE, CALLER, PENDADD, made, put

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/tags.db"


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    engine = sa.create_engine(url)
    sa.event.listen(engine, "connect", lambda on, _: on.execute("PRAGMA foreign_keys = ON"))
    yield engine
    engine.dispose()


@pytest.mark.parametrize("check", [*store_laws.OPERATIONS, *reconciliation_laws.RECONCILIATIONS])
def test_store_law_holds_on_sqlite(url: str, check: Any) -> None:
    store = TagStore(url)
    upgrade(store)
    check(store)


@pytest.mark.parametrize("check", schema_laws.SCHEMAS)
def test_schema_law_holds_on_sqlite(engine: sa.Engine, check: Any) -> None:
    check(engine)


def test_schema_coexists_with_a_host_service(engine: sa.Engine, tmp_path: Any) -> None:
    schema_laws.check_schema_is_independent_of_the_host_service(engine, tmp_path / "history")


def test_missing_tables_are_reported_with_the_upgrade_command(url: str) -> None:
    store = TagStore(url)
    store.create_file()
    with pytest.raises(ServiceError, match=r"no such table.*steelyard db upgrade"):
        store.instance("s1")


def test_concurrent_additions_stop_at_the_limit(url: str) -> None:
    store = TagStore(url)
    upgrade(store)
    service, _ = made(store, "s1")
    put(store, "s1", **{str(number): ACTIVE for number in range(MOST - 3)})

    def add(number: int) -> bool:
        try:
            return service.add(CALLER, "s1", f"more {number}")
        except BadRequest:
            return False

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(16))) == 3
    assert len(service.tags(CALLER, "s1")) == MOST


def test_database_in_memory_is_shared_between_threads() -> None:
    store = TagStore("sqlite://")
    upgrade(store)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        register = [Instance(str(n), str(n), "p", "u") for n in range(8)]
        list(pool.map(store.register, register))
    assert len(store.instances()) == 8


def test_server_id_reused_by_another_project_is_not_found(url: str) -> None:
    # Another project takes over the id between the check of the owner and the change.
    store = TagStore(url)
    upgrade(store)
    mine = Instance("s1", "vm-1", "p", "u")
    theirs = Instance("s1", "vm-2", "q", "v")
    store.register(theirs)
    with pytest.raises(NotFound):
        store.state("s1", being=mine)
    with pytest.raises(NotFound):
        store.change("s1", lambda _: pytest.fail("changed another project's instance"), being=mine)
    assert store.state("s1", being=theirs).tags == {}


def test_failing_outcomes_are_logged_and_delay_no_others(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = TagStore(url)
    upgrade(store)
    service = TagService(store, MemoryBackend())
    for server in ("s1", "s2", "s3"):
        service.create(CALLER, f"vm-{server}", ["a"], server)
    change = service.store.change

    def changed(instance: str, *more: Any, **named: Any) -> Any:
        if instance != "s2":
            raise ServiceError(f"{instance} is locked")
        return change(instance, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(service.store, "change", changed)
        with pytest.raises(ServiceError, match="s1 is locked"):
            service.jobs.poll()
    assert "Cannot apply the outcome of job 1: s1 is locked" in caplog.messages
    assert "Cannot apply the outcome of job 3: s3 is locked" in caplog.messages
    assert service.tags(CALLER, "s2") == {"a": ACTIVE}
    assert service.jobs.poll() == 2
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}


@pytest.mark.parametrize("error", [ServiceError("database is locked"), ZeroDivisionError("bug")])
def test_poll_succeeds_after_a_failed_job_query(url: str, error: Exception) -> None:
    class Unreliable(MemoryBackend):
        failing = True

        def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
            if self.failing:
                raise error
            return super().jobs(numbers)

    store = TagStore(url)
    upgrade(store)
    backend = Unreliable()
    service = TagService(store, backend)
    service.create(CALLER, "vm-1", ["a"], "s1")
    with pytest.raises(type(error)):
        service.jobs.poll()
    with pytest.raises(Conflict, match="still being created"):
        service.add(CALLER, "s1", "b")
    backend.failing = False
    assert service.jobs.poll() == 1
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}


def test_add_sees_a_creation_that_another_service_finished(url: str) -> None:

    class Slow(TagStore):
        """A store that lets another service poll before each read."""

        def state(self, instance: str, being: Instance | None = None) -> State:
            others.jobs.poll()
            return super().state(instance, being)

    upgrade(Slow(url))
    backend = MemoryBackend()
    others = TagService(TagStore(url), backend)
    service = TagService(Slow(url), backend)
    service.create(CALLER, "vm-1", [], "s1")
    assert service.add(CALLER, "s1", "a") is True
    assert others.tags(CALLER, "s1") == {"a": PENDADD}


def test_replace_deletes_nothing_if_the_addition_is_refused(url: str) -> None:
    class Full(MemoryBackend):
        full = False

        def add(self, instance: str, tags: Sequence[str]) -> int:
            if self.full:
                raise BackendRefused("queue is full")
            return super().add(instance, tags)

    store = TagStore(url)
    upgrade(store)
    backend = Full()
    service = TagService(store, backend)
    service.create(CALLER, "vm-1", ["old"], "s1")
    service.jobs.poll()
    backend.full = True
    with pytest.raises(BackendRefused):
        service.replace(CALLER, "s1", ["new"])
    assert service.jobs.poll() == 0
    assert service.tags(CALLER, "s1") == {"old": ACTIVE}
    assert backend.tags(["vm-1"]) == {"vm-1": {"cyclades:user:old"}}
