"""The backend that a database of tags belongs to: every command with another one changes nothing."""

import concurrent.futures
import contextlib
import json
import logging
import pathlib
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
import tag_apis
import tag_brokers
from oslo_config import cfg
from tag_databases import RECORDING, WRITING, dump, upgrade

from steelyard import cli, errors
from steelyard.tags import TagService, TagStore, api, configured, messages
from steelyard.tags.backends.base import BackendIdentity, JobStatus
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.dispatcher import Dispatcher
from steelyard.tags.model import backend as backend_table
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states import Change, Instance, Kind, Operation, Outcome, Status

pytestmark = pytest.mark.usefixtures("closed_databases")

CLUSTER = BackendIdentity("ganeti", "cluster.example.org")
MEMORY = MemoryBackend().identity()
USER = "cyclades:user:"
BOTH = "it belongs to backend ganeti 'cluster.example.org', and backend memory 'in-process' is"

OTHER = BackendIdentity("ganeti", "other.example.org")


class Cluster(MemoryBackend):
    """A backend that calls itself as it is told."""

    def __init__(self, told: BackendIdentity) -> None:
        super().__init__()
        self.told = told

    def identity(self) -> BackendIdentity:
        return self.told


def conf() -> cfg.ConfigOpts:
    made = cfg.ConfigOpts()
    made([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return made


COMMANDS = {**WRITING, **RECORDING}

Steelyard = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f"sqlite:///{tmp_path}/tags.db"


@pytest.fixture
def store(url: str) -> TagStore:
    """A store whose database belongs to a Ganeti cluster that has not finished everything."""
    store = TagStore(url)
    upgrade(store, CLUSTER)
    fill(store)
    return store


def fill(store: TagStore) -> None:
    """Register an instance with tags and unfinished jobs, and one that is being created."""
    added = Operation("o1", Kind.ADD, USER, ("new",), 1.0, 17)
    deleted = Operation("o2", Kind.DELETE, USER, ("old",), 1.0, 18)
    unnumbered = Operation("o3", Kind.ADD, USER, ("unsure",), 1.0)
    there = {(USER, "smtp"): Status.ACTIVE}
    pending = {(USER, name): Status.PENDADD for name in ("new", "unsure")}
    begun = (added, deleted, unnumbered)
    store.register(Instance("s1", "vm-1", "p", "u"), Change({**there, **pending}, begun=begun))
    creation = Operation("o4", Kind.CREATE, USER, ("first",), 1.0, 19)
    created = Change({(USER, "first"): Status.PENDADD}, begun=(creation,))
    store.register(Instance("s2", "vm-2", "q", "v"), created)


@pytest.fixture
def steelyard(capsys: Any) -> Steelyard:
    def run(*argv: str) -> tuple[int, str, str]:
        status = cli.main(list(argv))
        out, err = capsys.readouterr()
        return status, out, err

    return run


def option_file(tmp_path: pathlib.Path, **values: object) -> str:
    path = tmp_path / "tags.conf"
    lines = [f"{name} = {value}" for name, value in values.items()]
    path.write_text("\n".join(["[steelyard_tags]", *lines, ""]))
    return str(path)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_command_without_configuration_changes_nothing_of_another_backend(
    store: TagStore, url: str, steelyard: Steelyard, command: Sequence[str]
) -> None:
    before = dump(url)
    status, out, err = steelyard("tags", *command, "--url", url)
    assert (status, out) == (2, "")
    assert "ganeti 'cluster.example.org'" in err
    assert "memory 'in-process'" in err
    assert dump(url) == before


@pytest.mark.parametrize("command", ["watch", "dispatch", "serve"])
def test_service_with_default_backend_does_not_start_on_another_backend(
    store: TagStore, url: str, steelyard: Steelyard, tmp_path: pathlib.Path, command: str
) -> None:
    before = dump(url)
    broker = "amqp://127.0.0.1:9/none"
    file = option_file(tmp_path, connection=url, transport_url=broker)
    status, out, err = steelyard("--config-file", file, "tags", command)
    assert (status, out) == (2, "")
    assert BOTH in err
    assert dump(url) == before


@pytest.mark.parametrize("command", ["list", "exists"])
def test_reading_needs_no_backend(
    store: TagStore, url: str, steelyard: Steelyard, command: str
) -> None:
    tag = ["smtp"] if command == "exists" else []
    status, out, err = steelyard("tags", command, "s1", *tag, "--owner", "user", "--url", url)
    assert (status, err) == (0, "")
    assert "ACTIVE" in out


@pytest.mark.parametrize("command", WRITING.values(), ids=WRITING)
def test_command_changes_nothing_where_no_backend_is_recorded(
    url: str, steelyard: Steelyard, command: Sequence[str]
) -> None:
    """As in a database of the first release, which has instances and no recorded backend."""
    store = TagStore(url)
    store.upgrade()
    fill(store)
    before = dump(url)
    status, out, err = steelyard("tags", *command, "--url", url)
    assert (status, out) == (2, "")
    assert "memory" in err
    assert re.search("records (no backend|none)", err)
    assert dump(url) == before


@pytest.mark.parametrize("status", [JobStatus.LOST, JobStatus.SUCCEEDED, JobStatus.FAILED])
def test_poll_settles_no_jobs_of_another_backend(
    store: TagStore, url: str, status: JobStatus
) -> None:
    """Another backend takes unknown jobs for lost, and known numbers for its own jobs."""

    class Knowing(MemoryBackend):
        def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
            return dict.fromkeys(numbers, status)

    service = TagService(store, Knowing())
    before = dump(url)
    for attempt in (service.poll, service.over):
        with pytest.raises(errors.WrongBackend, match=BOTH):
            attempt()
    with pytest.raises(errors.WrongBackend, match=BOTH):
        service.settle_lost(["s1", "s2"])
    assert dump(url) == before


def test_outcomes_wait_for_the_right_configuration(store: TagStore, url: str) -> None:
    """A dispatcher of the wrong backend returns each message to the queue, and puts none aside."""
    outcome = Outcome(17, "vm-1", Kind.ADD, frozenset([(USER, "new")]), succeeded=True)
    before = dump(url)
    with tag_brokers.own_queue() as broker:
        tag_brokers.send(broker, messages.write(outcome).encode())
        refused = []

        def settle(outcome: Outcome) -> None:
            try:
                TagService(store, MemoryBackend()).settle(outcome)
            except errors.WrongBackend as error:
                refused.append(str(error))
                raise

        with tag_brokers.dispatching(Dispatcher(broker, settle, first_pause=0.01)):
            tag_brokers.until(lambda: len(refused) > 1)
        assert BOTH in refused[0]
        assert dump(url) == before
        assert tag_brokers.put_aside(broker) == []
        service = TagService(store, Cluster(CLUSTER))
        with tag_brokers.dispatching(Dispatcher(broker, service.settle)):
            tag_brokers.until(lambda: store.state("s1").tags[USER, "new"] is Status.ACTIVE)


def test_prune_changes_nothing_of_another_backend(store: TagStore, url: str) -> None:
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("INSERT INTO tag_marks VALUES (1, 'cyclades:user:', 'gone', 3, 0, 1.0)")
        connection.commit()
    before = dump(url)
    with pytest.raises(errors.WrongBackend):
        TagService(store, MemoryBackend()).store.prune(10.0)
    assert dump(url) == before


def test_application_with_default_backend_changes_nothing_of_another_backend(
    store: TagStore, url: str, tmp_path: pathlib.Path
) -> None:
    before = dump(url)
    program = (
        "import sys\n"
        "from oslo_config import cfg\n"
        "from falcon import testing\n"
        "from steelyard.tags import api\n"
        "cfg.CONF(['--config-file', sys.argv[1]], project='ours')\n"
        "headers = {'X-Project-Id': 'p', 'X-User-Id': 'u'}\n"
        "client = testing.TestClient(api.application, headers=headers)\n"
        "print(client.simulate_put('/servers/s1/tags/web', remote_addr='127.0.0.1').status_code)\n"
    )
    file = option_file(tmp_path, connection=url, trusted_proxies="127.0.0.1")
    run = subprocess.run(
        [sys.executable, "-c", program, file], text=True, capture_output=True, check=True
    )
    assert run.stdout == "500\n"
    assert BOTH in run.stderr
    assert dump(url) == before


def test_request_is_answered_500_after_the_backend_has_been_replaced(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = tag_apis.service(url)
    ask = tag_apis.Client(api.make_application(made, tag_apis.configuration()))
    made.store.move_to_backend(CLUSTER)
    before = dump(url)
    with caplog.at_level(logging.WARNING):
        answer = ask("PUT", f"/servers/{tag_apis.MINE}/tags/web")
    assert (answer.status, answer.fault[0]) == (500, "computeFault")
    assert "does not fit its database, and nothing was changed" in answer.fault[1]
    assert BOTH in caplog.text
    assert dump(url) == before


def test_backend_set_records_and_show_reports(url: str, steelyard: Steelyard) -> None:
    steelyard("db", "upgrade", "--schema", "tags", "--url", url)
    status, _, err = steelyard("tags", "backend", "show", "--url", url)
    assert (status, "the database records no backend" in err) == (2, True)
    for _ in "ab":  # recording the same one again changes nothing
        status, out, _ = steelyard("tags", "backend", "set", "memory", "--url", url, "-f", "json")
        assert status == 0
        assert json.loads(out) == {
            "Driver": "memory",
            "Name": "in-process",
            "Instances": 0,
            "Unfinished operations": 0,
        }
    assert TagStore(url).backend() == MEMORY
    status, out, _ = steelyard("tags", "backend", "show", "--url", url, "-f", "value")
    assert (status, out) == (0, "memory\nin-process\n0\n0\n")


def test_backend_set_rejects_driver_that_the_configuration_does_not_name(
    store: TagStore, url: str, steelyard: Steelyard, tmp_path: pathlib.Path
) -> None:
    file = option_file(tmp_path, connection=url, backend="ganeti")
    before = dump(url)
    status, _, err = steelyard("--config-file", file, "tags", "backend", "set", "memory")
    assert (status, "[steelyard_tags] has backend = ganeti" in err) == (2, True)
    status, _, err = steelyard(
        "tags", "backend", "set", "memory", "--drop-unfinished", "--url", url
    )
    assert (status, "--drop-unfinished needs --moved" in err) == (2, True)
    status, _, err = steelyard("tags", "backend", "set", "ganety", "--url", url)
    assert (status, "'ganety'" in err) == (2, True)
    assert dump(url) == before


@pytest.mark.parametrize("named", [True, False])
def test_upgrade_records_the_backend_only_if_the_configuration_names_it(
    url: str, steelyard: Steelyard, tmp_path: pathlib.Path, named: bool
) -> None:
    values = {"backend": "memory"} if named else {}
    file = option_file(tmp_path, connection=url, **values)
    status, out, err = steelyard("--config-file", file, "db", "upgrade", "--schema", "tags")
    assert (status, err) == (0, "")
    assert TagStore(url).backend() == (MEMORY if named else None)
    assert ("belongs to backend memory 'in-process'" in out) is named
    assert ("no backend is recorded" in out) is not named


@pytest.mark.parametrize("revision", ["head", "0006"])
def test_upgrade_for_another_backend_changes_nothing(
    store: TagStore, url: str, steelyard: Steelyard, tmp_path: pathlib.Path, revision: str
) -> None:
    if revision != "head":  # a later revision is missing beside the table of the backend
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute("UPDATE steelyard_tags_version SET version_num = ?", [revision])
            connection.commit()
    file = option_file(tmp_path, connection=url, backend="memory")
    before = dump(url)
    status, _, err = steelyard("--config-file", file, "db", "upgrade", "--schema", "tags")
    assert (status, BOTH in err) == (2, True)
    assert dump(url) == before


def test_upgrade_of_a_database_of_the_first_release_keeps_everything(url: str) -> None:
    store = TagStore(url)
    store.upgrade("0006")
    fill(store)
    before = dump(url)
    upgrade(store, CLUSTER)
    after = dump(url)
    assert after.pop(backend_table.name) == ["(1, 'ganeti', 'cluster.example.org')"]
    del before[TagStore.version_table], after[TagStore.version_table]
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


def test_moved_instances_forget_the_jobs_of_the_former_backend(store: TagStore, url: str) -> None:
    """Its job numbers mean nothing at the new backend."""
    before = dump(url)
    with pytest.raises(errors.Conflict, match=r"unfinished operations of ganeti .*: 4; .*--drop"):
        store.move_to_backend(OTHER)
    assert dump(url) == before
    store.move_to_backend(OTHER, drop_unfinished=True)
    assert store.backend() == OTHER
    assert store.last_job() == 0
    assert [each.kind for _, each in store.pending()] == [Kind.CREATE]
    assert store.state("s1").tags == {
        (USER, "smtp"): Status.ACTIVE,
        (USER, "new"): Status.PENDADD,
        (USER, "unsure"): Status.PENDADD,
    }


def test_moving_to_the_recorded_backend_is_refused(store: TagStore, url: str) -> None:
    before = dump(url)
    with pytest.raises(errors.Conflict, match=r"belongs to it already.*reconcile --jobs-anew"):
        store.move_to_backend(CLUSTER, drop_unfinished=True)
    assert dump(url) == before


def test_renaming_without_a_record_is_refused(url: str) -> None:
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
def test_backend_that_lacks_the_instances_is_not_recorded(url: str, creating: bool) -> None:
    """A database of the first release tells nothing but its instances and jobs."""
    store = TagStore(url)
    store.upgrade()
    fill(store)
    if creating:  # only the job tells, because the instance does not exist yet
        store.forget("s1")
    before = dump(url)
    said = "knows no job 19" if creating else "has no instance 'vm-1'"
    with pytest.raises(errors.Conflict, match=said):
        TagService(store, MemoryBackend()).record_backend()
    assert dump(url) == before
    there = Cluster(CLUSTER)
    there.adopt({"vm-1": []}, 18)
    there.create("vm-2", [])
    TagService(store, there).record_backend()
    assert store.backend() == CLUSTER


def test_backend_with_none_of_the_instances_is_not_recorded(url: str) -> None:
    store = TagStore(url)
    store.upgrade()
    for number in range(3):
        store.register(Instance(f"s{number}", f"vm-{number}", "p", "u"))
    some = Cluster(CLUSTER)
    with pytest.raises(errors.Conflict, match="has no instance 'vm-0'"):
        TagService(store, some).record_backend()
    some.adopt({"vm-2": []})  # the others may have been removed meanwhile
    TagService(store, some).record_backend()
    assert store.backend() == CLUSTER


def test_backend_is_asked_before_the_transaction(url: str) -> None:
    """No lock of the database is held while the backend answers."""

    class Writing(Cluster):
        def identity(self) -> BackendIdentity:
            with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"), 0)) as other:
                other.execute("BEGIN IMMEDIATE")
            return super().identity()

    store = TagStore(url)
    upgrade(store, CLUSTER)
    TagService(store, Writing(CLUSTER)).register(Instance("s1", "vm-1", "p", "u"))
    assert [each.id for each in store.instances()] == ["s1"]


def test_threads_do_not_wait_for_each_others_question(url: str) -> None:
    together = threading.Barrier(2)

    class Slow(Cluster):
        def identity(self) -> BackendIdentity:
            together.wait(20)
            return super().identity()

    store = TagStore(url)
    upgrade(store, CLUSTER)
    service = TagService(store, Slow(CLUSTER))
    new = [Instance(f"s{number}", f"vm-{number}", "p", "u") for number in range(2)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(service.register, new))
    assert store.instances() == new


def test_poll_asks_nothing_while_no_operation_is_unfinished(url: str) -> None:
    class Silent(Cluster):
        def identity(self) -> BackendIdentity:
            pytest.fail("asked")

    store = TagStore(url)
    upgrade(store, CLUSTER)
    assert TagService(store, Silent(CLUSTER)).poll() == 0


def test_poll_notices_that_another_backend_answers_now(store: TagStore, url: str) -> None:
    """As when the address of a cluster leads to another one, under a running service."""
    backend = Cluster(CLUSTER)
    backend.adopt({"vm-1": []}, 100)
    service = TagService(store, backend)
    service.register(Instance("s3", "vm-3", "p", "u"))
    before = dump(url)
    backend.told = OTHER
    with pytest.raises(errors.WrongBackend, match=r"'other\.example\.org'"):
        service.poll()
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
    service.upgrade()
    assert dump(url).keys() - before.keys() == {backend_table.name}
    after = dump(url)
    with pytest.raises(
        errors.WrongBackend, match=r"'other\.example.org', and backend ganeti 'clus"
    ):
        TagService(store, Cluster(CLUSTER)).upgrade()
    assert dump(url) == after


@pytest.mark.parametrize(
    ("driver", "name"), [("", "x"), ("x", ""), ("d" * 65, "x"), ("x", "n" * 256), ("x", "a\nb")]
)
def test_identity_that_cannot_be_kept_is_rejected(driver: str, name: str) -> None:
    with pytest.raises(errors.BadRequest, match="of a tag backend: expected 1 to"):
        BackendIdentity(driver, name)


def test_identity_of_another_type_is_rejected(url: str) -> None:
    class Odd(MemoryBackend):
        def identity(self) -> Any:
            return "memory", "in-process"

    with pytest.raises(errors.PluginError, match="expected a BackendIdentity"):
        TagService(TagStore(url), Odd()).upgrade()


def test_backend_that_fails_to_tell_its_name_is_asked_again(url: str) -> None:
    class Shy(MemoryBackend):
        failures = 2

        def identity(self) -> BackendIdentity:
            if self.failures:
                self.failures -= 1
                raise ZeroDivisionError("odd")
            return super().identity()

    store = TagStore(url)
    upgrade(store, MEMORY)
    service = TagService(store, Shy())
    service.refuse_wrong_backend()  # only warns: a service may start before its backend does
    with pytest.raises(errors.BackendRefused, match="cannot ask the backend for its name: Zero"):
        service.register(Instance("s1", "vm-1", "p", "u"))
    service.register(Instance("s1", "vm-1", "p", "u"))
    assert [each.id for each in store.instances()] == ["s1"]
