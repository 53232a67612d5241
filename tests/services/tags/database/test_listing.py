"""Lists of generated instances with tags on PostgreSQL and MariaDB."""

import hypothesis
import pytest
import sqlalchemy as sa
from hypothesis import strategies as st

from steelyard.tags import TagFilter, TagStore
from steelyard.tags.database.listing import Page
from support.examples import examples
from support.tags import listing_laws
from support.tags.listing_laws import databases, filters, prefixes, projects


@pytest.fixture
def store(upgraded: sa.Engine) -> TagStore:
    return TagStore(upgraded)


@hypothesis.settings(
    max_examples=examples(30),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(databases, prefixes, filters, projects, st.integers(1, 4))
def test_lists_and_pages_agree_with_the_oracle(
    store: TagStore,
    database: list[listing_laws.Row],
    mine: list[str],
    wanted: TagFilter,
    project: str | None,
    size: int,
) -> None:
    made = listing_laws.fill(store, database)
    page = Page(mine, wanted=wanted, project=project)
    listing_laws.check_list_has_the_accepted_instances(store, made, page)
    listing_laws.check_pages_are_the_whole_list(store, page, size)
