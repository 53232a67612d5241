"""A trait query in SQL selects the providers whose traits satisfy it."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from sqlalchemy.dialects import mysql, postgresql, sqlite

from steelyard.errors import InvalidTrait
from steelyard.traits import TraitQuery, sql
from support.examples import examples
from support.traits.provider_tables import (
    FEW_LEFT,
    OTHERS,
    PLACEMENTS,
    UNKNOWN,
    check_selected,
    create_tables,
    providers,
    queries,
)


@pytest.fixture(scope="module")
def engine() -> Iterator[sa.Engine]:
    engine = sa.create_engine("sqlite://")
    create_tables(engine)
    yield engine
    engine.dispose()


@settings(max_examples=examples(75))
@example([frozenset(), frozenset("A")], TraitQuery())
@example([frozenset(), frozenset("A")], TraitQuery.parse(UNKNOWN))
@example([frozenset(), frozenset("A")], TraitQuery.parse(f"!{UNKNOWN}"))
@example([frozenset(["A_B"]), frozenset(["AAB"])], TraitQuery.parse("!A_B"))
@example([*FEW_LEFT, frozenset("AB")], TraitQuery.parse("A,B,!A_B"))
@example([*FEW_LEFT, frozenset(["A", "B", "A_B"])], TraitQuery.parse("A,B,!A_B"))
@example([frozenset("AB")] * 5 + [frozenset(["A", "B", "A_B"])], TraitQuery.parse("A,B,!A_B"))
@given(providers, queries)
def test_condition_selects_providers_that_satisfy_the_query(
    engine: sa.Engine, providers: list[frozenset[str]], query: TraitQuery
) -> None:
    check_selected(engine, providers, query)


@settings(max_examples=examples(50))
@given(providers, queries)
def test_condition_in_a_join_of_the_same_tables_is_independent(
    engine: sa.Engine, providers: list[frozenset[str]], query: TraitQuery
) -> None:
    expected = {
        (number, name)
        for number, traits in enumerate(providers, 1)
        if query.satisfied_by(traits)
        for name in traits
    }
    provider, can, tag = OTHERS.provider, OTHERS.association, OTHERS.trait
    joined = provider.join(can, can.c.host == provider.c.host_no).join(
        tag, tag.c.tag_no == can.c.tag
    )
    with engine.begin() as connection:
        OTHERS.refill(connection, providers)
        # Any column with ids of providers can be compared.
        for provider_id in (provider.c.host_no, can.c.host):
            asked = sql.condition(query, provider_id, OTHERS.tables)
            statement = sa.select(provider_id, tag.c.label).select_from(joined)
            there = {(number, name) for number, name in connection.execute(statement.where(asked))}
            assert there == expected
            others = {
                (number, name) for number, name in connection.execute(statement.where(~asked))
            }
            everything = {(number, name) for number, name in connection.execute(statement)}
            assert others == everything - expected


@settings(max_examples=examples(40))
@given(providers, queries, queries)
def test_conditions_of_two_queries_can_be_combined(
    engine: sa.Engine, providers: list[frozenset[str]], one: TraitQuery, other: TraitQuery
) -> None:
    # Two conditions may contradict each other; one query may not.
    with engine.begin() as connection:
        PLACEMENTS.refill(connection, providers)
        both = sa.select(*PLACEMENTS.provider.c).where(
            PLACEMENTS.condition(one), PLACEMENTS.condition(other)
        )
        selected = set(connection.scalars(both))
        assert selected == {
            number
            for number, traits in enumerate(providers, 1)
            if one.satisfied_by(traits) and other.satisfied_by(traits)
        }
        try:
            joint = one & other
        except InvalidTrait:
            assert not selected
        else:
            again = sa.select(*PLACEMENTS.provider.c).where(PLACEMENTS.condition(joint))
            assert set(connection.scalars(again)) == selected


def test_rows_without_a_provider_reject_no_provider() -> None:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        for statement in (
            "CREATE TABLE resource_providers (id INTEGER)",
            "CREATE TABLE traits (id INTEGER, name TEXT)",
            "CREATE TABLE resource_provider_traits (resource_provider_id INTEGER, trait_id INTEGER)",
            "INSERT INTO resource_providers VALUES (1), (2)",
            "INSERT INTO traits VALUES (100, 'A'), (101, 'B'), (102, 'C')",
            "INSERT INTO resource_provider_traits VALUES (1, 100), (NULL, 100)",
            "INSERT INTO resource_provider_traits VALUES (2, 101), (NULL, 101), (2, 102), (NULL, 102)",
        ):
            connection.exec_driver_sql(statement)
        provider = PLACEMENTS.provider
        for query in ("!A", "B,!A", "B,C,!A"):
            without = sa.select(provider.c.id).where(
                sql.condition(TraitQuery.parse(query), provider.c.id)
            )
            assert connection.scalars(without).all() == [2]
    engine.dispose()


def test_condition_of_an_empty_query_is_true() -> None:
    assert str(PLACEMENTS.condition(TraitQuery())) == "true"


@pytest.mark.parametrize(
    ("dialect", "anti_join"),
    [
        ("sqlite", "IS NOT 1"),  # NOT IN, but for NULL
        ("postgresql", "NOT (EXISTS"),
        ("mysql", "NOT (EXISTS"),
    ],
)
def test_forbidden_traits_are_one_anti_join(dialect: str, anti_join: str) -> None:
    url = sa.make_url(f"{dialect}://")

    def text(query: str) -> str:
        condition = PLACEMENTS.condition(TraitQuery.parse(query))
        return str(
            sa.select(*PLACEMENTS.provider.c).where(condition).compile(dialect=url.get_dialect()())
        )

    assert " NOT" not in text("A&in:B,CUSTOM_1")
    assert text("A&in:B,CUSTOM_1").count(" IN (SELECT resource_provider_traits.") == 2
    forbidding = text("A,!A_,!A_B,!AAB")
    assert forbidding.count("FROM resource_provider_traits") == 2
    assert forbidding.count(anti_join) == 1
    # MariaDB uses no join for a comparison with a number.
    assert " = 1" not in forbidding
    assert text("!A").count(anti_join) == 1


@pytest.mark.parametrize(
    ("dialect", "counts"),
    [
        (sqlite.dialect, True),
        (functools.partial(mysql.dialect, is_mariadb=True), True),
        (mysql.dialect, False),
        (postgresql.dialect, False),
    ],
)
def test_forbidden_traits_beside_several_groups_are_looked_up_if_few_providers_are_left(
    dialect: Callable[[], sa.Dialect], counts: bool
) -> None:
    condition = PLACEMENTS.condition(TraitQuery.parse("A,!A_,!A_B", "in:B,CUSTOM_1"))
    text = str(sa.select(*PLACEMENTS.provider.c).where(condition).compile(dialect=dialect()))
    assert ("CASE WHEN" in text) == ("INTERSECT" in text) == counts
    assert text.count("NOT (EXISTS") == 1
    single = PLACEMENTS.condition(TraitQuery.parse("A,!A_,!A_B"))
    assert "CASE" not in str(single.compile(dialect=dialect()))


def test_condition_runs_one_statement_without_scans_per_provider(engine: sa.Engine) -> None:
    query = TraitQuery.parse("A,!B,!A_B", "in:AAB,CUSTOM_1")
    statement = sa.select(PLACEMENTS.provider.c.id).where(PLACEMENTS.condition(query))
    executed: list[str] = []

    def record(conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        executed.append(statement)

    sa.event.listen(engine, "before_cursor_execute", record)
    try:
        with engine.connect() as connection:
            connection.execute(statement).all()
    finally:
        sa.event.remove(engine, "before_cursor_execute", record)
    assert len(executed) == 1

    literal = statement.compile(engine, compile_kwargs={"literal_binds": True})
    with engine.connect() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {literal}")]
    assert any("LIST SUBQUERY" in step for step in plan)
    correlated = [number for number, step in enumerate(plan) if "CORRELATED" in step]
    assert correlated
    assert all(plan[number + 1].startswith("SEARCH resource") for number in correlated)
