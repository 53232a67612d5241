"""Trait queries in SQL on PostgreSQL and MariaDB."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings

from steelyard.traits import TraitQuery
from support.examples import examples
from support.services import databases
from support.traits import provider_tables as law


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def engine(request: Any) -> Iterator[sa.Engine]:
    with databases.own_database(databases.needed(request.param)) as engine:
        law.create_tables(engine)
        yield engine


@settings(max_examples=examples(60))
@example([frozenset(), frozenset("A")], TraitQuery())
@example([frozenset(), frozenset("A")], TraitQuery.parse(law.UNKNOWN))
@example([frozenset(), frozenset("A")], TraitQuery.parse(f"!{law.UNKNOWN}"))
@example([frozenset(["A_B"]), frozenset(["AAB"])], TraitQuery.parse("!A_B"))
@example([*law.FEW_LEFT, frozenset("AB")], TraitQuery.parse("A,B,!A_B"))
@example([*law.FEW_LEFT, frozenset(["A", "B", "A_B"])], TraitQuery.parse("A,B,!A_B"))
@example([frozenset("AB")] * 5 + [frozenset(["A", "B", "A_B"])], TraitQuery.parse("A,B,!A_B"))
@given(law.providers, law.queries)
def test_condition_selects_providers_that_satisfy_the_query(
    engine: sa.Engine, providers: list[frozenset[str]], query: TraitQuery
) -> None:
    law.check_selected(engine, providers, query)
