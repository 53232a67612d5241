"""Trait queries in SQL compared with Placement's own, on the same data in the same databases.

Each provider has 20 traits from a vocabulary of 500, in the tables that Placement creates, so 4 %
of the providers have a given trait. "Records" selects the eight columns of a provider that Placement
selects, through its two joins, and builds Placement's objects from them. "Placement" calls
Placement's get_all_by_filters. "Without" and "with" are queries without and with forbidden traits.
"Ids" selects only the ids. Times are the best of several, in ms. The plans are those of "ids" with
forbidden traits.
"""

import argparse
import contextlib
import dataclasses
import gc
import pathlib
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db.sqlalchemy import enginefacade
from placement import conf as placement_conf
from placement import context as placement_context
from placement import db_api
from placement.db.sqlalchemy import migration, models
from placement.objects import resource_provider

from steelyard.traits import TraitQuery, sql
from support.services import databases

PROVIDERS = 100_000
TRAITS_EACH = 20
VOCABULARY = [f"CUSTOM_T{number:03}" for number in range(500)]
BATCH = 10_000
QUERIES = {
    "one required, one forbidden": "CUSTOM_T007,!CUSTOM_T011",
    "one required, three forbidden": "CUSTOM_T007,!CUSTOM_T011,!CUSTOM_T012,!CUSTOM_T013",
    "any of five, three forbidden": "!CUSTOM_T011,!CUSTOM_T012,!CUSTOM_T013"
    "&in:CUSTOM_T020,CUSTOM_T021,CUSTOM_T022,CUSTOM_T023,CUSTOM_T024",
    # Few providers have all required traits, but many have a forbidden one.
    "three required, ten forbidden": "CUSTOM_T007,CUSTOM_T008,CUSTOM_T009,"
    + ",".join(f"!{name}" for name in VOCABULARY[30:40]),
    # A third of the providers has traits of both groups. Placement passes all ids back to the
    # database, and psycopg at most 65535 of them.
    "any of twenty twice, three forbidden": "!CUSTOM_T011,!CUSTOM_T012,!CUSTOM_T013"
    + "".join(f"&in:{','.join(VOCABULARY[n : n + 20])}" for n in (100, 120)),
    "one forbidden": "!CUSTOM_T011",
    "three forbidden": "!CUSTOM_T011,!CUSTOM_T012,!CUSTOM_T013",
}
PROVIDER = models.ResourceProvider.__table__.alias("rp")
ROOT = models.ResourceProvider.__table__.alias("root_rp")
PARENT = models.ResourceProvider.__table__.alias("parent_rp")


def fill(engine: sa.Engine, providers: int) -> None:
    chance = random.Random(1)
    migration.create_schema(engine)
    traits = range(1, len(VOCABULARY) + 1)
    with engine.begin() as connection:
        insert(
            connection,
            models.Trait,
            ({"id": number, "name": name} for number, name in zip(traits, VOCABULARY, strict=True)),
        )
        insert(
            connection,
            models.ResourceProvider,
            (
                {
                    "id": number,
                    "uuid": f"{number:036}",
                    "name": f"rp{number}",
                    "root_provider_id": number,
                }
                for number in range(1, providers + 1)
            ),
        )
        insert(
            connection,
            models.ResourceProviderTrait,
            (
                {"resource_provider_id": number, "trait_id": trait}
                for number in range(1, providers + 1)
                for trait in chance.sample(traits, TRAITS_EACH)
            ),
        )
    tidy(engine)


def insert(connection: sa.Connection, model: Any, rows: Iterable[dict[str, Any]]) -> None:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            connection.execute(sa.insert(model.__table__), batch)
            batch = []
    if batch:
        connection.execute(sa.insert(model.__table__), batch)


def tidy(engine: sa.Engine) -> None:
    """Update the statistics, as a database does some time after it was filled."""
    tables = "resource_providers, traits, resource_provider_traits"
    commands = {"postgresql": f"VACUUM ANALYZE {tables}", "mysql": f"ANALYZE TABLE {tables}"}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(commands.get(engine.dialect.name, "ANALYZE"))


def ids(query: TraitQuery) -> sa.Select[Any]:
    return sa.select(PROVIDER.c.id).where(sql.condition(query, PROVIDER.c.id))


def records(query: TraitQuery) -> sa.Select[Any]:
    """Return a select of the columns of a provider that Placement selects."""
    joined = PROVIDER.join(ROOT, PROVIDER.c.root_provider_id == ROOT.c.id).outerjoin(
        PARENT, PROVIDER.c.parent_provider_id == PARENT.c.id
    )
    columns = ["id", "uuid", "name", "generation", "updated_at", "created_at"]
    return (
        sa.select(
            *(PROVIDER.c[column] for column in columns),
            ROOT.c.uuid.label("root_provider_uuid"),
            PARENT.c.uuid.label("parent_provider_uuid"),
        )
        .select_from(joined)
        .where(sql.condition(query, PROVIDER.c.id))
    )


def rows(context: Any, statement: sa.Select[Any]) -> list[Any]:
    with db_api.placement_context_manager.reader.using(context) as session:
        return list(session.execute(statement).fetchall())


def objects(context: Any, query: TraitQuery) -> list[Any]:
    return [
        resource_provider.ResourceProvider(context, **row._mapping)
        for row in rows(context, records(query))
    ]


def placements(context: Any, query: TraitQuery) -> list[Any]:
    groups = [{trait} for trait in query.required] + [set(group) for group in query.any_of]
    filters = {"required_traits": groups, "forbidden_traits": set(query.forbidden)}
    return list(resource_provider.get_all_by_filters(context, filters))


def plan(engine: sa.Engine, statement: sa.Select[Any]) -> list[str]:
    explain = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN"
    literal = statement.compile(engine, compile_kwargs={"literal_binds": True})
    with engine.connect() as connection:
        # A percent sign would be a parameter; there is none in these statements.
        return [
            " ".join(map(str, row)) for row in connection.exec_driver_sql(f"{explain} {literal}")
        ]


@dataclasses.dataclass(frozen=True)
class Row:
    database: str
    query: str
    providers: int
    ids_without: float
    ids_with: float
    without: float
    with_forbidden: float
    placement: float

    def __str__(self) -> str:
        return (
            f"{self.database:>10} | {self.query:36} | {self.providers:8} | "
            f"{self.ids_without:7.1f} {self.ids_with:7.1f} {self.ids_with / self.ids_without:5.2f}x | "
            f"{self.without:7.1f} {self.with_forbidden:7.1f} {self.with_forbidden / self.without:5.2f}x | "
            f"{self.placement:9.1f} {self.placement / self.with_forbidden:6.1f}x"
        )


HEADER = (
    f"{'database':>10} | {'query':36} | {'selected':>8} | {'ids: w/o':>8} {'with':>6} {'ratio':>6} | "
    f"{'rec.: w/o':>9} {'with':>5} {'ratio':>6} | {'Placement':>9} {'ratio':>7}"
)


def best(works: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """Return the best time of each work; they take turns, so that noise affects all of them."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, times in zip(works, taken, strict=True):
            gc.collect()
            gc.disable()  # collections would add noise
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
            gc.enable()
    return [min(times) * 1e3 for times in taken]


def measure(engine: sa.Engine, context: Any, name: str, query: TraitQuery, repeats: int) -> Row:
    without = TraitQuery(query.required, frozenset(), query.any_of)
    ours = {provider.id for provider in objects(context, query)}
    assert ours == {provider.id for provider in placements(context, query)}
    assert ours == {row.id for row in rows(context, ids(query))}
    works = [
        lambda: rows(context, ids(without)),
        lambda: rows(context, ids(query)),
        lambda: objects(context, without),
        lambda: objects(context, query),
        lambda: placements(context, query),
    ]
    return Row(engine.dialect.name, name, len(ours), *best(works, repeats))


@contextlib.contextmanager
def placement_on(engine: sa.Engine) -> Iterator[Any]:
    """Yield a request context of Placement on this database."""
    own = enginefacade.transaction_context()
    own.configure(connection=engine.url.render_as_string(hide_password=False))
    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    back = db_api.placement_context_manager.patch_factory(own)
    try:
        yield placement_context.RequestContext(config=conf)
    finally:
        back()
        own.dispose_pool()


@contextlib.contextmanager
def database(url: sa.URL) -> Iterator[sa.Engine]:
    """Yield an engine of a new database on the server, or of a new SQLite file."""
    if url.get_backend_name() != "sqlite":
        with databases.own_database(url) as engine:
            yield engine
        return
    with tempfile.TemporaryDirectory() as directory:
        engine = sa.create_engine(url.set(database=str(pathlib.Path(directory, "placement.db"))))
        yield engine
        engine.dispose()


def run(
    urls: Iterable[sa.URL], providers: int, repeats: int, show: Callable[[str], None]
) -> list[Row]:
    measured = []
    for url in urls:
        with database(url) as engine, placement_on(engine) as context:
            show(f"{engine.dialect.name}: {providers} providers, {TRAITS_EACH} traits each")
            fill(engine, providers)
            for name, text in QUERIES.items():
                query = TraitQuery.parse(text)
                measured.append(measure(engine, context, name, query, repeats))
                show(f"\n{name}: {query}")
                for line in plan(engine, ids(query)):
                    show(f"    {line}")
            show("")
    show(HEADER)
    for row in measured:
        show(str(row))
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--providers", type=int, default=PROVIDERS)
    parser.add_argument("--repeats", type=int, default=10)
    asked = parser.parse_args()
    servers = [sa.make_url("sqlite://"), *(databases.url(server) for server in databases.DEFAULTS)]
    run(servers, asked.providers, asked.repeats, lambda line: print(line, flush=True))  # noqa: T201
