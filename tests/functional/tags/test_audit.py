"""The audit log: one line for each change and each failed job."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from steelyard import cli, errors
from steelyard.tags import TagService, TagStore, audit, encode
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.http.api import make_application
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.jobs.dispatcher import Dispatcher
from steelyard.tags.jobs.watch import Watch
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import Instance, Kind, Outcome
from support.tags import in_process_api
from support.tags.databases import upgrade
from support.tags.queues import dispatching, own_queue, until

pytestmark = pytest.mark.usefixtures("closed_databases")

MINE = in_process_api.MINE
CALLER = Caller("p", "u")
USER = "cyclades:user:"
VM = 'project="p" server="mine" instance="vm-mine" prefix="cyclades:user:"'
Lines = Callable[[], list[str]]


class Troubled(MemoryBackend):
    """A backend that raises a given error instead of taking a job."""

    trouble: Exception | None = None

    def add(self, instance: str, tags: Sequence[str]) -> int:
        if self.trouble is not None:
            raise self.trouble
        return super().add(instance, tags)


@pytest.fixture
def backend() -> Troubled:
    return Troubled(patient=True)


@pytest.fixture
def service(tmp_path: Any, backend: Troubled) -> TagService:
    return in_process_api.service(f"sqlite:///{tmp_path}/tags.db", backend)


@pytest.fixture
def lines(service: TagService, caplog: Any) -> Lines:
    """Return a function that returns the lines logged since its last call."""
    caplog.set_level(logging.INFO, audit.LOG.name)
    caplog.clear()

    def taken() -> list[str]:
        found = [each for each in caplog.records if each.name == audit.LOG.name]
        caplog.clear()
        assert {each.levelno for each in found} <= {logging.INFO}
        return [each.getMessage() for each in found]

    return taken


@pytest.fixture
def broker() -> Iterator[Broker]:
    with own_queue() as broker:
        yield broker


def test_changes_over_http_are_logged_with_their_caller(
    service: TagService, backend: Troubled, lines: Lines
) -> None:
    ask = in_process_api.Client(make_application(service, in_process_api.configuration()))
    assert ask("PUT", f"/servers/{MINE}/tags/gr%C3%B6%C3%9Fe%E2%80%AE").status == 201
    assert lines() == [
        f'event=submitted operation=add caller="u" {VM} tags=["gr\\u00f6\\u00dfe\\u202e"] job=1 '
        f"reason=-"
    ]
    assert ask("PUT", f"/servers/{MINE}/tags/gr%C3%B6%C3%9Fe%E2%80%AE").status == 204
    assert lines() == []  # nothing changed
    backend.run()
    service.jobs.poll()
    assert lines() == []  # success adds no line
    assert ask("PUT", f"/servers/{MINE}/tags", {"tags": ["a", "b"]}).status == 200
    assert lines() == [
        f'event=submitted operation=add caller="u" {VM} tags=["a","b"] job=2 reason=-',
        f'event=submitted operation=delete caller="u" {VM} tags=["gr\\u00f6\\u00dfe\\u202e"] job=3 '
        f"reason=-",
    ]
    created = {"server": {"name": "vm", "id": "s", "tags": ["smtp"]}}
    assert ask("POST", "/servers", created).status == 202
    assert lines() == [
        'event=submitted operation=create caller="u" project="p" server="s" instance="vm" '
        'prefix="cyclades:user:" tags=["smtp"] job=4 reason=-'
    ]
    backend.fail(4)
    service.jobs.poll()
    assert lines() == [
        'event=failed operation=create caller="u" project="p" server="s" instance="vm" '
        'prefix="cyclades:user:" tags=["smtp"] job=4 reason="the job was canceled"'
    ]


def failed_addition(service: TagService, backend: Troubled) -> Outcome:
    """Add a tag whose job fails, and return the outcome."""
    service.add(CALLER, MINE, "smtp")
    backend.fail(1)
    ((_, outcome),) = service.jobs.finished().outcomes
    return outcome


SUBMITTED = f'event=submitted operation=add caller="u" {VM} tags=["smtp"] job=1 reason=-'
FAILED = f'event=failed operation=add caller="u" {VM} tags=["smtp"] job=1 reason="%s"'


def test_failed_job_is_logged_once_by_watcher_and_dispatcher(
    service: TagService, backend: Troubled, broker: Broker, lines: Lines
) -> None:
    outcome = failed_addition(service, backend)
    Watch(service.jobs, 86400.0, broker).look()
    Watch(service.jobs, 86400.0, broker).look()  # another watcher publishes it again
    with dispatching(Dispatcher(broker, service.jobs.apply)):
        until(lambda: not service.store.pending())
    service.jobs.apply(outcome)
    service.jobs.poll()
    list(service.jobs.reconciliation().applied())
    assert lines() == [SUBMITTED, FAILED % "the job was canceled"]


def test_failed_job_is_logged_once_by_watcher_alone(
    service: TagService, backend: Troubled, lines: Lines
) -> None:
    failed_addition(service, backend)
    Watch(service.jobs, 86400.0).look()
    Watch(service.jobs, 86400.0).look()
    assert lines() == [SUBMITTED, FAILED % "the job was canceled"]


def test_failed_job_is_logged_once_by_reconciliation(
    service: TagService, backend: Troubled, lines: Lines
) -> None:
    outcome = failed_addition(service, backend)
    list(service.jobs.reconciliation().planned())
    assert lines() == [SUBMITTED]
    list(service.jobs.reconciliation().applied())
    list(service.jobs.reconciliation().applied())
    service.jobs.apply(outcome)
    assert lines() == [FAILED % "the job was canceled"]


def test_lost_job_is_logged_as_failed_unless_its_tags_exist(
    service: TagService, backend: Troubled, lines: Lines
) -> None:
    service.add(CALLER, MINE, "smtp")
    service.add(CALLER, MINE, "web")
    backend.fail(1)
    backend.run()
    backend.lose(1)
    backend.lose(2)
    lines()
    service.jobs.poll()
    assert service.tags(CALLER, MINE) == {"web": "ACTIVE"}
    assert lines() == [FAILED % "the backend knows no job 1"]


def test_failed_deletion_is_logged_with_the_reason(
    service: TagService, backend: Troubled, lines: Lines
) -> None:
    service.add(CALLER, MINE, "smtp")
    backend.run()
    service.jobs.poll()
    service.delete(Caller("p", "bob"), MINE, "smtp")
    backend.adopt({"vm-mine": ()})
    backend.run()
    lines()
    service.jobs.poll()
    assert lines() == [
        f'event=failed operation=delete caller="bob" {VM} tags=["smtp"] job=2 '
        "reason=\"no tag 'cyclades:user:smtp'\""
    ]


@pytest.mark.parametrize(
    ("trouble", "event", "reason"),
    [
        (errors.BackendRefused("queue drained\n"), "refused", r"queue drained\n"),
        (errors.BackendUnreachable("no route"), "refused", "no route"),
        (errors.OutcomeUnknown("timed out"), "unanswered", "timed out"),
    ],
)
def test_refused_or_unanswered_job_is_logged(
    service: TagService,
    backend: Troubled,
    lines: Lines,
    trouble: errors.SteelyardError,
    event: str,
    reason: str,
) -> None:
    backend.trouble = trouble
    with pytest.raises(type(trouble)):
        service.add(Operator(), MINE, "smtp")
    (line,) = lines()
    assert line.startswith(f'event={event} operation=add caller="operator" project="p" ')
    assert line.endswith(f'tags=["smtp"] job=- reason="{reason}"')


def test_changes_by_hand_are_logged_as_adopted(
    service: TagService, backend: Troubled, lines: Lines
) -> None:
    keys = frozenset({Tag(USER, "by hand")})
    outcome = Outcome(9, "vm-mine", Kind.ADD, keys, succeeded=True)
    service.jobs.apply(outcome)
    service.jobs.apply(outcome)
    assert lines() == [f'event=adopted operation=add caller=- {VM} tags=["by hand"] job=9 reason=-']
    backend.adopt({"vm-mine": [encode("web", USER)]})
    list(service.jobs.reconciliation().applied())
    list(service.jobs.reconciliation().applied())
    assert lines() == [
        f'event=adopted operation=delete caller=- {VM} tags=["by hand"] job=- '
        f'reason="reconciliation"',
        f'event=adopted operation=add caller=- {VM} tags=["web"] job=- reason="reconciliation"',
    ]


def test_register_and_forget_are_logged(
    service: TagService, backend: Troubled, lines: Lines
) -> None:
    backend.adopt({"vm-9": ()})
    service.register(Instance("s9", "vm-9", "p", "u"))
    service.forget("s9")
    rest = 'project="p" server="s9" instance="vm-9" prefix=- tags=[] job=- reason=-'
    assert lines() == [
        f'event=registered operation=- caller="operator" {rest}',
        f'event=forgotten operation=- caller="operator" {rest}',
    ]


def test_operations_that_an_operator_drops_are_logged(
    service: TagService, backend: Troubled, lines: Lines
) -> None:
    class Other(MemoryBackend):
        def identity(self) -> BackendIdentity:
            return BackendIdentity("memory", "other")

    service.add(CALLER, MINE, "smtp")
    service.add(CALLER, MINE, "web")
    backend.run()
    service.jobs.poll()
    service.delete(Caller("p", "bob"), MINE, "smtp")
    service.create(CALLER, "vm")  # creations are left to reconciliation
    lines()
    service.administration.forget_jobs()
    dropped = f'event=dropped operation=%s caller="%s" {VM} tags=["%s"] job=%s reason="%s"'
    assert lines() == [dropped % ("delete", "bob", "smtp", 3, "the backend was reinstalled")]
    service.add(CALLER, MINE, "new")
    lines()
    moved = TagService(service.store, Other())
    with pytest.raises(errors.Conflict):
        moved.administration.move_to_backend()
    assert lines() == []
    moved.administration.move_to_backend(drop_unfinished=True)
    reason = "the instances were moved to backend memory 'other'"
    assert lines() == [dropped % ("add", "u", "new", 5, reason)]


def test_commands_log_to_the_file_and_if_verbose_to_the_screen(tmp_path: Any, capsys: Any) -> None:
    url = f"sqlite:///{tmp_path}/tags.db"
    upgrade(TagStore(url))
    log = tmp_path / "tags.log"
    registered = ("register", "s1", "--name", "vm", "--project", "p", "--user", "u", "--url", url)
    added = ("add", "s1", "smtp", "--url", url)
    for argv in (("--log-file", str(log), "tags", *registered), ("-v", "tags", *added)):
        assert cli.main(argv) == 0
    assert "event=registered" in log.read_text()
    screen = capsys.readouterr().err
    assert screen.count("event=") == 1
    assert 'INFO: event=submitted operation=add caller="operator" project="p" server="s1"' in screen
