"""The providers that a query selects: in memory, in SQL and in a real Placement."""

import random
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from steelyard.errors import InvalidTrait
from steelyard.traits import ProvidersRequest, RequestGroup, TraitQuery, sql
from support.examples import examples
from support.nova import placements
from support.services import databases

TREES = 1000
ON_SERVERS = 100
names = st.sampled_from(placements.TRAITS)
some = st.frozensets(names, max_size=2)


class Forest(NamedTuple):
    """Trees of providers in a Placement, with the traits of each provider."""

    client: Any
    engine: sa.Engine
    traits: dict[str, frozenset[str]]


def plant(engine: sa.Engine, trees: int) -> dict[str, frozenset[str]]:
    """Write trees of one to four providers to Placement's tables; return traits by provider."""
    chance = random.Random(5)
    schema = sa.MetaData()
    schema.reflect(engine, only=["resource_providers", "resource_provider_traits", "traits"])
    tables = schema.tables
    with engine.begin() as connection:
        known = tables["traits"].c
        ids = dict(connection.execute(sa.select(known.name, known.id)).tuples().all())
        traits, providers, links = {}, [], []
        for number in range(1, trees * 4 + 1):
            if chance.random() < 0.4 and number % 4 != 1:
                continue
            root = number - (number - 1) % 4
            made = str(uuid.UUID(int=chance.getrandbits(128), version=4))
            traits[made] = frozenset(chance.sample(placements.TRAITS, chance.randint(0, 4)))
            providers.append(
                {
                    "id": number,
                    "uuid": made,
                    "name": made,
                    "generation": 0,
                    "root_provider_id": root,
                    "parent_provider_id": None if number == root else root,
                }
            )
            links += [{"resource_provider_id": number, "trait_id": ids[t]} for t in traits[made]]
        connection.execute(sa.insert(tables["resource_providers"]), providers)
        connection.execute(sa.insert(tables["resource_provider_traits"]), links)
    return traits


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: Any) -> Iterator[Forest]:
    url = f"sqlite:///{tmp_path_factory.mktemp('placement')}/placement.db"
    with placements.placement(url) as client:
        engine = sa.create_engine(url)
        yield Forest(client, engine, plant(engine, TREES))
        engine.dispose()


@pytest.fixture(params=["postgresql", "mariadb"])
def on_a_server(request: Any) -> Iterator[Forest]:
    with databases.own_database(databases.needed(request.param)) as engine:
        url = engine.url.render_as_string(hide_password=False)
        with placements.placement(url) as client:
            yield Forest(client, engine, plant(engine, ON_SERVERS))


@st.composite
def queries(draw: st.DrawFn) -> TraitQuery:
    groups = st.frozensets(st.frozensets(names, min_size=1, max_size=3), max_size=2)
    try:
        return TraitQuery(draw(some), draw(some), draw(groups))
    except InvalidTrait:
        assume(False)
        raise


def by_placement(forest: Forest, query: TraitQuery) -> set[str]:
    request = ProvidersRequest(RequestGroup(traits=query))
    answer = forest.client.get(
        f"{request.path}?{request.query_string()}", headers=placements.at("1.39")
    )
    assert answer.status_code == 200, answer.text
    return {provider["uuid"] for provider in answer.json()["resource_providers"]}


def by_sql(forest: Forest, query: TraitQuery) -> set[str]:
    providers = sa.table("resource_providers", sa.column("id"), sa.column("uuid"))
    wanted = sa.select(providers.c.uuid).where(sql.condition(query, providers.c.id))
    with forest.engine.connect() as connection:
        return set(connection.execute(wanted).scalars())


def in_memory(forest: Forest, query: TraitQuery) -> set[str]:
    return {name for name, traits in forest.traits.items() if query.satisfied_by(traits)}


def agree(forest: Forest, query: TraitQuery) -> None:
    found = in_memory(forest, query)
    assert by_sql(forest, query) == found
    assert by_placement(forest, query) == found


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(query=queries())
def test_query_selects_the_same_providers_on_sqlite(sqlite: Forest, query: TraitQuery) -> None:
    assert len(sqlite.traits) > TREES
    agree(sqlite, query)


def test_query_selects_the_same_providers_on_a_server(on_a_server: Forest) -> None:
    @settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))
    @given(query=queries())
    def law(query: TraitQuery) -> None:
        agree(on_a_server, query)

    law()
