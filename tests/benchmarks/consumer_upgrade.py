"""The upgrade of a million consumers that have no types, beside one in batches.

The databases are full, and at revision 0002. "One statement": revision 0004, which adds the column of
types with a constant default. "Batches": the same without one, by a column that may be null, an
UPDATE of 10 000 rows at a time, each in a transaction, and a column that is not null in the end
(SQLite copies the table for it). "Index of users" and "of amounts": revisions 0005 and 0006, which
both ways need. "Look": revision 0007, which looks for consumers without allocations; "removal": the
same where nobody has any, so that each of the consumers is removed. Times are in seconds. Beside them is the most memory that Python had at once
meanwhile, in MiB: what is the same for few consumers and for many does not depend on them.
"""

import argparse
import contextlib
import dataclasses
import functools
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from benchmarks import consumer_usages, trait_queries
from benchmarks.consumer_usages import PROJECT
from services import databases

from steelyard.consumers import ConsumerStore, model

CONSUMERS = 1_000_000
BATCH = 10_000
REVISIONS = ["0004", "0005", "0006", "0007"]


@dataclasses.dataclass(frozen=True)
class Taken:
    seconds: float
    peak: float

    def __str__(self) -> str:
        return f"{self.seconds:8.2f} {self.peak:4.1f}"


@dataclasses.dataclass(frozen=True)
class Row:
    database: str
    consumers: int
    steps: dict[str, Taken]
    batches: Taken
    removal: Taken

    @property
    def ratio(self) -> float:
        """How many times faster one statement is than batches."""
        return self.batches.seconds / self.steps["0004"].seconds

    def __str__(self) -> str:
        one, users, amounts, look = (self.steps[revision] for revision in REVISIONS)
        faster = "one statement" if self.ratio > 1 else "batches"
        return (
            f"{self.database:>10} | {self.consumers:9} | {one} | {self.batches} | "
            f"{faster:13} {self.ratio:6.1f}x | {users} | {amounts} | "
            f"{look} | {self.removal}"
        )


HEADER = (
    f"{'database':>10} | {'consumers':>9} | {'one statement':>13} | {'batches':>13} | "
    f"{'faster':13} {'ratio':>7} | {'index of users':>13} | {'of amounts':>13} | "
    f"{'look':>13} | {'removal':>13}"
)


@contextlib.contextmanager
def without_types(url: sa.URL, consumers: int) -> Iterator[sa.Engine]:
    """A database whose next step is to give types to its consumers."""
    with trait_queries.database(url) as engine:
        ConsumerStore(engine).upgrade("0002")
        with consumer_usages.numbers(engine, consumers) as connection:
            consumer_usages.insert_consumers(connection)
        consumer_usages.tidy(engine, "consumers", "allocations")
        ConsumerStore(engine).upgrade("0003")
        yield engine


def measure(work: Callable[[], None]) -> Taken:
    tracemalloc.start()
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Taken(seconds, peak / 2**20)


def in_steps(url: sa.URL, consumers: int) -> dict[str, Taken]:
    with without_types(url, consumers) as engine:
        store = ConsumerStore(engine)
        taken = {
            revision: measure(functools.partial(store.upgrade, revision)) for revision in REVISIONS
        }
        assert store.count(PROJECT, consumer_type="UNKNOWN") == consumers
    return taken


def removal(url: sa.URL, consumers: int) -> Taken:
    with without_types(url, consumers) as engine:
        store = ConsumerStore(engine)
        store.upgrade("0006")
        with engine.begin() as connection:
            connection.execute(sa.delete(model.allocations))
        consumer_usages.tidy(engine, "consumers", "allocations")
        taken = measure(store.upgrade)
        assert store.types() == {"UNKNOWN": 0}
    return taken


def in_batches(url: sa.URL, consumers: int) -> Taken:
    with without_types(url, consumers) as engine:
        taken = measure(lambda: add_in_batches(engine))
        assert ConsumerStore(engine).count(PROJECT, consumer_type="UNKNOWN") == consumers
    return taken


def add_in_batches(engine: sa.Engine) -> None:
    kind = model.consumers.c.consumer_type_id
    number = model.consumers.c.id
    with engine.begin() as connection:
        with altered(connection, "consumers") as table:
            table.add_column(sa.Column(kind.name, sa.Integer))
        last = connection.execute(sa.select(sa.func.max(number))).scalar_one()
        unknown = connection.execute(sa.select(model.consumer_types.c.id)).scalar_one()
    for first in range(1, last + 1, BATCH):
        there = number.between(first, first + BATCH - 1)
        with engine.begin() as connection:
            connection.execute(sa.update(model.consumers).where(there).values({kind: unknown}))
    with engine.begin() as connection, altered(connection, "consumers") as table:
        table.alter_column(kind.name, nullable=False, existing_type=sa.Integer())


def altered(connection: sa.Connection, table: str) -> contextlib.AbstractContextManager[Any]:
    return Operations(MigrationContext.configure(connection)).batch_alter_table(table)


def run(urls: Iterable[sa.URL], sizes: Iterable[int], show: Callable[[str], None]) -> list[Row]:
    measured = []
    show(HEADER)
    for url in urls:
        for consumers in sizes:
            steps = in_steps(url, consumers)
            batches = in_batches(url, consumers)
            gone = removal(url, consumers)
            measured.append(Row(url.get_backend_name(), consumers, steps, batches, gone))
            show(str(measured[-1]))
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--consumers", type=int, default=CONSUMERS)
    asked = parser.parse_args()
    servers = [sa.make_url("sqlite://"), *(databases.url(server) for server in databases.DEFAULTS)]
    sizes = [asked.consumers // 100, asked.consumers]
    run(servers, sizes, lambda line: print(line, flush=True))  # noqa: T201
