"""A real Placement whose providers a test replaces, by writing to its database."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa

from steelyard.traits import Candidate, CandidatesRequest, ProviderTrees, ResourceProvider
from support.nova import placements
from support.traits import forests

LATEST = "1.39"


class Planted(NamedTuple):
    """A Placement, and its database."""

    client: Any
    engine: sa.Engine
    tables: Any

    def plant(self, providers: list[ResourceProvider]) -> ProviderTrees[ResourceProvider]:
        """Replace all providers in the database by these."""
        tables = self.tables
        known = {
            kind: dict(self.rows(sa.select(tables[kind].c.name, tables[kind].c.id)))
            for kind in ("traits", "resource_classes")
        }
        trees = ProviderTrees(providers)
        ids = {provider.uuid: number for number, provider in enumerate(providers, 1)}
        aggregates = {uuid: number for number, uuid in enumerate(forests.AGGREGATES, 1)}
        rows: dict[str, list[dict[str, Any]]] = {
            "placement_aggregates": [
                {"id": number, "uuid": uuid} for uuid, number in aggregates.items()
            ],
            "resource_providers": [],
            "inventories": [],
            "allocations": [],
            "resource_provider_traits": [],
            "resource_provider_aggregates": [],
        }
        for provider in providers:
            root = trees.root(provider)
            its = {"resource_provider_id": ids[provider.uuid]}
            rows["resource_providers"].append(
                {
                    "id": ids[provider.uuid],
                    "uuid": provider.uuid,
                    "name": provider.name,
                    "generation": 0,
                    "root_provider_id": ids[root.uuid],
                    "parent_provider_id": provider.parent and ids[provider.parent],
                }
            )
            rows["resource_provider_traits"] += [
                {**its, "trait_id": known["traits"][name]} for name in provider.traits
            ]
            rows["resource_provider_aggregates"] += [
                {**its, "aggregate_id": aggregates[uuid]} for uuid in provider.aggregates
            ]
            for name, inventory in provider.inventories.items():
                fields = {**its, "resource_class_id": known["resource_classes"][name]}
                amounts = dataclasses.asdict(inventory)
                used = amounts.pop("used")
                rows["inventories"].append({**fields, **amounts})
                rows["allocations"].append({**fields, "used": used, "consumer_id": "c"})
        with self.engine.begin() as connection:
            for name in reversed(rows):
                connection.execute(sa.delete(tables[name]))
            for name, some in rows.items():
                if some:
                    connection.execute(sa.insert(tables[name]), some)
        return trees

    def rows(self, statement: Any) -> Any:
        with self.engine.connect() as connection:
            return connection.execute(statement).tuples().all()

    def ask(self, request: Any, version: str = LATEST) -> Any:
        answer = self.client.get(
            f"{request.path}?{request.query_string()}", headers=placements.at(version)
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def candidates(self, request: CandidatesRequest) -> set[Candidate]:
        return set(map(Candidate.from_json, self.ask(request)["allocation_requests"]))

    def allocations(self, request: CandidatesRequest, version: str) -> set[Any]:
        """Return the allocations of each candidate, which older versions answer in another form."""
        found = set()
        for each in self.ask(request, version)["allocation_requests"]:
            if isinstance(each["allocations"], list):
                pairs = [
                    (part["resource_provider"]["uuid"], part["resources"])
                    for part in each["allocations"]
                ]
            else:
                pairs = [(uuid, part["resources"]) for uuid, part in each["allocations"].items()]
            found.add(frozenset((uuid, frozenset(part.items())) for uuid, part in pairs))
        return found


@contextlib.contextmanager
def planted(folder: pathlib.Path) -> Iterator[Planted]:
    """Yield a Placement with its database in the folder."""
    url = f"sqlite:///{folder}/placement.db"
    with placements.placement(url) as client:
        engine = sa.create_engine(url)
        schema = sa.MetaData()
        schema.reflect(engine)
        yield Planted(client, engine, schema.tables)
        engine.dispose()
