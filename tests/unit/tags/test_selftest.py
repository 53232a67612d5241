"""The self-test of a tag service."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from steelyard import errors
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.database.store import TagStore
from steelyard.tags.selftest import AttemptResult, SelfTest
from steelyard.tags.service import Caller, TagService
from steelyard.tags.states.values import Instance
from support.tags.databases import upgrade

pytestmark = pytest.mark.usefixtures("closed_databases")

SERVER = "3d4c9b1e"
USER = Caller("p", "u")


@pytest.fixture
def service(tmp_path: Any) -> TagService:
    store = TagStore(f"sqlite:///{tmp_path}/tags.db")
    upgrade(store)
    backend = MemoryBackend()
    made = TagService(store, backend)
    backend.adopt({"i-1": []})
    made.register(Instance(SERVER, "i-1", "p", "u"))
    return made


class Tags:
    """The operations of a service; those in ``wrong`` replace some of them."""

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
        self._service.jobs.poll()
        return new

    def _delete(self, server: str, tag: str) -> None:
        self._service.delete(USER, server, tag)

    def _replace(self, server: str, tags: Any) -> Any:
        answer = self._service.replace(USER, server, tags)
        self._service.jobs.poll()
        return {"tags": list(answer)}

    def _clear(self, server: str) -> None:
        self._service.clear(USER, server)


def raising(error: BaseException) -> Callable[..., Any]:
    def operation(*_: Any) -> Any:
        raise error

    return operation


def test_steps_succeed_and_leave_no_tags(service: TagService) -> None:
    steps = list(SelfTest(Tags(service), SERVER, 1).steps())
    assert {step.result for step in steps} == {AttemptResult.OK}
    assert service.tags(USER, SERVER) == {}


def test_steps_skip_replacing_and_deleting_all_on_server_with_other_tags(
    service: TagService,
) -> None:
    service.add(USER, SERVER, "web")
    service.jobs.poll()
    steps = {step.name: step.result for step in SelfTest(Tags(service), SERVER, 1).steps()}
    assert steps.pop("replace all") is AttemptResult.SKIPPED
    assert steps.pop("delete all") is AttemptResult.SKIPPED
    assert set(steps.values()) == {AttemptResult.OK}
    assert service.tags(USER, SERVER) == {"web": "ACTIVE"}


@pytest.mark.parametrize(
    ("wrong", "step", "what"),
    [
        ({"exists": lambda *_: "ACTIVE"}, "get a missing tag", "is 'ACTIVE', expected None"),
        ({"delete": lambda *_: None}, "delete a missing tag", "reports success"),
        ({"add": lambda *_: True}, "add", "is missing in the list"),
        ({"add": lambda *_: False}, "add", "answer is False, expected True"),
        ({"add": raising(errors.Conflict("full"))}, "add", "full"),
        ({"add": raising(KeyboardInterrupt())}, "add", "interrupted"),
        (
            {"replace": lambda *_: {"tags": []}},
            "replace all",
            "answer is [], expected ['steelyard-",
        ),
        ({"clear": lambda *_: None}, "delete all", "list is ['steelyard-selftest-"),
    ],
)
def test_failed_step_skips_the_rest_and_cleans_up(
    service: TagService, wrong: Any, step: str, what: str
) -> None:
    steps = list(SelfTest(Tags(service, **wrong), SERVER, 0.2).steps())
    (failed,) = [each for each in steps if each.result is AttemptResult.FAILED]
    assert failed.name == step
    assert what in failed.what
    after = steps[steps.index(failed) + 1 : -1]
    assert {each.result for each in after} <= {AttemptResult.SKIPPED}
    assert steps[-1].name == "clean up"
    assert service.tags(USER, SERVER) == {}


def test_steps_report_tags_that_stay_pending(service: TagService) -> None:
    tags = Tags(service, add=lambda server, tag: service.add(USER, server, tag))
    steps = {step.name: step for step in SelfTest(tags, SERVER, 0.1).steps()}
    waited = steps["wait until both are ACTIVE"]
    assert waited.result is AttemptResult.FAILED
    assert "is still PENDADD after 0." in waited.what
    last = steps["clean up"]
    assert last.result is AttemptResult.FAILED
    assert last.what.startswith("tags still PENDADD: 2; delete the tags that begin with 'steelyard")


def test_steps_report_tags_that_the_backend_could_not_add(service: TagService) -> None:
    backend = service.backend
    assert isinstance(backend, MemoryBackend)

    def listed(server: str) -> Any:
        answer = tested._list(server)
        with contextlib.suppress(KeyError):
            backend.fail(1)
        service.jobs.poll()
        return answer

    tested = Tags(service, add=lambda server, tag: service.add(USER, server, tag), list=listed)
    steps = list(SelfTest(tested, SERVER, 5).steps())
    (failed,) = [each for each in steps if each.result is AttemptResult.FAILED]
    assert failed.name == "wait until both are ACTIVE"
    assert "is missing: the backend could not add it" in failed.what
    assert service.tags(USER, SERVER) == {}


def test_closing_the_steps_deletes_the_tags(service: TagService) -> None:
    steps = SelfTest(Tags(service), SERVER, 1).steps()
    for step in steps:
        if step.name == "add":
            break
    assert list(service.tags(USER, SERVER)) != []
    steps.close()  # type: ignore[attr-defined]
    assert service.tags(USER, SERVER) == {}
