"""On PostgreSQL and MariaDB, too, those are selected whose traits satisfy the query."""

from collections.abc import Iterator
from typing import Any

import provider_tables as law
import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from services import databases

from steelyard.traits import TraitQuery


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def engine(request: Any) -> Iterator[sa.Engine]:
    with databases.own_database(databases.needed(request.param)) as engine:
        law.create_tables(engine)
        yield engine


@settings(max_examples=300)
@example([frozenset(), frozenset("A")], TraitQuery())
@example([frozenset(), frozenset("A")], TraitQuery.parse(law.UNKNOWN))
@example([frozenset(), frozenset("A")], TraitQuery.parse(f"!{law.UNKNOWN}"))
@example([frozenset(["A_B"]), frozenset(["AAB"])], TraitQuery.parse("!A_B"))
@given(law.providers, law.queries)
def test_those_are_selected_whose_traits_satisfy_the_query(
    engine: sa.Engine, providers: list[frozenset[str]], query: TraitQuery
) -> None:
    law.check_selected(engine, providers, query)


def test_a_service_that_must_be_there_and_is_not_fails_the_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(databases.variable("mariadb"), "mysql+pymysql://root@127.0.0.1:1/")
    monkeypatch.delenv(databases.REQUIRE, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"no mariadb at .*STEELYARD_TEST_MARIADB"):
        databases.needed("mariadb")
    monkeypatch.setenv(databases.REQUIRE, "1")
    with pytest.raises(pytest.fail.Exception, match=r"no mariadb at .*STEELYARD_REQUIRE_SERVICES"):
        databases.needed("mariadb")
