"""A soak in which processes change the tags of the same instances concurrently."""

import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import secrets
import time
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from steelyard.tags import TagService, TagStore
from steelyard.tags.states.values import Instance
from support.forks import forks
from support.services import databases
from support.soaks import tag_checker, tag_writer
from support.soaks.consumer_soak import database
from support.soaks.tag_checker import Tables
from support.soaks.tag_writer import (
    COUNTED,
    INSTANCES,
    BackendProxy,
    Backends,
    Plan,
    SharedBackend,
    outcome,
)
from support.tags.databases import upgrade

WRITERS = {"postgresql": 16, "mysql": 16, "sqlite": 8}

# The methods of the shared backend that other processes call.
EXPOSED = ("submit", "jobs", "horizon", "tags", "ended", "truth")


@dataclasses.dataclass(frozen=True)
class Figures:
    """The results of a soak on one database."""

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
            f"{self.outcomes['delivered']:8} | {self.errors.total():9} | {self.retries:7} | "
            f"{self.longest:9.2f} | "
            f"{f'{len(self.faults)} faults' if self.faults else 'sound'}"
        )

    def details(self) -> Iterator[str]:
        for message, times in self.errors.most_common(5):
            yield f"{self.database}: {times} times: {message}"
        for fault in self.faults[:20]:
            yield f"{self.database}: {fault}"


HEADER = (
    f"{'database':>10} | {'writers':>7} | {'seconds':>7} | {'operations':>10} | {'per s':>6} | "
    f"{'refused':>7} | {'jobs':>6} | {'outcomes':>8} | {'retries':>9} | {'most':>7} | "
    f"{'longest s':>9} | verdict"
)


def soak(engine: sa.Engine, writers: int, seconds: float, seed: int) -> Figures:
    """Run the writers and check the tables afterwards."""
    store = TagStore(engine)
    upgrade(store)
    for name in INSTANCES:
        store.register(Instance(name, name, "p", "u"))
    Backends.register("shared", _shared_backend, exposed=EXPOSED)
    context = forks()
    key = secrets.token_bytes()
    with Backends(authkey=key, ctx=context) as backends:
        started = time.time() + 0.3  # time for all processes to start
        where = engine.url.render_as_string(hide_password=False)
        plan = Plan(where, backends.address, key, started, seconds, seed)
        with concurrent.futures.ProcessPoolExecutor(writers, mp_context=context) as pool:
            told = list(pool.map(tag_writer.write, [plan] * writers, range(writers)))
        shared = getattr(backends, "shared")()  # noqa: B009 - registered above
        _deliver_all(TagService(store, BackendProxy(shared)), shared)
        backend = shared.truth()
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
def _shared_backend() -> SharedBackend:
    """Return the shared backend of this process."""
    return SharedBackend(seed=1)


def _deliver_all(service: TagService, shared: Any) -> None:
    """Deliver the remaining outcomes and poll for missed ones."""
    while messages := shared.ended(1000):
        for message in messages:
            service.jobs.apply(outcome(message))
    while service.jobs.poll():
        pass


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
