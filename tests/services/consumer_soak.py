"""Processes that write the same consumers at once, and are killed; then the tables are judged.

What must be in the tables follows from the notes of the writers, up to the last one of a writer
that was killed: that was done as a whole, or not at all.
"""

import argparse
import collections
import contextlib
import dataclasses
import itertools
import multiprocessing
import multiprocessing.process
import pathlib
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from services import consumer_checker, consumer_writer, databases
from services.consumer_checker import ACCOUNTS, BALANCE, BANK, Story, Tables
from services.consumer_writer import Plan, body

from steelyard.consumers import ConsumerStore

WRITERS = {"postgresql": 16, "mysql": 16, "sqlite": 8}
KILLS = 2
"""How many there are each second."""

PATIENCE = 60
"""How many seconds whoever is to end may take for it."""

# What a writer imports, so that one in the place of another is there at once.
IMPORTED = ["pytest", "psycopg", "pymysql", "steelyard.consumers.store"]

# How many are connected to the database besides who asks.
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
    """What has happened on a database."""

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
        for said, times in self.errors.most_common(5):
            yield f"{self.database}: {times} times: {said}"
        for fault in self.faults[:20]:
            yield f"{self.database}: {fault}"


HEADER = (
    f"{'database':>13} | {'writers':>7} | {'seconds':>7} | {'done':>6} | {'each s':>6} | "
    f"{'types':>5} | {'conflicts':>9} | {'once more':>9} | {'at most':>7} | {'gave up':>7} | "
    f"{'longest s':>9} | {'killed':>6} | {'in doubt':>8} | verdict"
)


def soak(
    engine: sa.Engine, writers: int, seconds: float, seed: int, *, given: bool = False
) -> Figures:
    """Lets them write, and judges what is there afterwards."""
    store = ConsumerStore(engine)
    store.upgrade()
    store.post_allocations({account: body(BANK, BALANCE, 0, "UNKNOWN") for account in ACCOUNTS})
    with tempfile.TemporaryDirectory() as directory:
        notes = pathlib.Path(directory)
        where = engine.url.render_as_string(hide_password=False)
        processes = _Processes(Plan(where, given, notes, time.time(), seconds, seed))
        processes.run(writers)
        told = Story.read(notes)
    told.failures += processes.failures
    _wait_for_the_killed(engine)
    tables = Tables.read(engine)
    return Figures(
        database=f"{engine.dialect.name}{', given' if given else ''}",
        writers=writers,
        seconds=seconds,
        killed=processes.killed,
        types=len(tables.types),
        outcomes=told.outcomes(),
        errors=collections.Counter(told.errors),
        retries=max((attempt.retries for attempt in told.attempts), default=0),
        longest=max((attempt.seconds for attempt in told.attempts), default=0.0),
        faults=list(consumer_checker.faults(tables, told)),
    )


class _Processes:
    """The writers; now and then one of them is killed, and another one takes its place."""

    def __init__(self, plan: Plan) -> None:
        self.killed = 0
        self.failures: list[str] = []
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(IMPORTED)
        self._chance = random.Random(plan.seed)
        self._numbers = itertools.count(1)
        self._start(time.sleep, 0).join()  # the imports take no time of the writers
        self._plan = dataclasses.replace(plan, start=time.time())

    def run(self, writers: int) -> None:
        running = [self._writer() for _ in range(writers)]
        while not self._plan.over:
            time.sleep(min(self._chance.expovariate(KILLS), self._plan.seconds / 5))
            place = self._chance.randrange(writers)
            running[place].kill()
            running[place].join()
            self.killed += 1
            running[place] = self._writer()
        for process in running:
            process.join(timeout=PATIENCE)
            if process.exitcode != 0:
                self.failures.append(f"{process.name} has ended with {process.exitcode}")
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
    """Until the server has noticed that they are gone: it may still be at their last write."""
    end = time.monotonic() + PATIENCE
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while connection.exec_driver_sql(OTHERS[engine.dialect.name]).scalar():
            assert time.monotonic() < end, "somebody is still connected"
            time.sleep(0.05)


@contextlib.contextmanager
def database(url: sa.URL) -> Iterator[sa.Engine]:
    """A new one, on that server; SQLite's is a file in a directory of its own."""
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
    parser.add_argument("--seconds", type=float, default=30, help="on each database")
    parser.add_argument("--writers", type=int, help="processes at once; else 16, on SQLite 8")
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
