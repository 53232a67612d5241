"""What it costs to reconcile many instances, against the backend in memory.

"New": the backend has 20 tags of each instance, and the database none. "Agreeing": the same once
more, when there is nothing to do. "Gone": the backend has none of them any more. Beside the
milliseconds for each instance stand the statements that the database was sent for each 500 of
them, which are looked at and written together, and the most memory that Python had at once
meanwhile, in MiB. All three are to be the same for few instances and for many.
"""

import argparse
import contextlib
import dataclasses
import itertools
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator

import sqlalchemy as sa
from benchmarks.trait_queries import database
from services import databases
from tag_databases import upgrade

from steelyard.tags import TagService, TagStore, encode
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.model import instances
from steelyard.tags.names import DEFAULT_PREFIXES
from steelyard.tags.plans import Action

SERVERS = [1_000, 10_000, 100_000]
TAGS = 20
PAGE = 500


@dataclasses.dataclass(frozen=True)
class Row:
    database: str
    servers: int
    what: str
    actions: int
    seconds: float
    statements: int
    peak: float = 0.0

    def __str__(self) -> str:
        each = 1000 * self.seconds / self.servers
        pages = -(-self.servers // PAGE)
        return (
            f"{self.database:>10} | {self.servers:7} | {self.what:8} | {self.actions:8} | "
            f"{each:12.3f} | {self.statements:10} | {self.statements / pages:13.1f} | "
            f"{self.peak:5.1f}"
        )


HEADER = (
    f"{'database':>10} | {'servers':>7} | {'':8} | {'changed':>8} | {'ms a server':>12} | "
    f"{'statements':>10} | {'for each 500':>13} | {'MiB':>5}"
)


@contextlib.contextmanager
def counted(engine: sa.Engine) -> Iterator[list[str]]:
    """The statements that the database is sent, and no commits."""
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
    """So many instances without tags; what the backend calls them."""
    upgrade(TagStore(engine))
    names = [f"vm-{number:06}" for number in range(servers)]
    rows = [{"id": name, "name": name, "project": "p", "user": "u"} for name in names]
    with engine.begin() as connection:
        connection.execute(sa.insert(instances), rows)
    return names


def measure(engine: sa.Engine, service: TagService, servers: int, what: str) -> Row:
    with counted(engine) as seen:
        begun = time.perf_counter()
        changed = reconcile(service)
        seconds = time.perf_counter() - begun
    return Row(engine.dialect.name, servers, what, changed, seconds, len(seen))


def peak(service: TagService) -> float:
    """Apart from the times: it is slow to be watched."""
    tracemalloc.start()
    reconcile(service)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


def reconcile(service: TagService) -> int:
    """How many tags were changed."""
    return sum(
        step.action is not Action.LEFT
        for plans in service.reconciliation().carried_out()
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
            for what, there in rounds.items():
                backend.adopt(dict.fromkeys(names, there))
                rows.append(measure(engine, service, servers, what))
            for there in rounds.values():
                backend.adopt(dict.fromkeys(names, there))
                peaks.append(peak(service))
            for row, most in zip(rows, peaks, strict=True):
                measured.append(dataclasses.replace(row, peak=most))
                show(str(measured[-1]))
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, nargs="+", default=SERVERS)
    asked = parser.parse_args()
    servers = [sa.make_url("sqlite://"), *(databases.url(server) for server in databases.DEFAULTS)]
    run(servers, asked.servers, lambda line: print(line, flush=True))  # noqa: T201
