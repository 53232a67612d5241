"""The store of tags on SQLite."""

import concurrent.futures
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import sqlalchemy as sa
import tag_stores
from tag_databases import upgrade
from tag_stores import ACTIVE, CALLER, PENDADD, made, put

from steelyard.errors import BackendRefused, BadRequest, Conflict, NotFound, ServiceError
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import JobStatus
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import MOST
from steelyard.tags.states import Instance, State

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


@pytest.mark.parametrize("check", tag_stores.OPERATIONS)
def test_what_is_kept(url: str, check: Any) -> None:
    store = TagStore(url)
    upgrade(store)
    check(store)


@pytest.mark.parametrize("check", tag_stores.SCHEMAS)
def test_the_schema(engine: sa.Engine, check: Any) -> None:
    check(engine)


def test_beside_a_host(engine: sa.Engine, tmp_path: Any) -> None:
    tag_stores.check_beside_a_host(engine, tmp_path / "history")


def test_a_database_without_the_tables_says_so(url: str) -> None:
    with pytest.raises(ServiceError, match=r"no such table.*steelyard db upgrade"):
        TagStore(url).instance("s1")


def test_of_many_at_once_as_many_are_added_as_there_is_room_for(url: str) -> None:
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


def test_a_database_in_memory_is_one_for_all_threads() -> None:
    store = TagStore("sqlite://")
    upgrade(store)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        register = [Instance(str(n), str(n), "p", "u") for n in range(8)]
        list(pool.map(store.register, register))
    assert len(store.instances()) == 8


def test_an_id_that_has_become_anothers_is_not_there(url: str) -> None:
    """Between the look at whose an instance is and the change, another project has its id."""
    store = TagStore(url)
    upgrade(store)
    mine = Instance("s1", "vm-1", "p", "u")
    theirs = Instance("s1", "vm-2", "q", "v")
    store.register(theirs)
    with pytest.raises(NotFound):
        store.state("s1", being=mine)
    with pytest.raises(NotFound):
        store.change("s1", lambda _: pytest.fail("it is not theirs to change"), being=mine)
    assert store.state("s1", being=theirs).tags == {}


def test_one_outcome_that_cannot_be_settled_holds_up_no_others(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TagStore(url)
    upgrade(store)
    service = TagService(store, MemoryBackend())
    for server in ("s1", "s2"):
        service.create(CALLER, f"vm-{server}", ["a"], server)
    change = service.store.change

    def changed(instance: str, *more: Any, **named: Any) -> Any:
        if instance == "s1":
            raise ServiceError("not now")
        return change(instance, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(service.store, "change", changed)
        with pytest.raises(ServiceError, match="not now"):
            service.poll()
    assert service.tags(CALLER, "s2") == {"a": ACTIVE}
    assert service.poll() == 1
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}


@pytest.mark.parametrize("error", [ServiceError("not now"), ZeroDivisionError("odd")])
def test_a_backend_that_cannot_be_asked_about_jobs_is_asked_another_time(
    url: str, error: Exception
) -> None:
    class Odd(MemoryBackend):
        failing = True

        def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
            if self.failing:
                raise error
            return super().jobs(numbers)

    store = TagStore(url)
    upgrade(store)
    backend = Odd()
    service = TagService(store, backend)
    service.create(CALLER, "vm-1", ["a"], "s1")
    with pytest.raises(type(error)):
        service.poll()
    with pytest.raises(Conflict, match="still being created"):
        service.add(CALLER, "s1", "b")
    backend.failing = False
    assert service.poll() == 1
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}


def test_what_somebody_else_settles_meanwhile_is_not_waited_for(url: str) -> None:
    """Two ask for the first tags of an instance that has just been created."""

    class Slow(TagStore):
        """Others are faster, between its looks."""

        def state(self, instance: str, being: Instance | None = None) -> State:
            others.poll()
            return super().state(instance, being)

    upgrade(Slow(url))
    backend = MemoryBackend()
    others = TagService(TagStore(url), backend)
    service = TagService(Slow(url), backend)
    service.create(CALLER, "vm-1", [], "s1")
    assert service.add(CALLER, "s1", "a") is True
    assert others.tags(CALLER, "s1") == {"a": PENDADD}


def test_nothing_is_deleted_for_what_cannot_be_added(url: str) -> None:
    class Full(MemoryBackend):
        full = False

        def add(self, instance: str, tags: Sequence[str]) -> int:
            if self.full:
                raise BackendRefused("there is no room")
            return super().add(instance, tags)

    store = TagStore(url)
    upgrade(store)
    backend = Full()
    service = TagService(store, backend)
    service.create(CALLER, "vm-1", ["old"], "s1")
    service.poll()
    backend.full = True
    with pytest.raises(BackendRefused):
        service.replace(CALLER, "s1", ["new"])
    assert service.poll() == 0
    assert service.tags(CALLER, "s1") == {"old": ACTIVE}
    assert backend.tags(["vm-1"]) == {"vm-1": {"cyclades:user:old"}}
