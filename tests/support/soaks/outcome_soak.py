"""A soak in which dispatchers apply thousands of outcomes while they and their broker fail.

At the end it checks in the tables that each outcome was applied exactly once.
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

from steelyard import errors
from steelyard.tags import TagStore
from steelyard.tags.codec import Tag
from steelyard.tags.jobs import messages
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.states.values import Instance, Kind, Operation, Outcome, StateChange, Status
from support.services import brokers, databases
from support.soaks.tag_checker import Tables
from support.tags import queues
from support.tags.databases import upgrade

COMMAND = [sys.executable, "-c", "from steelyard import cli; raise SystemExit(cli.main())"]
PREFIX = "cyclades:user:"
PATIENCE = 120.0
OF_EACH = 50
"""Outcomes of requested operations per instance."""

BY_HAND = 2
"""Outcomes per instance of jobs without an operation, as after changes by hand."""

# The numbers of operations by result; the sum is OF_EACH.
_ADDED, _NOT_ADDED, _DELETED, _NOT_DELETED = 30, 5, 10, 5

Trouble = Callable[["Dispatchers", random.Random], None]


@dataclasses.dataclass(frozen=True)
class Expected:
    """The expected state of one instance at the end."""

    active: frozenset[Tag]
    changes: int
    """The number of changes if each outcome is applied once."""


@dataclasses.dataclass
class Story:
    """The outcomes to send and the expected state of each instance."""

    outcomes: list[Outcome] = dataclasses.field(default_factory=list)
    expected: dict[str, Expected] = dataclasses.field(default_factory=dict)


def begin(store: TagStore, instances: int, chance: random.Random) -> Story:
    """Register instances with pending operations of all kinds, and return their outcomes."""
    story = Story()
    jobs = list(range(1, instances * (OF_EACH + BY_HAND) + 1))
    chance.shuffle(jobs)
    for number in range(instances):
        name = f"vm{number}"
        added, not_added, deleted, not_deleted, by_hand = (
            [Tag(PREFIX, f"{what} {index}") for index in range(count)]
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
                    Outcome(job, name, kind, frozenset([Tag(prefix, tag)]), succeeded)
                )
                if asked:
                    key = f"{name} {tag}"
                    begun.append(
                        Operation(key, kind, prefix, (Tag(prefix, tag),), time.time(), job)
                    )
        pending = dict.fromkeys([*added, *not_added], Status.PENDADD)
        change = StateChange(pending, begun=tuple(begun))
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
    """Record each change of a tag's status in PostgreSQL."""
    with engine.begin() as connection:
        for statement in _WITNESS:
            connection.exec_driver_sql(statement)


def faults(engine: sa.Engine, story: Story) -> Iterator[str]:
    """Yield each contradiction between the tables and the outcomes after all were applied."""
    tables = Tables.read(engine)
    names = {row.number: row.name for row in tables.instances}
    for row in tables.operations:
        yield f"operation {row.id}: still pending"
    there = collections.defaultdict(set)
    for row in tables.tags:
        there[names[row.instance_id]].add((row.prefix, row.name))
        if row.status != Status.ACTIVE:
            yield f"tag {row.name} of {names[row.instance_id]}: status {row.status}"
    for name, expected in story.expected.items():
        for _, tag in sorted(expected.active - there[name]):
            yield f"tag {tag} of {name}: missing"
        for _, tag in sorted(there[name] - expected.active):
            yield f"tag {tag} of {name}: unexpected"
    yield from _faults_of_marks(tables, story, names)
    yield from _faults_of_times(engine, tables, story, names)


def _faults_of_marks(tables: Tables, story: Story, names: dict[int, str]) -> Iterator[str]:
    sent = {
        (each.instance, *key): (each.job, each.kind.adds)
        for each in story.outcomes
        if each.succeeded
        for key in each.tags
    }
    marks = {
        (names[row.instance_id], row.prefix, row.name): (row.job, row.there) for row in tables.marks
    }
    for key in sorted(sent.keys() | marks.keys()):
        if sent.get(key) != marks.get(key):
            yield f"{key}: mark {marks.get(key)}, expected {sent.get(key)}"


def _faults_of_times(
    engine: sa.Engine, tables: Tables, story: Story, names: dict[int, str]
) -> Iterator[str]:
    for row in tables.instances:
        if row.generation != story.expected[row.name].changes:
            changes = story.expected[row.name].changes
            yield f"{row.name}: {row.generation} changes, expected {changes}"
    with engine.connect() as connection:
        times = connection.exec_driver_sql(
            "SELECT instance_id, name, count(*) FROM witness WHERE status = 'ACTIVE' "
            "GROUP BY instance_id, prefix, name HAVING count(*) > 1"
        )
        for number, name, count in times:
            yield f"tag {name} of {names[number]}: became ACTIVE {count} times"


class Dispatchers:
    """A number of processes of ``steelyard tags dispatch``, replaced when killed."""

    def __init__(self, configuration: pathlib.Path, host: str, count: int) -> None:
        self.times = 0
        """The number of disturbances so far."""

        self.host = host
        self._log = configuration.with_suffix(".log")
        self._command = [*COMMAND, "--config-file", str(configuration), "tags", "dispatch"]
        self._processes = [self._started() for _ in range(count)]

    def kill(self, chance: random.Random) -> None:
        """Kill a random dispatcher and start another one."""
        number = chance.randrange(len(self._processes))
        self._processes[number].kill()
        self._processes[number].communicate()
        self._processes[number] = self._started()
        self.times += 1

    def end(self) -> None:
        """Terminate all dispatchers and check their exit status."""
        for each in self._processes:
            each.send_signal(signal.SIGTERM)
        for each in self._processes:
            each.communicate(timeout=PATIENCE)
            assert each.returncode == 0, self._log.read_text()

    def close(self) -> None:
        """Kill all dispatchers."""
        for each in self._processes:
            each.kill()
            each.communicate()

    def _started(self) -> subprocess.Popen[str]:
        """Start a dispatcher and wait until it reports that it runs."""
        with self._log.open("a") as log:
            process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], PATIENCE)[0]
        line = process.stdout.readline()
        assert "press Ctrl-C to stop" in line, self._log.read_text()
        return process


def configuration(directory: str, broker: Broker, url: str, engine: sa.Engine) -> pathlib.Path:
    """Write a configuration file for the commands and return its path."""
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
    """Start a ``tags`` command and wait until it reports that it runs."""
    process = subprocess.Popen(
        [*COMMAND, "--config-file", str(file), "tags", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    assert "press Ctrl-C to stop" in process.stdout.readline(), process.communicate()
    return process


def kill(dispatchers: Dispatchers, chance: random.Random) -> None:
    """Kill a dispatcher after a random time."""
    time.sleep(chance.uniform(0.0, 0.5))
    dispatchers.kill(chance)


def close_connections(dispatchers: Dispatchers, chance: random.Random) -> None:
    """Make the broker close all connections to the virtual host."""
    brokers.control("close_all_connections", "-p", dispatchers.host, "a test")
    dispatchers.times += 1


def restart(dispatchers: Dispatchers, chance: random.Random) -> None:
    """Stop the broker for a random time."""
    time.sleep(chance.uniform(0.0, 2.0))
    brokers.control("stop_app")
    time.sleep(chance.uniform(0.0, 1.0))
    brokers.control("start_app")
    dispatchers.times += 1


def leave_alone(dispatchers: Dispatchers, chance: random.Random) -> None:
    """Do nothing."""


@dataclasses.dataclass(frozen=True)
class Figures:
    """The results of one run."""

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
    f"{'seconds':>7} | {'per s':>6} | verdict"
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
    """Send outcomes in random order, some twice, cause trouble meanwhile, and check the result.

    The trouble is caused at most ``most`` times, each time while messages are being sent.
    """
    chance = random.Random(seed)
    store = TagStore(engine)
    upgrade(store)
    story = begin(store, outcomes // (OF_EACH + BY_HAND), chance)
    witness(engine)
    malformed = [f"malformed {number}".encode() for number in range(len(story.outcomes) // 100)]
    bodies = [messages.write(each).encode() for each in story.outcomes]
    bodies += chance.sample(bodies, len(bodies) // 10) + malformed
    chance.shuffle(bodies)
    with queues.own_queue(url) as broker, tempfile.TemporaryDirectory() as directory:
        path = configuration(directory, broker, url, engine)
        started = time.monotonic()
        with contextlib.closing(Dispatchers(path, brokers.host_of(url), dispatchers)) as processes:
            for part in _parts(bodies, most + 1):
                sending = threading.Thread(target=queues.send_surely, args=(broker, part))
                sending.start()
                if processes.times < most:
                    trouble(processes, chance)
                sending.join(PATIENCE + len(part) / 5)
                assert not sending.is_alive(), "the broker accepts no messages"
            while not _over(broker, store):
                assert time.monotonic() < started + PATIENCE + len(bodies) / 5, (
                    "the dispatchers do not finish"
                )
                time.sleep(0.1)
            seconds = time.monotonic() - started
            processes.end()
        found = [*faults(engine, story), *_faults_of_messages(broker, malformed)]
    return Figures(
        trouble=trouble.__name__.replace("_", " "),
        dispatchers=dispatchers,
        outcomes=len(story.outcomes),
        messages=len(bodies),
        times=processes.times,
        seconds=seconds,
        faults=found,
    )


def _parts(bodies: list[bytes], count: int) -> Iterator[list[bytes]]:
    """Return this many parts of about the same size."""
    return (bodies[start::count] for start in range(count))


def _over(broker: Broker, store: TagStore) -> bool:
    with contextlib.suppress(errors.NoAccess):
        return queues.count(broker, broker.queue) == 0 and store.pending() == []
    return False


def _faults_of_messages(broker: Broker, malformed: list[bytes]) -> Iterator[str]:
    if left := queues.count(broker, broker.queue):
        yield f"{left} messages left in the queue"
    aside = queues.dead_letters(broker)
    if {body for body, _ in aside} != set(malformed):
        yield f"{len(malformed)} messages are malformed; put aside: {aside}"
    if not all(reason.startswith("malformed notification") for _, reason in aside):
        yield "a message was put aside without the reason"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--outcomes", type=int, default=10_000, help="outcomes in each run; default: 10000"
    )
    parser.add_argument(
        "--times", type=int, help="most disturbances in each run; default: those of the run"
    )
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
