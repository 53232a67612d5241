"""The backend ganeti on a real Ganeti, with the service and the store above it."""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import hypothesis
import pytest
import sqlalchemy as sa
import tag_brokers
from hypothesis import strategies as st
from services import brokers, databases, ganeti_cluster, outcome_soak
from services.ganeti_cluster import Cluster
from tag_databases import RECORDING, WRITING, dump, upgrade

from steelyard import cli
from steelyard.errors import (
    BackendRefused,
    InvalidTag,
    NotFound,
    OutcomeUnknown,
    WrongBackend,
)
from steelyard.tags import TagService, TagStore, decode, encode
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend
from steelyard.tags.backends.ganeti import GanetiBackend
from steelyard.tags.names import MOST, check_name
from steelyard.tags.plans import Action
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states import Instance, Status

INST1, INST2, NEW = "inst1.gnt.test", "inst2.gnt.test", "new1.gnt.test"
CALLER, OPERATOR = Caller("p", "u"), Operator()
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD
USER, SYSTEM = "cyclades:user:", "cyclades:system:"
PATIENCE = 60.0
NOBODY = 65534
CREATION = {
    "disk_template": "diskless",
    "disks": [],
    "nics": [],
    "os_type": "noop",
    "pnode": "node1.gnt.test",
    "start": False,
    "ignore_ipolicy": True,  # it wants a network card
}


@pytest.fixture(scope="module")
def the_cluster() -> Iterator[Cluster]:
    """The cluster with nothing in the way of jobs, whatever an earlier run has left."""
    with ganeti_cluster.needed() as cluster:
        if "unset" not in cluster.inside("gnt-cluster", "queue", "info"):
            cluster.inside("gnt-cluster", "queue", "undrain")
        remove_filters(cluster)
        wait(lambda: cluster.backend().horizon() == last_job(cluster))
        yield cluster


@pytest.fixture
def cluster(the_cluster: Cluster) -> Cluster:
    """The cluster with two instances that have no tags."""
    backend = the_cluster.backend()
    if backend.tags([NEW]):
        the_cluster.inside("gnt-instance", "remove", "--force", NEW)
    for name, tags in backend.tags([INST1, INST2]).items():
        if tags:
            for batch in backend.batches(name, sorted(tags)):
                done(backend, backend.delete(name, batch))
    return the_cluster


@pytest.fixture
def backend(cluster: Cluster) -> GanetiBackend:
    return cluster.backend()


@pytest.fixture
def service(backend: GanetiBackend, tmp_path: pathlib.Path) -> TagService:
    return made(backend, tmp_path)


def made(backend: TagBackend, directory: pathlib.Path) -> TagService:
    """A service that knows both instances, with a new database."""
    store = TagStore(f"sqlite:///{directory}/tags.db")
    upgrade(store, backend.identity())
    service = TagService(store, backend)
    service.register(Instance("s1", INST1, "p", "u"))
    service.register(Instance("s2", INST2, "p", "u"))
    return service


def wait(until: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < end
        time.sleep(0.1)


def settle(service: TagService) -> None:
    """Has everything end that is under way."""
    wait(lambda: (service.poll(), not service.store.pending())[1])


def done(backend: TagBackend, job: int, expected: JobStatus = JobStatus.SUCCEEDED) -> None:
    wait(lambda: backend.jobs([job])[job] is not JobStatus.RUNNING)
    assert backend.jobs([job]) == {job: expected}


def last_job(cluster: Cluster) -> int:
    listed = cluster.inside("gnt-job", "list", "--no-headers", "-o", "id")
    return max(map(int, listed.split()))


def remove_filters(cluster: Cluster) -> None:
    for uuid in cluster.inside("gnt-filter", "list", "--no-headers", "-o", "uuid").split():
        cluster.inside("gnt-filter", "delete", uuid)


@contextlib.contextmanager
def filtered(cluster: Cluster, action: str) -> Iterator[None]:
    """What is submitted meanwhile is not done, or not yet."""
    every_job = '[["jobid", [">", "id", 0]]]'
    cluster.inside("gnt-filter", "add", "--action", action, "--predicates", every_job)
    try:
        yield
    finally:
        remove_filters(cluster)


def there(backend: TagBackend, name: str = INST1) -> set[str]:
    return set(backend.tags([name])[name])


def test_tags_are_added_listed_replaced_and_deleted(service: TagService) -> None:
    assert service.add(CALLER, "s1", "größe_1 +x")
    assert service.tags(CALLER, "s1") == {"größe_1 +x": PENDADD}
    settle(service)
    assert not service.add(CALLER, "s1", "größe_1 +x")
    assert service.add(OPERATOR, "s1", "größe_1 +x")
    assert service.status(CALLER, "s1", "größe_1 +x") is ACTIVE
    settle(service)
    encoded = "gr/C3/B6/C3/9Fe*1+/2Bx"
    assert there(service.backend) == {USER + encoded, SYSTEM + encoded}
    service.replace(CALLER, "s1", ["a", "b"])
    settle(service)
    assert service.tags(CALLER, "s1") == {"a": ACTIVE, "b": ACTIVE}
    assert there(service.backend) == {USER + "a", USER + "b", SYSTEM + encoded}
    service.delete(CALLER, "s1", "a")
    with pytest.raises(NotFound):
        service.delete(CALLER, "s1", "a")
    service.clear(CALLER, "s1")
    settle(service)
    assert there(service.backend) == {SYSTEM + encoded}
    assert service.tags(CALLER, "s1") == {}
    assert there(service.backend, INST2) == set()


def test_what_somebody_does_by_hand_is_found(service: TagService, cluster: Cluster) -> None:
    service.replace(CALLER, "s1", ["kept", "gone"])
    settle(service)
    foreign = ["other", "a_b@c", USER + "a/2fb", SYSTEM + "a/C3"]
    cluster.inside("gnt-instance", "add-tags", INST1, USER + "by+hand", SYSTEM + "smtp", *foreign)
    cluster.inside("gnt-instance", "remove-tags", INST1, USER + "gone")
    (plans,) = service.reconciliation().carried_out()
    steps = {(step.action, step.prefix, step.tag) for each in plans for step in each.steps}
    assert steps == {
        (Action.CREATED, USER, "by hand"),
        (Action.CREATED, SYSTEM, "smtp"),
        (Action.DELETED, USER, "gone"),
        *((Action.LEFT, "", tag) for tag in foreign),
    }
    assert service.tags(CALLER, "s1") == {"by hand": ACTIVE, "kept": ACTIVE}
    assert service.tags(OPERATOR, "s1") == {"smtp": ACTIVE}
    service.delete(CALLER, "s1", "by hand")
    settle(service)
    assert there(service.backend) == {USER + "kept", SYSTEM + "smtp", *foreign}


def test_what_has_gone_meanwhile_is_not_deleted_twice(
    service: TagService, cluster: Cluster
) -> None:
    """Ganeti deletes all or none; what it has kept comes back, and the rest shows."""
    service.replace(CALLER, "s1", ["a", "b"])
    settle(service)
    cluster.inside("gnt-instance", "remove-tags", INST1, USER + "a")
    service.clear(CALLER, "s1")
    settle(service)
    list(service.reconciliation().carried_out())
    assert service.tags(CALLER, "s1") == {"b": ACTIVE}
    assert there(service.backend) == {USER + "b"}


def test_an_invalid_tag_never_gets_there(backend: GanetiBackend) -> None:
    before = backend.horizon()
    for tag in ("", "a b", "é", "a,b", "a%20", "a~", "x" * 129, "a\n", "日本"):
        for ask in (backend.add, backend.delete, backend.create):
            with pytest.raises(BackendRefused, match="is no tag in Ganeti"):
                ask(INST1, ["good", tag])
    assert backend.horizon() == before
    assert there(backend) == set()


def test_what_ganeti_takes_is_taken(backend: GanetiBackend) -> None:
    tags = ["x" * 128, "a_b@c", "A.+*/:-9", "+", "++", "a+b", "%2B".replace("%", "/")]
    done(backend, backend.add(INST1, tags))
    done(backend, backend.add(INST1, tags))
    assert there(backend) == set(tags)
    done(backend, backend.delete(INST1, ["a_b@c", "absent"]), JobStatus.FAILED)
    assert there(backend) == set(tags)
    done(backend, backend.delete(INST1, [*tags, *tags]))
    assert there(backend) == set()


def test_an_instance_is_meant_by_its_whole_name(backend: GanetiBackend) -> None:
    """Ganeti itself would take a part of a name, in any case of letters."""
    before = backend.horizon()
    for name in ("inst1", "INST1.gnt.test", "inst9.gnt.test", "../inst1.gnt.test"):
        for ask in (backend.add, backend.delete):
            with pytest.raises(BackendRefused, match=r"no instance|no name"):
                ask(name, ["a"])
        assert backend.tags([name, INST1, ""]) == {INST1: set()}
    assert backend.horizon() == before


def test_a_job_that_is_paused_goes_on_later(service: TagService, cluster: Cluster) -> None:
    with filtered(cluster, "PAUSE"):
        horizon = service.backend.horizon()
        service.add(CALLER, "s1", "a")
        time.sleep(1)
        assert service.poll() == 0
        assert service.backend.horizon() == horizon
        list(service.reconciliation().carried_out())
        assert service.tags(CALLER, "s1") == {"a": PENDADD}
    settle(service)
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}
    assert service.backend.horizon() > horizon


def test_a_job_that_is_rejected_or_canceled_does_nothing(
    service: TagService, cluster: Cluster
) -> None:
    service.add(CALLER, "s1", "a")
    settle(service)
    with filtered(cluster, "REJECT"):
        service.add(CALLER, "s1", "b")
        service.delete(CALLER, "s1", "a")
        settle(service)
    with filtered(cluster, "PAUSE"):
        service.add(CALLER, "s1", "c")
        time.sleep(0.5)
        cluster.inside("gnt-job", "cancel", "--force", "--yes-do-it", str(last_job(cluster)))
        settle(service)
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}
    assert there(service.backend) == {USER + "a"}


def test_a_queue_that_is_drained_refuses(service: TagService, cluster: Cluster) -> None:
    service.add(CALLER, "s1", "a")
    settle(service)
    cluster.inside("gnt-cluster", "queue", "drain")
    with pytest.raises(BackendRefused, match=r"Queue drained.*gnt-cluster queue undrain"):
        service.replace(CALLER, "s1", ["b"])
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}
    assert service.store.pending() == []
    cluster.inside("gnt-cluster", "queue", "undrain")
    service.replace(CALLER, "s1", ["b"])
    settle(service)
    assert service.tags(CALLER, "s1") == {"b": ACTIVE}


class Stopping(GanetiBackend):
    """Ganeti stops to answer between the look at an instance and the job."""

    stopped = False

    def tags(self, instances: Any) -> Mapping[str, frozenset[str]]:
        found = super().tags(instances)
        if not self.stopped:
            self.stopped = True
            signal_luxid(signal.SIGSTOP)
        return found


def signal_luxid(number: int) -> None:
    os.kill(int(pathlib.Path("/run/ganeti/ganeti-luxid.pid").read_text()), number)


def test_what_is_asked_of_a_daemon_that_hangs_shows_later(
    cluster: Cluster, tmp_path: pathlib.Path
) -> None:
    service = made(Stopping(cluster.conf(ganeti_timeout=2.0)), tmp_path)
    try:
        with pytest.raises(OutcomeUnknown, match="has not answered"):
            service.add(CALLER, "s1", "a")
        assert service.tags(CALLER, "s1") == {"a": PENDADD}
        with pytest.raises(BackendRefused, match="does not answer"):
            service.add(CALLER, "s1", "b")
        assert service.poll() == 0
        assert service.tags(CALLER, "s1") == {"a": PENDADD}
    finally:
        signal_luxid(signal.SIGCONT)
    wait(lambda: there(service.backend) == {USER + "a"})
    list(service.reconciliation().carried_out())
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}


def test_a_daemon_that_is_not_there_is_said(service: TagService, cluster: Cluster) -> None:
    service.add(CALLER, "s1", "a")
    settle(service)
    try:
        cluster.inside("/usr/lib/ganeti/daemon-util", "stop", "ganeti-luxid")
        with pytest.raises(BackendRefused, match=r"refuses, with 504"):
            service.delete(CALLER, "s1", "a")
        cluster.inside("/usr/lib/ganeti/daemon-util", "stop", "ganeti-rapi")
        with pytest.raises(BackendRefused, match="is ganeti-rapi running there"):
            service.delete(CALLER, "s1", "a")
        assert service.poll() == 0
    finally:
        ganeti_cluster.bring_up()
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}
    service.delete(CALLER, "s1", "a")
    settle(service)
    assert there(service.backend) == set()


def test_there_is_room_for_4096(backend: GanetiBackend) -> None:
    tags = [f"{USER}{number:04}" for number in range(4096)]
    jobs = [backend.add(INST1, batch) for batch in backend.batches(INST1, tags)]
    assert len(jobs) > 10
    for job in jobs:
        done(backend, job)
    assert there(backend) == set(tags)
    done(backend, backend.add(INST1, ["one-more"]), JobStatus.FAILED)
    done(backend, backend.add(INST1, tags[:1]), JobStatus.FAILED)  # even one that is there
    assert backend.horizon() >= jobs[-1]
    for job in [backend.delete(INST1, batch) for batch in backend.batches(INST1, tags)]:
        done(backend, job)
    assert there(backend) == set()


def test_a_request_is_as_long_as_it_may_be(backend: GanetiBackend) -> None:
    """Filled to the last character, by the method with the longer name."""
    line = len(f"DELETE /2/instances/{INST1}/tags? HTTP/1.1")
    tags = [f"{number:04}+" for number in range((8192 - line) // len("tag=0000%2B&"))]
    tags.append("x" * (8192 - line - len("tag=0000%2B&") * len(tags) - len("tag=") + 1))
    (first, *rest) = backend.batches(INST1, [*tags, "more"])
    assert (list(first), rest) in [(tags, [["more"]]), (tags[:-1], [[tags[-1], "more"]])]
    done(backend, backend.add(INST1, first))
    done(backend, backend.delete(INST1, first))
    with pytest.raises(OutcomeUnknown, match="has not answered"):
        backend.delete(INST1, [*tags, "more"])


def test_as_many_tags_as_a_user_can_have_go_in_several_jobs(service: TagService) -> None:
    names = [" " * 59 + chr(ord("A") + number) for number in range(MOST)]
    names = [name for name in names if name == check_name(name)]
    before = service.backend.horizon()
    service.replace(CALLER, "s1", names)
    settle(service)
    assert service.tags(CALLER, "s1") == dict.fromkeys(sorted(names), ACTIVE)
    assert service.backend.horizon() == before + 2
    service.clear(CALLER, "s1")
    settle(service)
    assert there(service.backend) == set()


def test_an_instance_is_created_with_its_tags(
    service: TagService, cluster: Cluster, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(BackendRefused, match="set ganeti_instance"):
        service.create(CALLER, NEW, ["a"])
    service = TagService(service.store, cluster.backend(ganeti_instance=CREATION))
    with pytest.raises(BackendRefused, match="already an instance"):
        service.backend.create(INST1, [])
    for name in (NEW.upper(), "new 1"):
        with pytest.raises(BackendRefused, match="no name of an instance"):
            service.create(CALLER, name, ["a"])
    instance, statuses = service.create(CALLER, NEW, ["größe", "a b"], "s3")
    assert statuses == {"größe": PENDADD, "a b": PENDADD}
    settle(service)
    assert service.tags(CALLER, "s3") == {"größe": ACTIVE, "a b": ACTIVE}
    assert there(service.backend, NEW) == {encode("größe", USER), encode("a b", USER)}
    service.add(CALLER, instance.id, "c")
    settle(service)
    assert len(there(service.backend, NEW)) == 3


def test_what_cannot_be_created_is_forgotten(service: TagService, cluster: Cluster) -> None:
    wrong = {**CREATION, "os_type": "nonsense"}
    service = TagService(service.store, cluster.backend(ganeti_instance=wrong))
    service.create(CALLER, NEW, ["a"], "s3")
    settle(service)
    with pytest.raises(NotFound):
        service.tags(CALLER, "s3")
    unknown = {**CREATION, "nonsense": 1}
    service = TagService(service.store, cluster.backend(ganeti_instance=unknown))
    with pytest.raises(BackendRefused, match=r"400: Invalid body parameters: .*'nonsense'"):
        service.create(CALLER, NEW, ["a"], "s3")
    with pytest.raises(NotFound):
        service.tags(CALLER, "s3")
    assert service.backend.tags([NEW]) == {}


def test_a_database_that_is_lost_is_filled_from_what_is_there(
    service: TagService, tmp_path: pathlib.Path
) -> None:
    names = {"größe", "a b", "x+y", "%2B~", "日本"}
    service.replace(CALLER, "s1", names)
    service.replace(OPERATOR, "s2", names)
    settle(service)
    anew = tmp_path / "anew"
    anew.mkdir()
    service = made(service.backend, anew)
    assert service.tags(CALLER, "s1") == {}
    for _ in range(2):
        plans = [each for plans in service.reconciliation().carried_out() for each in plans]
        assert service.tags(CALLER, "s1") == dict.fromkeys(sorted(names), ACTIVE)
        assert service.tags(OPERATOR, "s2") == dict.fromkeys(sorted(names), ACTIVE)
    assert [each.steps for each in plans] == [(), ()]
    service.clear(CALLER, "s1")
    settle(service)
    assert there(service.backend) == set()


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    with databases.own_database(databases.needed("postgresql")) as engine:
        yield engine


def test_the_commands_close_the_loop(
    cluster: Cluster, engine: sa.Engine, tmp_path: pathlib.Path
) -> None:
    """From Ganeti through the watch, the broker and the dispatcher into the tables."""
    store = TagStore(engine)
    upgrade(store, cluster.backend().identity())
    service = TagService(store, cluster.backend())
    service.register(Instance("s1", INST1, "p", "u"))
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(brokers.own_host(brokers.needed()))
        broker = stack.enter_context(tag_brokers.own_queue(host))
        file = outcome_soak.configuration(str(tmp_path), broker, host, engine)
        file.write_text("\n".join([file.read_text(), *cluster.lines(), "poll_interval = 0.2"]))
        processes = [
            stack.enter_context(outcome_soak.started(file, name)) for name in ("watch", "dispatch")
        ]
        for process in processes:
            stack.callback(process.kill)
        service.replace(CALLER, "s1", ["größe", "gone"])
        wait(lambda: service.tags(CALLER, "s1") == {"gone": ACTIVE, "größe": ACTIVE})
        service.delete(CALLER, "s1", "gone")
        with filtered(cluster, "REJECT"):
            service.add(CALLER, "s1", "rejected")
            wait(lambda: service.tags(CALLER, "s1") == {"größe": ACTIVE})
        wait(lambda: not store.pending())
        for process in processes:
            process.terminate()
        said = [process.communicate(timeout=PATIENCE) for process in processes]
        assert said == [("", "")] * 2
        assert tag_brokers.count(broker, broker.queue) == 0
        assert tag_brokers.put_aside(broker) == []
    assert [process.returncode for process in processes] == [0, 0]
    assert there(service.backend) == {encode("größe", USER)}
    cluster.inside("gnt-instance", "add-tags", INST1, USER + "by+hand")
    command = [*outcome_soak.COMMAND, "--config-file", str(file), "tags", "reconcile"]
    for options, actions in (
        (["--dry-run"], ["created"]),
        ([], ["created"]),
        ([], ["nothing to do"]),
    ):
        done = subprocess.run(
            [*command, "-f", "json", *options], capture_output=True, text=True, check=True
        )
        assert [each["Action"] for each in json.loads(done.stdout)] == actions
    assert service.tags(CALLER, "s1") == {"by hand": ACTIVE, "größe": ACTIVE}


def test_each_name_that_we_accept_is_accepted_there_and_comes_back(
    backend: GanetiBackend,
) -> None:
    tags = {encode(name, USER): name for name in a_thousand_names()}
    assert len(tags) == 1000
    for job in [backend.add(INST1, batch) for batch in backend.batches(INST1, list(tags))]:
        done(backend, job)
    found = there(backend)
    assert found == set(tags)
    assert {decode(tag) for tag in found} == {(USER, name) for name in tags.values()}
    for job in [backend.delete(INST1, batch) for batch in backend.batches(INST1, list(tags))]:
        done(backend, job)
    assert there(backend) == set()


def a_thousand_names() -> set[str]:
    """The same in each run."""
    odd = st.sampled_from("_*%~@+ .:-aZ09é\u0301ß\u3000\u200b\u2028\U0001f600")
    letters = st.one_of(
        odd, st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/,")
    )
    found: set[str] = set()

    @hypothesis.settings(max_examples=3000, derandomize=True, database=None)
    @hypothesis.given(st.text(letters, min_size=1, max_size=60))
    def find(name: str) -> None:
        with contextlib.suppress(InvalidTag):
            encode(name, USER)
            found.add(name)

    find()
    return set(random.Random(1).sample(sorted(found), 1000))


def test_what_ganeti_has_forgotten_is_lost(backend: GanetiBackend, cluster: Cluster) -> None:
    job = backend.add(INST1, ["a"])
    done(backend, job)
    cluster.inside("gnt-job", "archive", str(job))
    found = dict(backend.jobs([job, 10**9, 2**70, 0, -1]))
    assert found.pop(job) is JobStatus.SUCCEEDED
    assert set(found.values()) == {JobStatus.LOST}
    assert backend.jobs([]) == {}
    known = backend.jobs(range(1, job + 1))
    assert len(known) == job
    assert JobStatus.RUNNING not in known.values()


def test_who_may_not_is_told(cluster: Cluster) -> None:
    with pytest.raises(BackendRefused, match="does not let us in as 'tester'") as told:
        cluster.backend(ganeti_password="hunter2").add(INST1, ["a"])
    assert "hunter2" not in str(told.value)
    with pytest.raises(BackendRefused, match="lets 'tester-ro' read only"):
        cluster.backend(ganeti_user="tester-ro").add(INST1, ["a"])


def test_a_certificate_that_nobody_vouches_for_is_refused(cluster: Cluster) -> None:
    for changed in ({"ganeti_fingerprint": None}, {"ganeti_fingerprint": "0" * 64}):
        with pytest.raises(BackendRefused, match=r"certificate .* cannot be trusted"):
            cluster.backend(**changed).horizon()


@pytest.fixture
def without_scripts(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv(ganeti_cluster.VARIABLE, str(tmp_path))


@pytest.fixture
def as_ordinary_user() -> Iterator[None]:
    """Give up the rights of root while the test runs."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    yield
    os.seteuid(before)


@pytest.mark.parametrize("condition", ["without_scripts", "as_ordinary_user"])
def test_needed_without_a_cluster_skips_or_fails_if_services_are_required(
    request: Any, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    request.getfixturevalue(condition)
    why = ganeti_cluster.why_unavailable()
    assert why is not None
    monkeypatch.delenv(databases.REQUIRE, raising=False)
    with pytest.raises(pytest.skip.Exception, match=re.escape(why)):
        ganeti_cluster.needed().__enter__()
    monkeypatch.setenv(databases.REQUIRE, "1")
    with pytest.raises(
        pytest.fail.Exception, match=f"{re.escape(why)}; {databases.REQUIRE} is set"
    ):
        ganeti_cluster.needed().__enter__()


def test_upgrade_records_the_name_of_the_cluster(
    cluster: Cluster, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = configuration(cluster, tmp_path)
    argv = ["--config-file", str(file), "db", "upgrade", "--schema", "tags"]
    assert cli.main(argv) == 0
    name = cluster.inside("gnt-cluster", "info").splitlines()[0].removeprefix("Cluster name: ")
    ours = BackendIdentity("ganeti", name)
    assert f"the database belongs to backend {ours}" in capsys.readouterr().out
    assert TagStore(f"sqlite:///{tmp_path}/tags.db").backend() == ours
    assert cli.main(argv) == 0


def test_database_of_another_cluster_is_not_written(
    backend: GanetiBackend, tmp_path: pathlib.Path
) -> None:
    """Both are driven by ganeti: the names of the clusters differ."""
    url = f"sqlite:///{tmp_path}/tags.db"
    store = TagStore(url)
    upgrade(store, BackendIdentity("ganeti", "other.gnt.test"))
    store.register(Instance("s1", INST1, "p", "u"))
    service, before = TagService(store, backend), dump(url)
    first_free = service.backend.horizon()
    with pytest.raises(WrongBackend, match=r"'other\.gnt\.test', and backend ganeti 'cluster\.gnt"):
        service.add(CALLER, "s1", "a")
    assert dump(url) == before
    assert service.backend.horizon() == first_free
    assert there(service.backend) == set()


def test_commands_without_configuration_change_nothing_beside_a_running_service(
    cluster: Cluster, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ganeti has jobs to do for two instances, one of which it is creating."""
    file, url = configuration(cluster, tmp_path), f"sqlite:///{tmp_path}/tags.db"
    assert cli.main(["--config-file", str(file), "db", "upgrade", "--schema", "tags"]) == 0
    service = TagService(TagStore(url), cluster.backend(ganeti_instance=CREATION))
    service.register(Instance("s1", INST1, "p", "u"))
    service.replace(CALLER, "s1", ["smtp", "old"])
    settle(service)
    with contextlib.ExitStack() as stack:
        watch = stack.enter_context(outcome_soak.started(file, "watch"))
        stack.callback(watch.terminate)
        with filtered(cluster, "PAUSE"):
            service.add(CALLER, "s1", "new")
            service.delete(CALLER, "s1", "old")
            service.create(Caller("q", "v"), NEW, ["first"], "s2")
            before, jobs, tags = dump(url), last_job(cluster), there(service.backend)
            capsys.readouterr()
            for command in [*WRITING.values(), *RECORDING.values()]:
                assert cli.main(["tags", *command, "--url", url]) == 2, command
                said = capsys.readouterr().err
                assert "ganeti 'cluster.gnt.test'" in said, command
                assert "memory 'in-process'" in said, command
            alone = tmp_path / "alone.conf"
            alone.write_text(f"[steelyard_tags]\nconnection = {url}\n")
            assert cli.main(["--config-file", str(alone), "tags", "watch"]) == 2
            assert dump(url) == before
            assert last_job(cluster) == jobs
            assert there(service.backend) == tags
        wait(lambda: not service.store.pending())
        assert service.tags(CALLER, "s1") == {"smtp": ACTIVE, "new": ACTIVE}
        assert service.tags(Caller("q", "v"), "s2") == {"first": ACTIVE}


def configuration(cluster: Cluster, directory: pathlib.Path) -> pathlib.Path:
    """Write the options of a service of the cluster, with a database in the directory."""
    file = directory / "tags.conf"
    lines = ["[steelyard_tags]", f"connection = sqlite:///{directory}/tags.db", *cluster.lines()]
    file.write_text("\n".join([*lines, "poll_interval = 0.2", ""]))
    file.chmod(0o600)
    return file
