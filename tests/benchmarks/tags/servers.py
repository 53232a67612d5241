"""The cost of registering and listing many servers.

There are three rounds. "register": all instances of the backend are registered. "list": all are
listed with three tags each, in pages of 1000. "rare tag": those with a tag that every hundredth has
are listed. The table shows the milliseconds per server, the SQL statements per part (500 servers
that are registered, or a page), and the peak memory of Python per round in MiB.
"""

import argparse
import dataclasses
import itertools
import time
import tracemalloc
from collections.abc import Callable, Iterable

import sqlalchemy as sa

from benchmarks.tags.reconciliation import counted
from benchmarks.traits.sql import database
from steelyard.tags import TagFilter, TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.database.listing import LARGEST_PAGE, Page
from steelyard.tags.database.model import instances, tags
from steelyard.tags.names import ANY_TAGS, DEFAULT_PREFIXES
from support.services import databases
from support.tags.databases import upgrade

SERVERS = [1_000, 10_000, 100_000]
USER = DEFAULT_PREFIXES.user
RARE = TagFilter(all_of=["rare"])
EVERY = 100


@dataclasses.dataclass(frozen=True)
class Row:
    database: str
    servers: int
    phase: str
    found: int
    parts: int
    seconds: float
    statements: int
    peak: float

    def __str__(self) -> str:
        return (
            f"{self.database:>10} | {self.servers:7} | {self.phase:8} | {self.found:7} | "
            f"{1000 * self.seconds / max(self.found, 1):9.3f} | "
            f"{self.statements / self.parts:13.1f} | {self.peak:5.1f}"
        )


HEADER = (
    f"{'database':>10} | {'servers':>7} | {'round':8} | {'found':>7} | {'ms/server':>9} | "
    f"{'per part':>13} | {'MiB':>5}"
)


def register(service: TagService) -> list[int]:
    """Register all instances of the backend, and return the numbers of new ones by part."""
    inventory = service.inventory
    return [len(part.new) for part in inventory.register(inventory.names(), "p", "u")]


def add_tags(engine: sa.Engine) -> None:
    """Give each instance three tags, and every hundredth a rare one."""
    with engine.begin() as connection:
        numbers = connection.execute(sa.select(instances.c.number)).scalars().all()
        rows = [
            {"instance_id": number, "prefix": USER, "name": name, "status": "ACTIVE"}
            for number in numbers
            for name in ["a", "b", f"c{number % 97}", *(["rare"] if number % EVERY == 0 else [])]
        ]
        connection.execute(sa.insert(tags), rows)


def listed(service: TagService, wanted: TagFilter) -> list[int]:
    """List the instances that the filter accepts, and return the numbers by page."""
    sizes, after = [], ""
    while page := service.store.tagged(Page([USER], after=after, wanted=wanted, project="p")):
        sizes.append(len(page))
        after = page[-1].instance.id
        if len(page) < LARGEST_PAGE:
            break
    return sizes


def measure(engine: sa.Engine, servers: int, phase: str, work: Callable[[], list[int]]) -> Row:
    tracemalloc.start()
    with counted(engine) as seen:
        started = time.perf_counter()
        sizes = work()
        seconds = time.perf_counter() - started
    _, largest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    name = engine.dialect.name
    return Row(name, servers, phase, sum(sizes), len(sizes), seconds, len(seen), largest / 2**20)


def run(urls: Iterable[sa.URL], sizes: Iterable[int], show: Callable[[str], None]) -> list[Row]:
    measured = []
    show(HEADER)
    for url, servers in itertools.product(urls, sizes):
        with database(url) as engine:
            upgrade(TagStore(engine))
            backend = MemoryBackend()
            backend.adopt({f"vm-{number:06}": () for number in range(servers)})
            service = TagService(TagStore(engine), backend)
            row = measure(engine, servers, "register", lambda: register(service))  # noqa: B023
            add_tags(engine)
            more = [
                measure(engine, servers, phase, lambda: listed(service, wanted))  # noqa: B023
                for phase, wanted in {"list": ANY_TAGS, "rare tag": RARE}.items()
            ]
            for each in (row, *more):
                measured.append(each)
                show(str(each))
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, nargs="+", default=SERVERS)
    options = parser.parse_args()
    servers = [sa.make_url("sqlite://"), *(databases.url(server) for server in databases.DEFAULTS)]
    run(servers, options.servers, lambda line: print(line, flush=True))  # noqa: T201
