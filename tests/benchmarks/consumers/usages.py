"""Usages and quota checks by consumer type, compared with Placement's on the same data and servers.

One project has all consumers, each with three resource classes on one provider. 90 % of them are
INSTANCE, 9 % MIGRATION and 1 % UNKNOWN, and they belong to seven users. "Placement" is the function
that its handler of GET /usages calls at microversion 1.38, on tables of its migrations. "Ours" is
ConsumerStore.usages or QuotaUsage, the callback of oslo.limit. The benchmark checks that both answers are equal. Times are medians in ms,
followed by the number of statements; with two statements, a concurrent write may affect only one.
"""

import argparse
import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from placement import db_api
from placement.db.sqlalchemy import migration, models
from placement.objects import resource_class, usage

from benchmarks.traits import sql as trait_queries
from steelyard.consumers import ConsumerStore, QuotaUsage, model
from support.services import databases

CONSUMERS = 1_000_000
PROVIDERS = 307
USERS = 7
PATIENCE = 60  # seconds, after which a query is not repeated
PROJECT = "p"
QUERIES: dict[str, tuple[str, str | None, str | None]] = {
    "by type": (PROJECT, None, None),
    "by type, of a user": (PROJECT, "u1", None),
    "INSTANCE": (PROJECT, None, "INSTANCE"),
    "all": (PROJECT, None, "all"),
}
LIMITS = {"servers": "INSTANCE"}
# The limits that a quota check counts, and the query that it takes with Placement.
QUOTAS: dict[str, tuple[list[str], tuple[str, str | None, str | None]]] = {
    "quota of servers": (["servers"], (PROJECT, None, "INSTANCE")),
    "quota of both": (["servers", "class:VCPU"], (PROJECT, None, None)),
}
NUMBERS = sa.Table(
    "numbers", sa.MetaData(), sa.Column("n", sa.BigInteger, primary_key=True, autoincrement=False)
)
N = NUMBERS.c.n
RESOURCES = {"VCPU": 1 + N % 4, "MEMORY_MB": 512 * (1 + N % 16), "DISK_GB": 10 + N % 50}


@contextlib.contextmanager
def numbers(engine: sa.Engine, count: int) -> Iterator[sa.Connection]:
    """Yield a transaction with a table of the numbers below the count, to compute rows from."""
    NUMBERS.create(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(NUMBERS).values(n=0))
        there = 1
        while there < count:
            more = sa.select(N + there).where(N + there < count)
            connection.execute(sa.insert(NUMBERS).from_select(["n"], more))
            there *= 2
        yield connection
    NUMBERS.drop(engine)


def identifier(number: sa.ColumnElement[int], kind: str) -> sa.ColumnElement[str]:
    """Return a UUID for each number; like real ones, the UUIDs are not sorted."""
    scattered = 10_000_000 + number * 48_271 % 89_999_999
    return sa.cast(scattered, sa.String(36)) + f"-0000-4000-{kind}000-000000000000"


def typed(instance: Any, migration: Any, unknown: Any) -> sa.ColumnElement[Any]:
    return sa.case((N % 100 < 90, instance), (N % 100 < 99, migration), else_=unknown)


def insert(connection: sa.Connection, table: sa.Table, columns: dict[str, Any]) -> None:
    """Insert a row for each number."""
    rows = sa.select(*columns.values()).select_from(NUMBERS).order_by(N)
    connection.execute(sa.insert(table).from_select(list(columns), rows))


def insert_used(connection: sa.Connection, table: sa.Table, columns: dict[str, Any]) -> None:
    """Insert a row for each number and resource class, sorted by number.

    The last column is the class, with a function that maps its name to the stored value.
    """
    *others, (column, stored) = columns.items()
    rows = sa.union_all(
        *(
            sa.select(
                N,
                *(value.label(key) for key, value in others),
                sa.literal(stored(name)).label(column),
                amount.label("used"),
            )
            for name, amount in RESOURCES.items()
        )
    ).subquery()
    kept = [*columns, "used"]
    ordered = sa.select(*(rows.c[key] for key in kept)).order_by(rows.c.n, rows.c[column])
    connection.execute(sa.insert(table).from_select(kept, ordered))


def insert_consumers(connection: sa.Connection, **more: Any) -> None:
    """Insert consumers into the store's tables; ``more`` has columns of later revisions."""
    columns = {
        "id": N + 1,
        "uuid": identifier(N, "8"),
        "generation": sa.literal(1),
        "project": sa.literal(PROJECT),
        "user": "u" + sa.cast(N % USERS, sa.String(9)),
    }
    insert(connection, model.consumers, columns | more)
    insert_used(
        connection,
        model.allocations,
        {
            "consumer_id": N + 1,
            "resource_provider": identifier(N % PROVIDERS, "9"),
            "resource_class": str,
        },
    )


def fill_ours(engine: sa.Engine, count: int) -> None:
    ConsumerStore(engine).upgrade()
    with numbers(engine, count) as connection:
        kinds = model.consumer_types
        connection.execute(sa.insert(kinds), [{"name": "INSTANCE"}, {"name": "MIGRATION"}])
        ids = dict(connection.execute(sa.select(kinds.c.name, kinds.c.id)).tuples().all())
        kind = typed(ids["INSTANCE"], ids["MIGRATION"], ids["UNKNOWN"])
        insert_consumers(connection, consumer_type_id=kind)
    tidy(engine, "consumers", "allocations", "consumer_types")


def fill_placements(engine: sa.Engine, context: Any, count: int) -> None:
    migration.upgrade("head")
    resource_class._RESOURCE_CLASSES_SYNCED = False
    resource_class.ensure_sync(context)
    classes = {name: context.rc_cache.id_from_string(name) for name in RESOURCES}
    with numbers(engine, count) as connection:
        insert_names(connection, models.ConsumerType, "name", ["INSTANCE", "MIGRATION"])
        insert_names(connection, models.Project, "external_id", [PROJECT])
        insert_names(connection, models.User, "external_id", [f"u{n}" for n in range(USERS)])
        insert(
            connection,
            models.Consumer.__table__,
            {
                "id": N + 1,
                "uuid": identifier(N, "8"),
                "generation": sa.literal(1),
                "project_id": sa.literal(1),
                "user_id": N % USERS + 1,
                "consumer_type_id": typed(1, 2, None),
            },
        )
        insert_used(
            connection,
            models.Allocation.__table__,
            {
                "consumer_id": identifier(N, "8"),
                "resource_provider_id": N % PROVIDERS + 1,
                "resource_class_id": classes.__getitem__,
            },
        )
    tidy(engine, "consumers", "allocations", "consumer_types")


def insert_names(connection: sa.Connection, table: Any, column: str, names: list[str]) -> None:
    """Insert rows with these names, numbered from 1."""
    rows = [{"id": number, column: name} for number, name in enumerate(names, 1)]
    connection.execute(sa.insert(table.__table__), rows)


def tidy(engine: sa.Engine, *tables: str) -> None:
    """Update the statistics, as databases do automatically some time later."""
    named = ", ".join(tables)
    commands = {"postgresql": f"VACUUM ANALYZE {named}", "mysql": f"ANALYZE TABLE {named}"}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(commands.get(engine.dialect.name, "ANALYZE"))


def placements(context: Any, project: str, user: str | None, kind: str | None) -> dict[str, Any]:
    """Return the body of Placement's answer."""
    answer: dict[str, dict[str, int]] = {}
    for found in usage.get_by_consumer_type(context, project, user, kind):
        group = answer.setdefault(found.consumer_type, {"consumer_count": found.consumer_count})
        group[found.resource_class] = found.usage
    return named(answer)


def named(found: dict[str, Any]) -> dict[str, Any]:
    """Return the body of an answer with Placement's usages.

    Placement calls the type of consumers without one "unknown".
    """
    return {"usages": {kind.replace("unknown", "UNKNOWN"): found[kind] for kind in found}}


def placements_quota(context: Any, names: list[str], query: Any) -> dict[str, int]:
    """Return the usage of the limits from Placement's answer."""
    groups = placements(context, *query)["usages"]
    used = {
        "servers": groups["INSTANCE"]["consumer_count"],
        "class:VCPU": sum(group["VCPU"] for group in groups.values()),
    }
    return {name: used[name] for name in names}


def correct(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> tuple[str, Any]:
    """Rewrite Placement's statements for PostgreSQL.

    PostgreSQL rejects statements that select columns which they do not group by.
    """
    selected, grouped = "SELECT allocations.resource_class_id", "GROUP BY consumer_types.name"
    if statement.endswith(grouped):
        return statement.replace(selected, "SELECT min(allocations.resource_class_id)"), parameters
    if statement.endswith("consumers.consumer_type_id"):
        return f"{statement}, consumer_types.name", parameters
    return statement, parameters


@dataclasses.dataclass(frozen=True)
class Measured:
    """The answer to a query, its duration and its number of statements."""

    answer: dict[str, Any]
    milliseconds: float
    statements: int


def ask(engine: sa.Engine, query: Callable[[], dict[str, Any]], repeats: int) -> Measured:
    statements: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        statements.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    taken: list[float] = []
    while len(taken) < repeats and sum(taken) < PATIENCE:
        statements.clear()
        start = time.perf_counter()
        answer = query()
        taken.append(time.perf_counter() - start)
    sa.event.remove(engine, "before_cursor_execute", note)
    selects = [each for each in statements if each.startswith("SELECT")]
    return Measured(answer, statistics.median(taken) * 1e3, len(selects))


@dataclasses.dataclass(frozen=True)
class Row:
    database: str
    query: str
    ours: Measured
    placement: Measured

    def __str__(self) -> str:
        ours, peer = self.ours, self.placement
        return (
            f"{self.database:>10} | {self.query:18} | "
            f"{ours.milliseconds:9.1f} {ours.statements:6} | "
            f"{peer.milliseconds:9.1f} {peer.statements:6} | "
            f"{peer.milliseconds / ours.milliseconds:6.2f}x"
        )


HEADER = (
    f"{'database':>10} | {'query':18} | {'ours':>9} {'stmts':>6} | "
    f"{'Placement':>9} {'stmts':>6} | {'ratio':>7}"
)


def measure(engine: sa.Engine, context: Any, name: str, repeats: int) -> Row:
    store, own = ConsumerStore(engine), db_api.get_placement_engine()
    if name in QUOTAS:
        names, query = QUOTAS[name]
        usage = QuotaUsage(store, LIMITS)
        ours = ask(engine, lambda: usage(PROJECT, names), repeats)
        peer = ask(own, lambda: placements_quota(context, names, query), repeats)
    else:
        query = QUERIES[name]
        ours = ask(engine, lambda: store.usages(*query), repeats)
        peer = ask(own, lambda: placements(context, *query), repeats)
    assert ours.answer == peer.answer
    return Row(engine.dialect.name, name, ours, peer)


def run(
    urls: Iterable[sa.URL], consumers: int, repeats: int, show: Callable[[str], None]
) -> list[Row]:
    measured = []
    show(HEADER)
    for url in urls:
        with (
            trait_queries.database(url) as engine,
            trait_queries.database(url) as theirs,
            trait_queries.placement_on(theirs) as context,
        ):
            fill_ours(engine, consumers)
            fill_placements(theirs, context, consumers)
            if engine.dialect.name == "postgresql":
                own = db_api.get_placement_engine()
                sa.event.listen(own, "before_cursor_execute", correct, retval=True)
            for name in [*QUERIES, *QUOTAS]:
                measured.append(measure(engine, context, name, repeats))
                show(str(measured[-1]))
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--consumers", type=int, default=CONSUMERS)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    servers = [sa.make_url("sqlite://"), *(databases.url(server) for server in databases.DEFAULTS)]
    run(servers, asked.consumers, asked.repeats, lambda line: print(line, flush=True))  # noqa: T201
