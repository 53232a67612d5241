"""A soak in which processes write the same consumers concurrently and are killed.

The notes of the writers determine the content of the tables, except for the last write of a killed
writer, which was done either completely or not at all.
"""

import argparse
import collections
import contextlib
import dataclasses
import itertools
import multiprocessing.process
import pathlib
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from support.forks import forks
from support.services import databases
from support.soaks import consumer_checker, consumer_writer
from support.soaks.consumer_checker import ACCOUNTS, BALANCE, BANK, Story, Tables
from support.soaks.consumer_writer import Plan, body

WRITERS = {"postgresql": 16, "mysql": 16, "sqlite": 8}
KILLS = 2
"""Kills per second."""

PATIENCE = 60
"""Seconds to wait for a process or a connection to end."""

# Queries for the number of other connections to the database.
OTHERS = {
    "postgresql": (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ),
    "mysql": (
        "SELECT count(*) FROM information_schema.processlist "
        "WHERE db = database() AND id <> connection_id()"
    ),
    "sqlite": "SELECT 0",
}


@dataclasses.dataclass(frozen=True)
class Figures:
    """The results of a soak on one database."""

    database: str
    writers: int
    seconds: float
    killed: int
    types: int
    outcomes: collections.Counter[str]
    errors: collections.Counter[str]
    retries: int
    longest: float
    faults: list[str]

    def __str__(self) -> str:
        done = self.outcomes["done"]
        return (
            f"{self.database:>13} | {self.writers:7} | {self.seconds:7.0f} | {done:6} | "
            f"{done / self.seconds:6.0f} | {self.types:5} | {self.outcomes['refused']:9} | "
            f"{self.errors.total():9} | {self.retries:7} | {self.outcomes['given up']:7} | "
            f"{self.longest:9.2f} | {self.killed:6} | {self.outcomes['in doubt']:8} | "
            f"{f'{len(self.faults)} faults' if self.faults else 'sound'}"
        )

    def details(self) -> Iterator[str]:
        for message, times in self.errors.most_common(5):
            yield f"{self.database}: {times} times: {message}"
        for fault in self.faults[:20]:
            yield f"{self.database}: {fault}"


HEADER = (
    f"{'database':>13} | {'writers':>7} | {'seconds':>7} | {'done':>6} | {'per s':>6} | "
    f"{'types':>5} | {'conflicts':>9} | {'retries':>9} | {'most':>7} | {'gave up':>7} | "
    f"{'longest s':>9} | {'killed':>6} | {'in doubt':>8} | verdict"
)


def soak(
    engine: sa.Engine, writers: int, seconds: float, seed: int, *, given: bool = False
) -> Figures:
    """Run the writers and check the tables afterwards."""
    store = ConsumerStore(engine)
    store.upgrade()
    store.post_allocations({account: body(BANK, BALANCE, 0, "UNKNOWN") for account in ACCOUNTS})
    with tempfile.TemporaryDirectory() as directory:
        notes = pathlib.Path(directory)
        where = engine.url.render_as_string(hide_password=False)
        processes = _Processes(Plan(where, given, notes, time.time(), seconds, seed))
        processes.run(writers)
        story = Story.read(notes)
    story.failures += processes.failures
    _wait_for_the_killed(engine)
    tables = Tables.read(engine)
    return Figures(
        database=f"{engine.dialect.name}{', given' if given else ''}",
        writers=writers,
        seconds=seconds,
        killed=processes.killed,
        types=len(tables.types),
        outcomes=story.outcomes(),
        errors=collections.Counter(story.errors),
        retries=max((attempt.retries for attempt in story.attempts), default=0),
        longest=max((attempt.seconds for attempt in story.attempts), default=0.0),
        faults=list(consumer_checker.faults(tables, story)),
    )


class _Processes:
    """The writer processes, which are killed at random and replaced."""

    def __init__(self, plan: Plan) -> None:
        self.killed = 0
        self.failures: list[str] = []
        self._context = forks()
        self._chance = random.Random(plan.seed)
        self._numbers = itertools.count(1)
        self._start(time.sleep, 0).join()  # a first process imports the modules, which takes time
        self._plan = dataclasses.replace(plan, start=time.time())

    def run(self, writers: int) -> None:
        running = [self._writer() for _ in range(writers)]
        while not self._plan.over or not self.killed:
            time.sleep(min(self._chance.expovariate(KILLS), self._plan.seconds / 5))
            place = self._chance.randrange(writers)
            running[place].kill()
            running[place].join()
            self.killed += 1
            running[place] = self._writer()
        for process in running:
            process.join(timeout=PATIENCE)
            if process.exitcode != 0:
                self.failures.append(f"{process.name} exited with status {process.exitcode}")
                process.kill()

    def _writer(self) -> multiprocessing.process.BaseProcess:
        return self._start(consumer_writer.write, self._plan, next(self._numbers))

    def _start(
        self, work: Callable[..., object], *args: Any
    ) -> multiprocessing.process.BaseProcess:
        process = self._context.Process(target=work, args=args, daemon=True)
        process.start()
        return process


def _wait_for_the_killed(engine: sa.Engine) -> None:
    """Wait until the server has noticed the kills, since it may still run the last writes."""
    end = time.monotonic() + PATIENCE
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while connection.exec_driver_sql(OTHERS[engine.dialect.name]).scalar():
            assert time.monotonic() < end, "another connection is still open"
            time.sleep(0.05)


@contextlib.contextmanager
def database(url: sa.URL) -> Iterator[sa.Engine]:
    """Yield an engine on a new database on the server; on SQLite, a file in a new directory."""
    if url.get_backend_name() != "sqlite":
        with databases.own_database(url) as engine:
            yield engine
        return
    with tempfile.TemporaryDirectory() as directory:
        engine = sa.create_engine(url.set(database=str(pathlib.Path(directory, "soak.db"))))
        yield engine
        engine.dispose()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=30, help="seconds of writing on each database; default: 30"
    )
    parser.add_argument(
        "--writers", type=int, help="number of writer processes; default: 16, on SQLite 8"
    )
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    measured = []
    sqlite, servers = sa.make_url("sqlite://"), map(databases.url, databases.DEFAULTS)
    for url, given in [(sqlite, False), (sqlite, True), *((server, False) for server in servers)]:
        with database(url) as engine:
            writers = asked.writers or WRITERS[engine.dialect.name]
            measured.append(soak(engine, writers, asked.seconds, asked.seed, given=given))
    lines = [HEADER, *map(str, measured)]
    for figures in measured:
        lines += figures.details()
    print("\n".join(lines))  # noqa: T201
    return int(any(figures.faults for figures in measured))


if __name__ == "__main__":
    raise SystemExit(main())
