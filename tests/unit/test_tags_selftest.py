"""The self-test of a service of tags: what it finds, and what it leaves behind."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tag_databases import upgrade

from steelyard import errors
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.selftest import Result, SelfTest
from steelyard.tags.service import Caller, TagService
from steelyard.tags.states import Instance
from steelyard.tags.store import TagStore

pytestmark = pytest.mark.usefixtures("closed_databases")

SERVER = "3d4c9b1e"
USER = Caller("p", "u")


@pytest.fixture
def service(tmp_path: Any) -> TagService:
    store = TagStore(f"sqlite:///{tmp_path}/tags.db")
    upgrade(store)
    backend = MemoryBackend()
    made = TagService(store, backend)
    made.register(Instance(SERVER, "i-1", "p", "u"))
    backend.adopt({"i-1": []})
    return made


class Tags:
    """What is tested, with one operation that does something else."""

    def __init__(self, service: TagService, **wrong: Callable[..., Any]) -> None:
        self._service = service
        self._wrong = wrong

    def __getattr__(self, name: str) -> Any:
        if name in self._wrong:
            return self._wrong[name]
        return getattr(self, f"_{name}")

    def _list(self, server: str) -> Any:
        statuses = self._service.tags(USER, server)
        return {"tags": list(statuses), "statuses": statuses}

    def _exists(self, server: str, tag: str) -> Any:
        return self._service.tags(USER, server).get(tag)

    def _add(self, server: str, tag: str) -> bool:
        new = self._service.add(USER, server, tag)
        self._service.poll()
        return new

    def _delete(self, server: str, tag: str) -> None:
        self._service.delete(USER, server, tag)

    def _replace(self, server: str, tags: Any) -> Any:
        answer = self._service.replace(USER, server, tags)
        self._service.poll()
        return {"tags": list(answer)}

    def _clear(self, server: str) -> None:
        self._service.clear(USER, server)


def raising(error: BaseException) -> Callable[..., Any]:
    def operation(*_: Any) -> Any:
        raise error

    return operation


def test_all_is_well(service: TagService) -> None:
    steps = list(SelfTest(Tags(service), SERVER, 1).steps())
    assert {step.result for step in steps} == {Result.OK}
    assert service.tags(USER, SERVER) == {}


def test_others_are_not_touched(service: TagService) -> None:
    service.add(USER, SERVER, "web")
    service.poll()
    steps = {step.name: step.result for step in SelfTest(Tags(service), SERVER, 1).steps()}
    assert steps.pop("replace all") is Result.SKIPPED
    assert steps.pop("delete all") is Result.SKIPPED
    assert set(steps.values()) == {Result.OK}
    assert service.tags(USER, SERVER) == {"web": "ACTIVE"}


@pytest.mark.parametrize(
    ("wrong", "step", "what"),
    [
        ({"exists": lambda *_: "ACTIVE"}, "ask for a tag that is not there", "is 'ACTIVE', not No"),
        ({"delete": lambda *_: None}, "delete a tag that is not there", "says that it has done so"),
        ({"add": lambda *_: True}, "add", "is not listed"),
        ({"add": lambda *_: False}, "add", "whether it is new is False, not True"),
        ({"add": raising(errors.Conflict("full"))}, "add", "full"),
        ({"add": raising(KeyboardInterrupt())}, "add", "interrupted"),
        ({"replace": lambda *_: {"tags": []}}, "replace all", "the answer is [], not ['steelyard-"),
        ({"clear": lambda *_: None}, "delete all", "the list is ['steelyard-selftest-"),
    ],
)
def test_a_step_that_fails(service: TagService, wrong: Any, step: str, what: str) -> None:
    steps = list(SelfTest(Tags(service, **wrong), SERVER, 0.2).steps())
    (failed,) = [each for each in steps if each.result is Result.FAILED]
    assert failed.name == step
    assert what in failed.what
    after = steps[steps.index(failed) + 1 : -1]
    assert {each.result for each in after} <= {Result.SKIPPED}
    assert steps[-1].name == "tidy up"
    assert service.tags(USER, SERVER) == {}


def test_what_stays_pending_is_told(service: TagService) -> None:
    tags = Tags(service, add=lambda server, tag: service.add(USER, server, tag))
    steps = {step.name: step for step in SelfTest(tags, SERVER, 0.1).steps()}
    waited = steps["wait until both are ACTIVE"]
    assert waited.result is Result.FAILED
    assert "is still PENDADD after 0." in waited.what
    last = steps["tidy up"]
    assert last.result is Result.FAILED
    assert last.what.startswith("tags that are still PENDADD: 2; delete what begins with 'steelya")


def test_what_the_backend_could_not_add_is_told(service: TagService) -> None:
    backend = service.backend
    assert isinstance(backend, MemoryBackend)

    def listed(server: str) -> Any:
        answer = tested._list(server)
        with contextlib.suppress(KeyError):
            backend.fail(1)
        service.poll()
        return answer

    tested = Tags(service, add=lambda server, tag: service.add(USER, server, tag), list=listed)
    steps = list(SelfTest(tested, SERVER, 5).steps())
    (failed,) = [each for each in steps if each.result is Result.FAILED]
    assert failed.name == "wait until both are ACTIVE"
    assert "is gone: the backend could not add it" in failed.what
    assert service.tags(USER, SERVER) == {}


def test_it_tidies_up_when_nobody_listens_any_more(service: TagService) -> None:
    steps = SelfTest(Tags(service), SERVER, 1).steps()
    for step in steps:
        if step.name == "add":
            break
    assert list(service.tags(USER, SERVER)) != []
    steps.close()  # type: ignore[attr-defined]
    assert service.tags(USER, SERVER) == {}
