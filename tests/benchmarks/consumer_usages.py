"""Usages by type of consumer beside Placement's own, on the same data in the same servers.

One project has all of the consumers, each with three resource classes on one provider: 90 % of them
are INSTANCE, 9 % MIGRATION and 1 % UNKNOWN, and seven users share them. "Placement": what its
handler of GET /usages at microversion 1.38 calls, on tables made by its own migrations. "Ours":
ConsumerStore.usages. Both answers are checked to be the same. Times are medians, in ms. Beside them
is the number of statements: where it is two, what others write in between is in one of them alone.
"""

import argparse
import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from benchmarks import trait_queries
from placement import db_api
from placement.db.sqlalchemy import migration, models
from placement.objects import resource_class, usage
from services import databases

from steelyard.consumers import ConsumerStore, model

CONSUMERS = 1_000_000
PROVIDERS = 307
USERS = 7
PATIENCE = 60  # seconds, after which a question is not asked again
PROJECT = "p"
QUESTIONS: dict[str, tuple[str, str | None, str | None]] = {
    "by type": (PROJECT, None, None),
    "by type, of a user": (PROJECT, "u1", None),
    "INSTANCE": (PROJECT, None, "INSTANCE"),
    "all": (PROJECT, None, "all"),
}
NUMBERS = sa.Table(
    "numbers", sa.MetaData(), sa.Column("n", sa.BigInteger, primary_key=True, autoincrement=False)
)
N = NUMBERS.c.n
RESOURCES = {"VCPU": 1 + N % 4, "MEMORY_MB": 512 * (1 + N % 16), "DISK_GB": 10 + N % 50}


@contextlib.contextmanager
def numbers(engine: sa.Engine, count: int) -> Iterator[sa.Connection]:
    """A transaction that finds a table of the numbers below the count, to compute rows from."""
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
    """A UUID for each number; like real ones, they come in no order."""
    scattered = 10_000_000 + number * 48_271 % 89_999_999
    return sa.cast(scattered, sa.String(36)) + f"-0000-4000-{kind}000-000000000000"


def typed(instance: Any, migration: Any, unknown: Any) -> sa.ColumnElement[Any]:
    return sa.case((N % 100 < 90, instance), (N % 100 < 99, migration), else_=unknown)


def insert(connection: sa.Connection, table: sa.Table, columns: dict[str, Any]) -> None:
    """A row for each number."""
    rows = sa.select(*columns.values()).select_from(NUMBERS).order_by(N)
    connection.execute(sa.insert(table).from_select(list(columns), rows))


def insert_used(connection: sa.Connection, table: sa.Table, columns: dict[str, Any]) -> None:
    """A row for each number and resource class, those of a number one after the other.

    The last of the columns is the class: it comes with what makes a name into what is stored.
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
    """Into our tables; what is not in every revision of them is said."""
    said = {
        "id": N + 1,
        "uuid": identifier(N, "8"),
        "generation": sa.literal(1),
        "project": sa.literal(PROJECT),
        "user": "u" + sa.cast(N % USERS, sa.String(9)),
    }
    insert(connection, model.consumers, said | more)
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
    """Numbered from 1 on."""
    rows = [{"id": number, column: name} for number, name in enumerate(names, 1)]
    connection.execute(sa.insert(table.__table__), rows)


def tidy(engine: sa.Engine, *tables: str) -> None:
    """What a database does by itself some time after it was filled."""
    named = ", ".join(tables)
    commands = {"postgresql": f"VACUUM ANALYZE {named}", "mysql": f"ANALYZE TABLE {named}"}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(commands.get(engine.dialect.name, "ANALYZE"))


def placements(context: Any, project: str, user: str | None, kind: str | None) -> dict[str, Any]:
    """The body of Placement's answer."""
    answer: dict[str, dict[str, int]] = {}
    for found in usage.get_by_consumer_type(context, project, user, kind):
        group = answer.setdefault(found.consumer_type, {"consumer_count": found.consumer_count})
        group[found.resource_class] = found.usage
    # Consumers of no type are called so by Placement.
    return {"usages": {kind.replace("unknown", "UNKNOWN"): answer[kind] for kind in answer}}


def correct(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> tuple[str, Any]:
    """Placement's statements, as PostgreSQL takes them.

    It refuses them as they are: they select columns that they do not group by.
    """
    selected, grouped = "SELECT allocations.resource_class_id", "GROUP BY consumer_types.name"
    if statement.endswith(grouped):
        return statement.replace(selected, "SELECT min(allocations.resource_class_id)"), parameters
    if statement.endswith("consumers.consumer_type_id"):
        return f"{statement}, consumer_types.name", parameters
    return statement, parameters


@dataclasses.dataclass(frozen=True)
class Asked:
    """How a question was answered: with what, in which time, with how many statements."""

    answer: dict[str, Any]
    milliseconds: float
    statements: int


def ask(engine: sa.Engine, question: Callable[[], dict[str, Any]], repeats: int) -> Asked:
    statements: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        statements.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    taken: list[float] = []
    while len(taken) < repeats and sum(taken) < PATIENCE:
        statements.clear()
        start = time.perf_counter()
        answer = question()
        taken.append(time.perf_counter() - start)
    sa.event.remove(engine, "before_cursor_execute", note)
    selects = [each for each in statements if each.startswith("SELECT")]
    return Asked(answer, statistics.median(taken) * 1e3, len(selects))


@dataclasses.dataclass(frozen=True)
class Row:
    database: str
    question: str
    ours: Asked
    placement: Asked

    def __str__(self) -> str:
        ours, peer = self.ours, self.placement
        return (
            f"{self.database:>10} | {self.question:18} | "
            f"{ours.milliseconds:9.1f} {ours.statements:6} | "
            f"{peer.milliseconds:9.1f} {peer.statements:6} | "
            f"{peer.milliseconds / ours.milliseconds:6.2f}x"
        )


HEADER = (
    f"{'database':>10} | {'question':18} | {'ours':>9} {'stmts':>6} | "
    f"{'Placement':>9} {'stmts':>6} | {'ratio':>7}"
)


def measure(engine: sa.Engine, context: Any, name: str, repeats: int) -> Row:
    store, question = ConsumerStore(engine), QUESTIONS[name]
    ours = ask(engine, lambda: store.usages(*question), repeats)
    own = db_api.get_placement_engine()
    peer = ask(own, lambda: placements(context, *question), repeats)
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
            for name in QUESTIONS:
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
