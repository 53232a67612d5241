"""Lists of generated instances with tags on SQLite: filters against an oracle, and pages."""

from collections.abc import Iterator

import hypothesis
import pytest
import sqlalchemy as sa
from hypothesis import strategies as st

from steelyard.tags import TagFilter, TagStore
from steelyard.tags.database.listing import Page
from support.examples import examples
from support.tags import listing_laws
from support.tags.databases import upgrade
from support.tags.listing_laws import databases, filters, prefixes, projects

shared = hypothesis.settings(
    max_examples=examples(60),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def store() -> Iterator[TagStore]:
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    store = TagStore(engine)
    upgrade(store)
    yield store
    engine.dispose()


@shared
@hypothesis.given(databases, prefixes, filters, projects)
def test_filter_accepts_the_instances_of_the_oracle(
    store: TagStore,
    database: list[listing_laws.Row],
    mine: list[str],
    wanted: TagFilter,
    project: str | None,
) -> None:
    made = listing_laws.fill(store, database)
    page = Page(mine, wanted=wanted, project=project)
    listing_laws.check_list_has_the_accepted_instances(store, made, page)


@shared
@hypothesis.given(databases, prefixes, filters, projects, st.integers(1, 4))
def test_pages_concatenate_to_the_whole_list(
    store: TagStore,
    database: list[listing_laws.Row],
    mine: list[str],
    wanted: TagFilter,
    project: str | None,
    size: int,
) -> None:
    listing_laws.fill(store, database)
    page = Page(mine, wanted=wanted, project=project)
    listing_laws.check_pages_are_the_whole_list(store, page, size)


@hypothesis.given(filters)
def test_texts_of_a_filter_parse_to_the_same_filter(wanted: TagFilter) -> None:
    assert TagFilter.parse(wanted.texts()) == wanted
