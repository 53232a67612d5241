"""The cost of reconciling many instances, against the backend in memory.

There are three rounds. "new": the backend has 20 tags of each instance, the database has none.
"agreeing": both have the same tags. "gone": the backend has none, the database has 20. The table
shows the milliseconds per instance, the SQL statements per page of 500 instances, and the peak
memory of Python in MiB; all three should be the same for few instances and for many.
"""

import argparse
import contextlib
import dataclasses
import itertools
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator

import sqlalchemy as sa

from benchmarks.traits.sql import database
from steelyard.tags import TagService, TagStore, encode
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.database.model import instances
from steelyard.tags.names import DEFAULT_PREFIXES
from steelyard.tags.plans import PlanAction
from support.services import databases
from support.tags.databases import upgrade

SERVERS = [1_000, 10_000, 100_000]
TAGS = 20
PAGE = 500


@dataclasses.dataclass(frozen=True)
class Row:
    database: str
    servers: int
    phase: str
    actions: int
    seconds: float
    statements: int
    peak: float = 0.0

    def __str__(self) -> str:
        each = 1000 * self.seconds / self.servers
        pages = -(-self.servers // PAGE)
        return (
            f"{self.database:>10} | {self.servers:7} | {self.phase:8} | {self.actions:8} | "
            f"{each:12.3f} | {self.statements:10} | {self.statements / pages:13.1f} | "
            f"{self.peak:5.1f}"
        )


HEADER = (
    f"{'database':>10} | {'servers':>7} | {'round':8} | {'changed':>8} | {'ms/server':>12} | "
    f"{'statements':>10} | {'per 500':>13} | {'MiB':>5}"
)


@contextlib.contextmanager
def counted(engine: sa.Engine) -> Iterator[list[str]]:
    """Yield a list that collects the statements sent to the database, without commits."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
            seen.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


def fill(engine: sa.Engine, servers: int) -> list[str]:
    """Create instances without tags and return their names at the backend."""
    upgrade(TagStore(engine))
    names = [f"vm-{number:06}" for number in range(servers)]
    rows = [{"id": name, "name": name, "project": "p", "user": "u"} for name in names]
    with engine.begin() as connection:
        connection.execute(sa.insert(instances), rows)
    return names


def measure(engine: sa.Engine, service: TagService, servers: int, phase: str) -> Row:
    with counted(engine) as seen:
        started = time.perf_counter()
        changed = reconcile(service)
        seconds = time.perf_counter() - started
    return Row(engine.dialect.name, servers, phase, changed, seconds, len(seen))


def peak(service: TagService) -> float:
    """Return the peak memory in MiB, measured apart from the times because tracing is slow."""
    tracemalloc.start()
    reconcile(service)
    _, largest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return largest / 2**20


def reconcile(service: TagService) -> int:
    """Reconcile all instances and return the number of changed tags."""
    return sum(
        step.action is not PlanAction.LEFT
        for plans in service.jobs.reconciliation().applied()
        for plan in plans
        for step in plan.steps
    )


def run(urls: Iterable[sa.URL], sizes: Iterable[int], show: Callable[[str], None]) -> list[Row]:
    measured = []
    tags = [encode(f"tag {number}", DEFAULT_PREFIXES.user) for number in range(TAGS)]
    rounds = {"new": tags, "agreeing": tags, "gone": []}
    show(HEADER)
    for url, servers in itertools.product(urls, sizes):
        with database(url) as engine:
            names = fill(engine, servers)
            backend = MemoryBackend()
            service = TagService(TagStore(engine), backend)
            rows, peaks = [], []
            for phase, there in rounds.items():
                backend.adopt(dict.fromkeys(names, there))
                rows.append(measure(engine, service, servers, phase))
            for there in rounds.values():
                backend.adopt(dict.fromkeys(names, there))
                peaks.append(peak(service))
            for row, largest in zip(rows, peaks, strict=True):
                measured.append(dataclasses.replace(row, peak=largest))
                show(str(measured[-1]))
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, nargs="+", default=SERVERS)
    options = parser.parse_args()
    servers = [sa.make_url("sqlite://"), *(databases.url(server) for server in databases.DEFAULTS)]
    run(servers, options.servers, lambda line: print(line, flush=True))  # noqa: T201
