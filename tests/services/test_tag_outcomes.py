"""Outcomes of jobs through a real RabbitMQ, into a real PostgreSQL, by the real commands."""

import doctest
import json
import pathlib
import random
import re
import shlex
import signal
import subprocess
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterator
from typing import Any

import kombu
import pytest
import sqlalchemy as sa
import tag_brokers
from services import brokers, databases, outcome_soak
from services.outcome_soak import COMMAND, PREFIX, started
from tag_brokers import until
from tag_databases import upgrade

from steelyard import errors
from steelyard.tags import TagService, TagStore, messages
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.broker import Broker
from steelyard.tags.dispatcher import Dispatcher
from steelyard.tags.states import Change, Instance, Kind, Operation, Outcome, Status


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """The URL of a virtual host at RabbitMQ."""
    with brokers.own_host(brokers.needed()) as host:
        yield host


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    with databases.own_database(databases.needed("postgresql")) as engine:
        yield engine


@pytest.fixture
def store(engine: sa.Engine) -> TagStore:
    store = TagStore(engine)
    upgrade(store)
    return store


@pytest.fixture
def broker(host: str) -> Iterator[Broker]:
    with tag_brokers.own_queue(host) as broker:
        yield broker


@pytest.fixture
def file(host: str, broker: Broker, engine: sa.Engine, tmp_path: pathlib.Path) -> pathlib.Path:
    return outcome_soak.configuration(str(tmp_path), broker, host, engine)


@pytest.mark.parametrize(
    ("instances", "dispatchers", "trouble", "most"),
    [(20, 1, outcome_soak.kill, 8), (8, 2, outcome_soak.close_connections, 3)],
)
def test_each_outcome_has_its_effect_and_has_it_once(
    host: str, engine: sa.Engine, instances: int, dispatchers: int, trouble: Any, most: int
) -> None:
    outcomes = instances * (outcome_soak.OF_EACH + outcome_soak.BY_HAND)
    figures = outcome_soak.soak(host, engine, outcomes, dispatchers, trouble, most)
    assert figures.faults == []
    assert figures.times == most
    assert figures.outcomes == outcomes
    assert str(figures).endswith("sound")


def test_a_broker_that_is_killed_and_comes_back_loses_nothing(
    engine: sa.Engine, tmp_path: pathlib.Path
) -> None:
    """The broker itself, not only the connections to it; while two dispatchers work."""
    brokers.needed()
    node = brokers.Node(tmp_path)

    def restart_broker(dispatchers: outcome_soak.Dispatchers, chance: random.Random) -> None:
        time.sleep(chance.uniform(0.0, 0.5))
        node.kill()
        time.sleep(chance.uniform(0.0, 1.0))
        node.start()
        dispatchers.times += 1

    outcomes = 8 * (outcome_soak.OF_EACH + outcome_soak.BY_HAND)
    with node.running():
        figures = outcome_soak.soak(node.url, engine, outcomes, 2, restart_broker, 1)
    assert figures.faults == []
    assert figures.times == 1


def told(count: int) -> list[Outcome]:
    """Of so many tags that somebody has added by hand."""
    return [
        Outcome(job, "vm", Kind.ADD, frozenset([(PREFIX, f"tag {job}")]), succeeded=True)
        for job in range(1, count + 1)
    ]


def send(broker: Broker, outcomes: list[Outcome]) -> None:
    with broker.publishing() as publish:
        for each in outcomes:
            publish(each)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_finishes_the_message_that_it_is_at(
    host: str, store: TagStore, broker: Broker, file: pathlib.Path, number: signal.Signals
) -> None:
    store.register(Instance("vm", "vm", "p", "u"))
    send(broker, told(400))
    with started(file, "dispatch") as process:
        until(lambda: len(store.state("vm").tags) >= 20)
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    assert (process.returncode, said) == (0, "")
    (row,) = store.snapshots_of(["vm"])
    assert 20 <= len(row.state.tags) < 400
    assert tag_brokers.count(broker, broker.queue) == 400 - len(row.state.tags)
    assert row.generation == len(row.state.tags)


def test_no_more_is_sent_ahead_than_is_asked_for(broker: Broker) -> None:
    """So that other dispatchers have something to do, too."""
    going_on = threading.Event()

    def settle(_outcome: Outcome) -> None:
        assert going_on.wait(20)

    send(broker, told(10))
    with tag_brokers.dispatching(Dispatcher(broker, settle, prefetch=4)):
        try:
            until(lambda: tag_brokers.count(broker, broker.queue) == 6)
            time.sleep(0.5)
            assert tag_brokers.count(broker, broker.queue) == 6
        finally:
            going_on.set()
        until(lambda: tag_brokers.count(broker, broker.queue) == 0)


def test_while_the_database_is_in_trouble_it_tries_again_and_not_too_often(
    engine: sa.Engine, store: TagStore, broker: Broker, file: pathlib.Path
) -> None:
    store.register(Instance("vm", "vm", "p", "u"))
    with started(file, "dispatch") as process:
        assert process.stderr is not None
        with engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE tag_marks RENAME TO elsewhere")
        send(broker, told(30))
        assert "Outcomes wait; in " in process.stderr.readline()
        time.sleep(5)
        with engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO tag_marks")
        until(lambda: len(store.state("vm").tags) == 30)
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0
    assert 0 < said.count("Outcomes wait; in ") < 8
    assert 'the database cannot do it: relation "tag_marks" does not exist' in said
    assert tag_brokers.count(broker, broker.queue) == 0
    assert tag_brokers.put_aside(broker) == []


def test_what_the_database_cannot_keep_stops_nothing(broker: Broker) -> None:
    """As when somebody has added a tag by hand whose letters the database does not have."""
    latin = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with databases.own_database(databases.needed("postgresql"), latin) as engine:
        store = TagStore(engine)
        upgrade(store)
        store.register(Instance("vm", "vm", "p", "u"))
        odd = Outcome(9, "vm", Kind.ADD, frozenset([(PREFIX, "日本")]), succeeded=True)
        send(broker, [odd, *told(3)])
        settle = TagService(store, MemoryBackend()).settle
        with tag_brokers.dispatching(Dispatcher(broker, settle)):
            until(lambda: len(store.state("vm").tags) == 3)
    ((body, why),) = tag_brokers.put_aside(broker)
    assert messages.parse(body) == odd
    assert "cannot" in why


def test_without_the_broker_it_waits_for_it_and_shows_no_password(
    host: str, store: TagStore, broker: Broker, file: pathlib.Path
) -> None:
    """The password is none that the broker would take."""
    text = file.read_text()
    file.write_text(text.replace("guest:guest@", "guest:hunter2@"))
    with debugging(file) as process:
        assert process.stderr is not None
        everything = ""
        while "Outcomes wait" not in everything:
            everything += process.stderr.readline()
        process.terminate()
        everything += "".join(process.communicate(timeout=30))
    assert "ACCESS_REFUSED" in everything
    assert "hunter2" not in everything
    assert process.returncode == 0


def debugging(file: pathlib.Path) -> subprocess.Popen[str]:
    """The command, which says all that it can."""
    return subprocess.Popen(
        [*COMMAND, "--debug", "-v", "--config-file", str(file), "tags", "dispatch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_queue_that_is_deleted_is_made_again(
    store: TagStore, broker: Broker, file: pathlib.Path
) -> None:
    store.register(Instance("vm", "vm", "p", "u"))
    send(broker, told(1))
    with started(file, "dispatch") as process:
        until(lambda: len(store.state("vm").tags) == 1)
        with broker.connected() as connection:
            broker.queue(connection.default_channel).delete()
        time.sleep(1)
        send(broker, told(2))
        until(lambda: len(store.state("vm").tags) == 2)
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "operating-tags.rst"


@pytest.fixture
def limited(host: str, broker: Broker) -> Iterator[str]:
    """The URL for a user who is made as the guide says, and can do no more."""
    user, name = f"steelyard_test_{uuid.uuid4().hex}", brokers.host_of(host)
    said = re.findall(
        r"^   rabbitmqctl (.*(?:add_user|set_permissions).*)$", GUIDE.read_text(), re.MULTILINE
    )
    try:
        for line in said:
            argv = shlex.split(line.replace("steelyard[.]tags", re.escape(broker.queue.name)))
            places = {"steelyard": user, "PASSWORD": "secret"}
            argv = [places.get(word, word) for word in argv]
            if "-p" in argv:
                argv[argv.index("-p") + 1] = name
            brokers.control(*argv)
        where = urllib.parse.urlsplit(host)
        yield f"amqp://{user}:secret@{where.hostname}:{where.port or 5672}/{name}"
    finally:
        brokers.control("delete_user", user)


def test_the_permissions_of_the_guide_are_enough(limited: str, broker: Broker) -> None:
    outcome = told(1)[0]
    settled: list[Outcome] = []
    theirs = Broker(limited, broker.queue.name)
    with theirs.connected() as connection:
        for queue in (theirs.queue, theirs.dead):
            queue(connection.default_channel).delete()
    tag_brokers.send(theirs, b"odd")
    with theirs.publishing() as publish:
        publish(outcome)
    with tag_brokers.dispatching(Dispatcher(theirs, settled.append)):
        until(lambda: settled == [outcome])
    ((body, _),) = tag_brokers.put_aside(theirs)
    assert body == b"odd"
    with (
        pytest.raises(errors.NoAccess, match=r"ACCESS_REFUSED - .*access to queue 'other'"),
        Broker(limited, "other").connected(),
    ):
        pass


def test_what_the_broker_says_is_what_the_guide_says(host: str, broker: Broker) -> None:
    parts = urllib.parse.urlsplit(host)
    elsewhere = parts._replace(path="/nowhere").geturl()
    nobody = parts._replace(netloc=f"nobody:secret@{parts.netloc.rpartition('@')[2]}").geturl()
    down = parts._replace(netloc="127.0.0.1:1").geturl()
    with broker.connected() as connection:
        broker.queue(connection.default_channel).delete()
        other = kombu.Queue(broker.queue.name, durable=False)
        other(connection.default_channel).declare()
    for url, said in (
        (elsewhere, "NOT_ALLOWED - vhost nowhere not found"),
        (nobody, "ACCESS_REFUSED - Login was refused"),
        (down, "Connection refused"),
        (host, "PRECONDITION_FAILED - inequivalent arg"),
    ):
        with (
            pytest.raises(errors.NoAccess, match=said),
            Broker(url, broker.queue.name).connected(),
        ):
            pass
        assert re.sub(" nowhere ", " … ", said) in GUIDE.read_text()
    with kombu.Connection(host) as connection:
        other(connection.default_channel).delete()


def test_dead_letters_are_sent_again_as_the_guide_says(
    host: str, broker: Broker, capsys: Any
) -> None:
    with broker.connected() as connection:
        for body in (b"one", b"two"):
            broker.put_aside(connection.default_channel, body, f"{body!r} is none")
    code = doctest.script_from_examples(GUIDE.read_text())
    begin, loop, _ = code[code.index("import kombu\n") :].split("with broker.connected", 2)
    code = f"{begin}with broker.connected{loop}"
    code = code.replace('"steelyard.tags', f'"{broker.queue.name}').replace("memory://", host)
    exec(compile(code, str(GUIDE), "exec"), {})
    assert capsys.readouterr().out == "b'one' is none\nb'two' is none\n"
    assert tag_brokers.put_aside(broker) == []
    with broker.connected() as connection:
        queue = broker.queue(connection.default_channel)
        assert [queue.get(no_ack=True).body for _ in "ab"] == ["one", "two"]


BACKEND = '''
import json
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend

class Written(TagBackend):
    """What it has and has done is in a file."""
    def __init__(self, conf):
        conf.register_opts([], group="steelyard_tags")
    def _read(self):
        with open(FILE) as file:
            return json.load(file)
    def identity(self):
        return BackendIdentity("written", "file")
    def create(self, instance, tags): raise NotImplementedError
    def add(self, instance, tags): raise NotImplementedError
    def delete(self, instance, tags): raise NotImplementedError
    def jobs(self, numbers):
        known = self._read()["jobs"]
        return {each: JobStatus(known.get(str(each), "lost")) for each in numbers}
    def horizon(self):
        return 0
    def tags(self, instances):
        return {name: frozenset(tags) for name, tags in self._read()["tags"].items()}
'''


@pytest.fixture
def backend(tmp_path: pathlib.Path, file: pathlib.Path) -> pathlib.Path:
    """What a backend of another distribution has, which the configuration names."""
    there = tmp_path / "written.json"
    (tmp_path / "written.py").write_text(f"FILE = {str(there)!r}\n{BACKEND}")
    about = tmp_path / "written-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: written\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[steelyard.tag_backends]\nwritten = written:Written\n")
    file.write_text(f"{file.read_text()}\nbackend = written\npoll_interval = 0.2\n")
    return there


@pytest.mark.parametrize("through", ["broker", "nothing"])
def test_the_loop_is_closed(
    store: TagStore, file: pathlib.Path, backend: pathlib.Path, through: str
) -> None:
    """From the backend through the watch, the broker and the dispatcher into the tables."""
    begun = tuple(
        Operation(str(job), Kind.ADD, PREFIX, (f"tag {job}",), time.time(), job)
        for job in range(1, 5)
    )
    pending = {key: Status.PENDADD for each in begun for key in each.keys}
    store.move_to_backend(BackendIdentity("written", "file"))
    store.register(Instance("s1", "vm", "p", "u"), Change(pending, begun=begun))
    said = {
        "jobs": {1: "succeeded", 2: "failed", 3: "running"},
        "tags": {"vm": [f"{PREFIX}tag+1", f"{PREFIX}tag+4"]},
    }
    backend.write_text(json.dumps(said))
    path = {"PYTHONPATH": str(backend.parent)}
    if through == "nothing":
        lines = [line for line in file.read_text().splitlines() if "transport_url" not in line]
        file.write_text("\n".join(lines))
    processes = [started(file, "watch", **path)]
    if through == "broker":
        processes.append(started(file, "dispatch", **path))
    try:
        until(lambda: len(store.pending()) == 1)
        assert store.state("s1").tags == {
            (PREFIX, "tag 1"): Status.ACTIVE,
            (PREFIX, "tag 3"): Status.PENDADD,
            (PREFIX, "tag 4"): Status.ACTIVE,
        }
        backend.write_text(json.dumps({**said, "jobs": {3: "succeeded"}}))
        until(lambda: not store.pending())
        assert store.state("s1").tags[PREFIX, "tag 3"] is Status.ACTIVE
    finally:
        for process in processes:
            process.terminate()
        ended = [process.communicate(timeout=20) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    assert [said for _, said in ended] == [""] * len(processes)


@pytest.fixture
def judged(engine: sa.Engine, store: TagStore) -> Any:
    """A story that has ended well, and the judge of it."""
    story = outcome_soak.begin(store, 1, random.Random(1))
    outcome_soak.witness(engine)
    service = TagService(store, MemoryBackend())
    for outcome in story.outcomes:
        service.settle(outcome)
    return lambda: list(outcome_soak.faults(engine, story))


PLANTED = {
    "UPDATE instance_tags SET status = 'PENDADD' WHERE name = 'added 0'": "is PENDADD",
    "DELETE FROM instance_tags WHERE name = 'not deleted 0'": "not deleted 0 of vm0 is not there",
    "UPDATE instance_tags SET name = 'deleted 9' WHERE name = 'added 1'": (
        "the tag deleted 9 of vm0 is there"
    ),
    "UPDATE instance_tags SET status = 'ACTIVE' WHERE name = 'added 2'": "become ACTIVE 2 times",
    "UPDATE tag_instances SET generation = generation + 1": "was changed 54 times, and 53",
    "UPDATE tag_marks SET job = 99 WHERE name = 'deleted 1'": "the mark is (99, False)",
    "DELETE FROM tag_marks WHERE name = 'by hand 0'": "the mark is None",
    f"INSERT INTO tag_operations VALUES ('o', 1, 'add', '{PREFIX}', '[]', NULL, 1)": "not ended",
}


@pytest.mark.parametrize(("statement", "fault"), PLANTED.items())
def test_the_judge_finds_what_is_wrong(
    engine: sa.Engine, judged: Any, statement: str, fault: str
) -> None:
    assert judged() == []
    with engine.begin() as connection:
        assert connection.exec_driver_sql(statement).rowcount == 1
    assert fault in "\n".join(judged())
