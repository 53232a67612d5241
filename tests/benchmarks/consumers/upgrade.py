"""The upgrade of a million consumers without types, compared with one in batches.

The databases are filled at revision 0002.

* "One statement": revision 0004, which adds the column of types with a constant default.
* "Batches": the same with a nullable column, an UPDATE of 10 000 rows per transaction, and a final
  NOT NULL, for which SQLite copies the table.
* "Key": revisions 0005 and 0006, the index and the foreign key of the column.
* "Index of users", "of amounts" and "of providers": revisions 0007, 0008 and 0010.
* "Search": revision 0009, which searches for consumers without allocations.
* "Removal": the same where no consumer has allocations, so that all of them are removed.

Times are in seconds. Beside them is the peak of Python's memory in MiB; it should not grow with the
number of consumers.
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

from benchmarks.consumers import usages as consumer_usages
from benchmarks.consumers.usages import PROJECT
from benchmarks.traits import sql as trait_queries
from steelyard.consumers import ConsumerStore, model
from support.services import databases

CONSUMERS = 1_000_000
BATCH = 10_000
REVISIONS = ["0004", "0006", "0007", "0008", "0009", "0010"]


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
        """The time of the batches divided by that of one statement."""
        return self.batches.seconds / self.steps["0004"].seconds

    def __str__(self) -> str:
        one, key, users, amounts, search, providers = map(self.steps.__getitem__, REVISIONS)
        faster = "one statement" if self.ratio > 1 else "batches"
        return (
            f"{self.database:>10} | {self.consumers:9} | {one} | {self.batches} | "
            f"{faster:13} {self.ratio:6.1f}x | {key} | {users} | {amounts} | "
            f"{providers} | {search} | {self.removal}"
        )


HEADER = (
    f"{'database':>10} | {'consumers':>9} | {'one statement':>13} | {'batches':>13} | "
    f"{'faster':13} {'ratio':>7} | {'key':>13} | {'index of users':>13} | {'of amounts':>13} | "
    f"{'of providers':>13} | {'search':>13} | {'removal':>13}"
)


@contextlib.contextmanager
def without_types(url: sa.URL, consumers: int) -> Iterator[sa.Engine]:
    """Yield an engine on a database that is one revision before the types of consumers."""
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
        store.upgrade("0008")
        with engine.begin() as connection:
            connection.execute(sa.delete(model.allocations))
        consumer_usages.tidy(engine, "consumers", "allocations")
        taken = measure(functools.partial(store.upgrade, "0009"))
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
