"""A trait query in SQL selects the providers whose traits satisfy it."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from provider_tables import (
    OTHERS,
    PLACEMENTS,
    UNKNOWN,
    check_selected,
    create_tables,
    providers,
    queries,
)

from steelyard.errors import InvalidTrait
from steelyard.traits import TraitQuery, sql


@pytest.fixture(scope="module")
def engine() -> Iterator[sa.Engine]:
    engine = sa.create_engine("sqlite://")
    create_tables(engine)
    yield engine
    engine.dispose()


@settings(max_examples=500)
@example([frozenset(), frozenset("A")], TraitQuery())
@example([frozenset(), frozenset("A")], TraitQuery.parse(UNKNOWN))
@example([frozenset(), frozenset("A")], TraitQuery.parse(f"!{UNKNOWN}"))
@example([frozenset(["A_B"]), frozenset(["AAB"])], TraitQuery.parse("!A_B"))
@given(providers, queries)
def test_those_are_selected_whose_traits_satisfy_the_query(
    engine: sa.Engine, providers: list[frozenset[str]], query: TraitQuery
) -> None:
    check_selected(engine, providers, query)


@settings(max_examples=300)
@given(providers, queries)
def test_a_statement_that_joins_the_same_tables_is_not_confused(
    engine: sa.Engine, providers: list[frozenset[str]], query: TraitQuery
) -> None:
    """The inner tables are not taken for the outer ones of the same name."""
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
        # The ids of the providers may come from any table that has them.
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


@settings(max_examples=200)
@given(providers, queries, queries)
def test_two_queries_in_one_statement_are_both_asked(
    engine: sa.Engine, providers: list[frozenset[str]], one: TraitQuery, other: TraitQuery
) -> None:
    """Also where the two contradict each other, which one query must not."""
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


def test_rows_without_a_provider_forbid_nothing() -> None:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        for statement in (
            "CREATE TABLE resource_providers (id INTEGER)",
            "CREATE TABLE traits (id INTEGER, name TEXT)",
            "CREATE TABLE resource_provider_traits (resource_provider_id INTEGER, trait_id INTEGER)",
            "INSERT INTO resource_providers VALUES (1), (2)",
            "INSERT INTO traits VALUES (100, 'A')",
            "INSERT INTO resource_provider_traits VALUES (1, 100), (NULL, 100)",
        ):
            connection.exec_driver_sql(statement)
        provider = PLACEMENTS.provider
        without = sa.select(provider.c.id).where(
            sql.condition(TraitQuery.parse("!A"), provider.c.id)
        )
        assert connection.scalars(without).all() == [2]
    engine.dispose()


def test_a_query_that_asks_for_nothing_is_true() -> None:
    assert str(PLACEMENTS.condition(TraitQuery())) == "true"


@pytest.mark.parametrize(
    ("dialect", "anti_join"),
    [
        ("sqlite", "IS NOT 1"),  # NOT IN, but for NULL
        ("postgresql", "NOT (EXISTS"),
        ("mysql", "NOT (EXISTS"),
    ],
)
def test_all_that_is_forbidden_is_one_anti_join(dialect: str, anti_join: str) -> None:
    url = sa.make_url(f"{dialect}://")

    def text(query: str) -> str:
        condition = PLACEMENTS.condition(TraitQuery.parse(query))
        return str(
            sa.select(*PLACEMENTS.provider.c).where(condition).compile(dialect=url.get_dialect()())
        )

    required = text("A&in:B,CUSTOM_1")
    assert " NOT" not in required
    assert required.count(" IN (SELECT resource_provider_traits.") == 2
    forbidding = text("A,!A_,!A_B,!AAB&in:B,CUSTOM_1")
    assert forbidding.count("FROM resource_provider_traits") == 3
    assert forbidding.count(anti_join) == 1
    # Compared to a number it would be no join for MariaDB.
    assert " = 1" not in forbidding
    assert text("!A").count(anti_join) == 1


def test_a_query_is_one_statement_and_scans_no_traits_per_provider(engine: sa.Engine) -> None:
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
    assert not any("CORRELATED" in step for step in plan)
