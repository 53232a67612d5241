"""Processes that change the tags of the same few instances at once; then the tables are judged."""

import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import multiprocessing
import secrets
import time
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from services import databases, tag_checker, tag_writer
from services.consumer_soak import database
from services.tag_checker import Tables
from services.tag_writer import COUNTED, INSTANCES, Backends, Distant, Everybodys, Plan, outcome
from tag_databases import upgrade

from steelyard.tags import TagService, TagStore
from steelyard.tags.states import Instance

WRITERS = {"postgresql": 16, "mysql": 16, "sqlite": 8}

# What the backend of all writers is asked for.
ASKED = ("submit", "jobs", "horizon", "tags", "ended", "truth")

# What a writer imports, so that all of them are there at once.
IMPORTED = ["pytest", "psycopg", "pymysql", "steelyard.tags.service"]


@dataclasses.dataclass(frozen=True)
class Figures:
    """What has happened on a database."""

    database: str
    writers: int
    seconds: float
    jobs: int
    outcomes: collections.Counter[str]
    errors: collections.Counter[str]
    retries: int
    longest: float
    faults: list[str]

    def __str__(self) -> str:
        operations = self.outcomes["done"] + self.outcomes["refused"]
        return (
            f"{self.database:>10} | {self.writers:7} | {self.seconds:7.0f} | {operations:10} | "
            f"{operations / self.seconds:6.0f} | {self.outcomes['refused']:7} | {self.jobs:6} | "
            f"{self.outcomes['settled']:8} | {self.errors.total():9} | {self.retries:7} | "
            f"{self.longest:9.2f} | "
            f"{f'{len(self.faults)} faults' if self.faults else 'sound'}"
        )

    def details(self) -> Iterator[str]:
        for said, times in self.errors.most_common(5):
            yield f"{self.database}: {times} times: {said}"
        for fault in self.faults[:20]:
            yield f"{self.database}: {fault}"


HEADER = (
    f"{'database':>10} | {'writers':>7} | {'seconds':>7} | {'operations':>10} | {'each s':>6} | "
    f"{'refused':>7} | {'jobs':>6} | {'outcomes':>8} | {'once more':>9} | {'at most':>7} | "
    f"{'longest s':>9} | verdict"
)


def soak(engine: sa.Engine, writers: int, seconds: float, seed: int) -> Figures:
    """Lets them write, and judges what is there afterwards."""
    store = TagStore(engine)
    upgrade(store)
    for name in INSTANCES:
        store.register(Instance(name, name, "p", "u"))
    Backends.register("everybodys", _everybodys, exposed=ASKED)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    key = secrets.token_bytes()
    with Backends(authkey=key, ctx=context) as backends:
        started = time.time() + 1  # all of them are there by then
        where = engine.url.render_as_string(hide_password=False)
        plan = Plan(where, backends.address, key, started, seconds, seed)
        with concurrent.futures.ProcessPoolExecutor(writers, mp_context=context) as pool:
            told = list(pool.map(tag_writer.write, [plan] * writers, range(writers)))
        everybodys = getattr(backends, "everybodys")()  # noqa: B009 - registered above
        _settle_all(TagService(store, Distant(everybodys)), everybodys)
        backend = everybodys.truth()
    return Figures(
        database=engine.dialect.name,
        writers=writers,
        seconds=seconds,
        jobs=len(backend.jobs),
        outcomes=sum((each.outcomes for each in told), collections.Counter()),
        errors=sum((each.errors for each in told), collections.Counter()),
        retries=max(each.retries for each in told),
        longest=max(each.longest for each in told),
        faults=list(tag_checker.faults(Tables.read(engine), backend, told, frozenset(COUNTED))),
    )


@functools.cache
def _everybodys() -> Everybodys:
    """The one that there is, in the process that has it."""
    return Everybodys(seed=1)


def _settle_all(service: TagService, everybodys: Any) -> None:
    """What has not been delivered is, and what has been missed is asked for."""
    while messages := everybodys.ended(1000):
        for message in messages:
            service.settle(outcome(message))
    while service.poll():
        pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="on each database")
    parser.add_argument("--writers", type=int, help="processes at once; else 16, on SQLite 8")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    measured = []
    for url in (sa.make_url("sqlite://"), *map(databases.url, databases.DEFAULTS)):
        with database(url) as engine:
            writers = asked.writers or WRITERS[engine.dialect.name]
            measured.append(soak(engine, writers, asked.seconds, asked.seed))
    lines = [HEADER, *map(str, measured)]
    for figures in measured:
        lines += figures.details()
    print("\n".join(lines))  # noqa: T201
    return int(any(figures.faults for figures in measured))


if __name__ == "__main__":
    raise SystemExit(main())
