"""Outcomes of thousands of jobs, which dispatchers settle while they and their broker fail.

In the end the tables are judged: each outcome has had its effect, and has had it once.
"""

import argparse
import collections
import contextlib
import dataclasses
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

import sqlalchemy as sa
import tag_brokers
from services import brokers, databases
from services.tag_checker import Tables
from tag_databases import upgrade

from steelyard import errors
from steelyard.tags import TagStore, messages
from steelyard.tags.broker import Broker
from steelyard.tags.states import Change, Instance, Key, Kind, Operation, Outcome, Status

COMMAND = [sys.executable, "-c", "from steelyard import cli; raise SystemExit(cli.main())"]
PREFIX = "cyclades:user:"
PATIENCE = 120.0
OF_EACH = 50
"""Outcomes of jobs that somebody has asked for, for each instance."""

BY_HAND = 2
"""Beside these, of tags that nobody here has asked for."""

# How the fifty end.
_ADDED, _NOT_ADDED, _DELETED, _NOT_DELETED = 30, 5, 10, 5

Trouble = Callable[["Dispatchers", random.Random], None]


@dataclasses.dataclass(frozen=True)
class Expected:
    """What is to be there in the end of one instance."""

    active: frozenset[Key]
    changes: int
    """How often it is changed, if each outcome changes it once."""


@dataclasses.dataclass
class Story:
    """What is written down before, what is told, and what is to come of it."""

    outcomes: list[Outcome] = dataclasses.field(default_factory=list)
    expected: dict[str, Expected] = dataclasses.field(default_factory=dict)


def begin(store: TagStore, instances: int, chance: random.Random) -> Story:
    """Has so many instances wait for all kinds of outcomes."""
    story = Story()
    jobs = list(range(1, instances * (OF_EACH + BY_HAND) + 1))
    chance.shuffle(jobs)
    for number in range(instances):
        name = f"vm{number}"
        added, not_added, deleted, not_deleted, by_hand = (
            [(PREFIX, f"{what} {index}") for index in range(count)]
            for what, count in (
                ("added", _ADDED),
                ("not added", _NOT_ADDED),
                ("deleted", _DELETED),
                ("not deleted", _NOT_DELETED),
                ("by hand", BY_HAND),
            )
        )
        begun = []
        for keys, kind, succeeded, asked in (
            (added, Kind.ADD, True, True),
            (not_added, Kind.ADD, False, True),
            (deleted, Kind.DELETE, True, True),
            (not_deleted, Kind.DELETE, False, True),
            (by_hand, Kind.ADD, True, False),
        ):
            for prefix, tag in keys:
                job = jobs.pop()
                story.outcomes.append(
                    Outcome(job, name, kind, frozenset([(prefix, tag)]), succeeded)
                )
                if asked:
                    key = f"{name} {tag}"
                    begun.append(Operation(key, kind, prefix, (tag,), time.time(), job))
        pending = dict.fromkeys([*added, *not_added], Status.PENDADD)
        change = Change(pending, begun=tuple(begun))
        store.register(Instance(name, name, "p", "u"), change)
        active = frozenset([*added, *not_deleted, *by_hand])
        story.expected[name] = Expected(active, 1 + len(begun) + len(by_hand))
    chance.shuffle(story.outcomes)
    return story


_WITNESS = (
    "CREATE TABLE witness (instance_id INTEGER, prefix TEXT, name TEXT, status TEXT)",
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "INSERT INTO witness VALUES (NEW.instance_id, NEW.prefix, NEW.name, NEW.status); "
    "RETURN NEW; END $$",
    "CREATE TRIGGER noted AFTER INSERT OR UPDATE ON instance_tags FOR EACH ROW "
    "EXECUTE FUNCTION note()",
)


def witness(engine: sa.Engine) -> None:
    """Has PostgreSQL write down each time that a tag is set to anything."""
    with engine.begin() as connection:
        for statement in _WITNESS:
            connection.exec_driver_sql(statement)


def faults(engine: sa.Engine, story: Story) -> Iterator[str]:
    """What cannot be, once every outcome has been settled."""
    tables = Tables.read(engine)
    names = {row.number: row.name for row in tables.instances}
    for row in tables.operations:
        yield f"the operation {row.id} has not ended"
    there = collections.defaultdict(set)
    for row in tables.tags:
        there[names[row.instance_id]].add((row.prefix, row.name))
        if row.status != Status.ACTIVE:
            yield f"the tag {row.name} of {names[row.instance_id]} is {row.status}"
    for name, expected in story.expected.items():
        for _, tag in sorted(expected.active - there[name]):
            yield f"the tag {tag} of {name} is not there"
        for _, tag in sorted(there[name] - expected.active):
            yield f"the tag {tag} of {name} is there"
    yield from _faults_of_marks(tables, story, names)
    yield from _faults_of_times(engine, tables, story, names)


def _faults_of_marks(tables: Tables, story: Story, names: dict[int, str]) -> Iterator[str]:
    told = {
        (each.instance, *key): (each.job, each.kind.adds)
        for each in story.outcomes
        if each.succeeded
        for key in each.keys
    }
    marks = {
        (names[row.instance_id], row.prefix, row.name): (row.job, row.there) for row in tables.marks
    }
    for key in sorted(told.keys() | marks.keys()):
        if told.get(key) != marks.get(key):
            yield f"of {key} the mark is {marks.get(key)}, and {told.get(key)} was told"


def _faults_of_times(
    engine: sa.Engine, tables: Tables, story: Story, names: dict[int, str]
) -> Iterator[str]:
    for row in tables.instances:
        if row.generation != story.expected[row.name].changes:
            changes = story.expected[row.name].changes
            yield f"{row.name} was changed {row.generation} times, and {changes} were to be"
    with engine.connect() as connection:
        times = connection.exec_driver_sql(
            "SELECT instance_id, name, count(*) FROM witness WHERE status = 'ACTIVE' "
            "GROUP BY instance_id, prefix, name HAVING count(*) > 1"
        )
        for number, name, count in times:
            yield f"the tag {name} of {names[number]} has become ACTIVE {count} times"


class Dispatchers:
    """So many processes of ``steelyard tags dispatch``, whatever happens to them."""

    def __init__(self, configuration: pathlib.Path, host: str, count: int) -> None:
        self.times = 0
        """How often there has been trouble."""

        self.host = host
        self._log = configuration.with_suffix(".log")
        self._command = [*COMMAND, "--config-file", str(configuration), "tags", "dispatch"]
        self._processes = [self._started() for _ in range(count)]

    def kill(self, chance: random.Random) -> None:
        """One of them, which is started anew."""
        number = chance.randrange(len(self._processes))
        self._processes[number].kill()
        self._processes[number].communicate()
        self._processes[number] = self._started()
        self.times += 1

    def end(self) -> None:
        """All of them in good order."""
        for each in self._processes:
            each.send_signal(signal.SIGTERM)
        for each in self._processes:
            each.communicate(timeout=PATIENCE)
            assert each.returncode == 0, self._log.read_text()

    def close(self) -> None:
        """Whatever has gone wrong, none of them is left."""
        for each in self._processes:
            each.kill()
            each.communicate()

    def _started(self) -> subprocess.Popen[str]:
        """Once it says so."""
        with self._log.open("a") as log:
            process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], PATIENCE)[0]
        said = process.stdout.readline()
        assert "Ctrl-C ends it" in said, self._log.read_text()
        return process


def configuration(directory: str, broker: Broker, url: str, engine: sa.Engine) -> pathlib.Path:
    """A file for the command."""
    path = pathlib.Path(directory, "tags.conf")
    lines = [
        "[steelyard_tags]",
        f"connection = {engine.url.render_as_string(hide_password=False)}",
        f"transport_url = {url}",
        f"queue = {broker.queue.name}",
    ]
    path.write_text("\n".join(lines))
    path.chmod(0o600)
    return path


def started(file: pathlib.Path, *argv: str, **environment: str) -> subprocess.Popen[str]:
    """A command about tags, once it says what it does."""
    process = subprocess.Popen(
        [*COMMAND, "--config-file", str(file), "tags", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    assert "Ctrl-C ends it" in process.stdout.readline(), process.communicate()
    return process


def kill(dispatchers: Dispatchers, chance: random.Random) -> None:
    """Ends one at any moment."""
    time.sleep(chance.uniform(0.0, 0.5))
    dispatchers.kill(chance)


def close_connections(dispatchers: Dispatchers, chance: random.Random) -> None:
    """Has the broker cut everybody off who is at this virtual host."""
    brokers.control("close_all_connections", "-p", dispatchers.host, "a test")
    dispatchers.times += 1


def restart(dispatchers: Dispatchers, chance: random.Random) -> None:
    """Has the broker be away for a while, for everybody."""
    time.sleep(chance.uniform(0.0, 2.0))
    brokers.control("stop_app")
    time.sleep(chance.uniform(0.0, 1.0))
    brokers.control("start_app")
    dispatchers.times += 1


def leave_alone(dispatchers: Dispatchers, chance: random.Random) -> None:
    """Lets them work."""


@dataclasses.dataclass(frozen=True)
class Figures:
    """What has happened."""

    trouble: str
    dispatchers: int
    outcomes: int
    messages: int
    times: int
    seconds: float
    faults: list[str]

    def __str__(self) -> str:
        return (
            f"{self.trouble:>17} | {self.dispatchers:11} | {self.outcomes:8} | "
            f"{self.messages:8} | {self.times:5} | {self.seconds:7.1f} | "
            f"{self.outcomes / self.seconds:6.0f} | "
            f"{f'{len(self.faults)} faults' if self.faults else 'sound'}"
        )


HEADER = (
    f"{'trouble':>17} | {'dispatchers':>11} | {'outcomes':>8} | {'messages':>8} | {'times':>5} | "
    f"{'seconds':>7} | {'each s':>6} | verdict"
)


def soak(
    url: str,
    engine: sa.Engine,
    outcomes: int,
    dispatchers: int,
    trouble: Trouble,
    most: int,
    seed: int = 1,
) -> Figures:
    """Has outcomes arrive, in any order, some twice, while there is trouble; and judges.

    There is trouble so many times, and each time while some of them arrive.
    """
    chance = random.Random(seed)
    store = TagStore(engine)
    upgrade(store)
    story = begin(store, outcomes // (OF_EACH + BY_HAND), chance)
    witness(engine)
    malformed = [f"malformed {number}".encode() for number in range(len(story.outcomes) // 100)]
    told = [messages.write(each).encode() for each in story.outcomes]
    told += chance.sample(told, len(told) // 10) + malformed
    chance.shuffle(told)
    with tag_brokers.own_queue(url) as broker, tempfile.TemporaryDirectory() as directory:
        path = configuration(directory, broker, url, engine)
        started = time.monotonic()
        with contextlib.closing(Dispatchers(path, brokers.host_of(url), dispatchers)) as processes:
            for part in _parts(told, most + 1):
                sending = threading.Thread(target=tag_brokers.send_surely, args=(broker, part))
                sending.start()
                if processes.times < most:
                    trouble(processes, chance)
                sending.join(PATIENCE + len(part) / 5)
                assert not sending.is_alive(), "the broker takes nothing"
            while not _over(broker, store):
                assert time.monotonic() < started + PATIENCE + len(told) / 5, "it does not end"
                time.sleep(0.1)
            seconds = time.monotonic() - started
            processes.end()
        found = [*faults(engine, story), *_faults_of_messages(broker, malformed)]
    return Figures(
        trouble=trouble.__name__.replace("_", " "),
        dispatchers=dispatchers,
        outcomes=len(story.outcomes),
        messages=len(told),
        times=processes.times,
        seconds=seconds,
        faults=found,
    )


def _parts(told: list[bytes], count: int) -> Iterator[list[bytes]]:
    """So many, of about the same size."""
    return (told[start::count] for start in range(count))


def _over(broker: Broker, store: TagStore) -> bool:
    with contextlib.suppress(errors.NoAccess):
        return tag_brokers.count(broker, broker.queue) == 0 and store.pending() == []
    return False


def _faults_of_messages(broker: Broker, malformed: list[bytes]) -> Iterator[str]:
    if left := tag_brokers.count(broker, broker.queue):
        yield f"{left} messages are left"
    aside = tag_brokers.put_aside(broker)
    if {body for body, _ in aside} != set(malformed):
        yield f"{len(malformed)} messages are malformed, and these were put aside: {aside}"
    if not all("is no notification about a job" in why for _, why in aside):
        yield "a message was put aside without the reason"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outcomes", type=int, default=10_000, help="in each of the runs")
    parser.add_argument("--times", type=int, help="trouble in each run at most so many times")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    failed = False
    print(HEADER, flush=True)  # noqa: T201
    with brokers.own_host(brokers.url()) as url:
        for dispatchers, trouble, times in RUNS:
            most = times if asked.times is None else min(times, asked.times)
            with databases.own_database(databases.url("postgresql")) as engine:
                figures = soak(url, engine, asked.outcomes, dispatchers, trouble, most, asked.seed)
            print("\n".join([str(figures), *figures.faults[:20]]), flush=True)  # noqa: T201
            failed = failed or bool(figures.faults)
    return int(failed)


RUNS: list[tuple[int, Trouble, int]] = [
    (1, leave_alone, 0),
    (2, leave_alone, 0),
    (1, kill, 50),
    (2, kill, 50),
    (2, close_connections, 20),
    (2, restart, 5),
]


if __name__ == "__main__":
    raise SystemExit(main())
