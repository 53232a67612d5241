"""Tables of providers and traits, and the law of what a query selects from them."""

import dataclasses
from typing import Any

import sqlalchemy as sa
from hypothesis import strategies as st

from steelyard.traits import TraitQuery, sql

# Names that a sloppy comparison would confuse: with LIKE, "_" stands for any character.
NAMES = ["A", "A_", "A_B", "AAB", "B", "CUSTOM_1", "CUSTOM_10", "STORAGE_DISK_SSD"]
UNKNOWN = "CUSTOM_NOBODY_HAS_HEARD_OF"

providers = st.lists(st.frozensets(st.sampled_from(NAMES)), max_size=6)
# More providers have A_B than have A and B.
FEW_LEFT = [frozenset(["A_B", *rest]) for rest in ("", "A", "B")]

some_names = st.frozensets(st.sampled_from([*NAMES, UNKNOWN]), max_size=3)


@st.composite
def satisfiable_queries(draw: st.DrawFn) -> TraitQuery:
    required, forbidden = draw(some_names), draw(some_names)
    groups = draw(st.frozensets(some_names, max_size=2))
    forbidden -= required
    return TraitQuery(required, forbidden, frozenset(g for g in groups if g - forbidden))


queries = satisfiable_queries()


@dataclasses.dataclass(frozen=True)
class Tables:
    """Tables of providers and traits with chosen names."""

    provider: sa.Table
    association: sa.Table
    trait: sa.Table
    tables: sql.TraitTables

    @classmethod
    def named(cls, provider: str, association: str, trait: str) -> "Tables":
        """Return tables with these names; the names of the columns follow after a colon."""
        metadata = sa.MetaData()
        integer = sa.Integer
        own = _table(metadata, provider, integer)
        traits = _table(metadata, trait, integer, sa.String(255))
        pairs = _table(metadata, association, integer, integer)
        return cls(own, pairs, traits, sql.TraitTables(*pairs.c, *traits.c))

    def refill(self, connection: sa.Connection, providers: list[frozenset[str]]) -> None:
        """Replace the rows: the providers, numbered from 1, and all traits."""
        for table in (self.association, self.trait, self.provider):
            connection.execute(sa.delete(table))
        numbers = {name: number for number, name in enumerate(NAMES, 100)}
        self._insert(connection, self.trait, [(number, name) for name, number in numbers.items()])
        self._insert(connection, self.provider, [(each,) for each in range(1, len(providers) + 1)])
        held = [
            (provider, numbers[name])
            for provider, names in enumerate(providers, 1)
            for name in sorted(names)
        ]
        self._insert(connection, self.association, held)

    def condition(self, query: TraitQuery) -> sa.ColumnElement[bool]:
        return sql.condition(query, self.provider.c[0], self.tables)

    @staticmethod
    def _insert(connection: sa.Connection, table: sa.Table, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            names = table.c.keys()
            connection.execute(
                sa.insert(table), [dict(zip(names, row, strict=True)) for row in rows]
            )


def _table(metadata: sa.MetaData, text: str, *types: Any) -> sa.Table:
    name, _, columns = text.partition(":")
    keys = dict(zip(columns.split(), types, strict=True))
    return sa.Table(
        name,
        metadata,
        # With autoincrement, MariaDB may replace a given key.
        *(
            sa.Column(key, type_, primary_key=True, autoincrement=False)
            for key, type_ in keys.items()
        ),
    )


PLACEMENTS = dataclasses.replace(
    Tables.named(
        "resource_providers:id",
        "resource_provider_traits:resource_provider_id trait_id",
        "traits:id name",
    ),
    tables=sql.PLACEMENT,
)
OTHERS = Tables.named("host:host_no", "can:host tag", "tag:tag_no label")
SHAPES = [PLACEMENTS, OTHERS]


def check_selected(engine: sa.Engine, providers: list[frozenset[str]], query: TraitQuery) -> None:
    """Check that the condition selects the providers that satisfy the query, in both shapes."""
    satisfying = [
        number for number, traits in enumerate(providers, 1) if query.satisfied_by(traits)
    ]
    with engine.begin() as connection:
        for shape in SHAPES:
            shape.refill(connection, providers)
            statement = sa.select(*shape.provider.c).where(shape.condition(query))
            assert sorted(connection.scalars(statement)) == satisfying


def create_tables(engine: sa.Engine) -> None:
    for shape in SHAPES:
        shape.provider.metadata.create_all(engine)
