"""A trait query as a condition in SQL, over whatever tables hold the providers and their traits.

::

    statement = select(providers.c.uuid).where(sql.condition(query, providers.c.id))

The database answers it in that one statement: nothing is looked up before.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

from steelyard import extras
from steelyard.traits.query import TraitQuery

with extras.required("sql", "a trait query in SQL"):
    import sqlalchemy as sa
    from sqlalchemy.ext.compiler import compiles
    from sqlalchemy.sql.functions import FunctionElement


@dataclasses.dataclass(frozen=True, slots=True)
class TraitTables:
    """The columns that say which provider has which trait, and what the traits are called.

    Names are compared as the database compares the column. A collation that ignores case does no
    harm, as the names of traits differ in more than that; forcing another one would cost the index.
    """

    association_provider_id: sa.SQLColumnExpression[Any]
    association_trait_id: sa.SQLColumnExpression[Any]
    trait_id: sa.SQLColumnExpression[Any]
    trait_name: sa.SQLColumnExpression[Any]

    def holders(self, traits: Iterable[str]) -> sa.Select[Any]:
        """The ids of the providers that have at least one of these traits."""
        ids = sa.select(self.trait_id).where(self.trait_name.in_(sorted(traits)))
        return sa.select(self.association_provider_id).where(self.association_trait_id.in_(ids))


_association = sa.table(
    "resource_provider_traits",
    sa.column("resource_provider_id", sa.Integer),
    sa.column("trait_id", sa.Integer),
)
_traits = sa.table("traits", sa.column("id", sa.Integer), sa.column("name", sa.Unicode))

PLACEMENT = TraitTables(
    association_provider_id=_association.c.resource_provider_id,
    association_trait_id=_association.c.trait_id,
    trait_id=_traits.c.id,
    trait_name=_traits.c.name,
)


def condition(
    query: TraitQuery, provider_id: sa.SQLColumnExpression[Any], tables: TraitTables = PLACEMENT
) -> sa.ColumnElement[bool]:
    """That the provider with this id has the traits that are asked for.

    ``provider_id`` is any column of the caller's statement that has ids of providers. A trait that
    is not in the tables is one that no provider has.
    """
    query = query.simplified()
    groups = [[trait] for trait in sorted(query.required)] + sorted(map(sorted, query.any_of))
    parts: list[sa.ColumnElement[bool]] = [
        provider_id.in_(tables.holders(group)) for group in groups
    ]
    if query.forbidden:
        parts.append(_NotAmong(provider_id, tables.holders(query.forbidden).scalar_subquery()))
    return sa.and_(sa.true(), *parts)


class _NotAmong(FunctionElement[bool]):
    """The anti-join: that a value is not among those that a subquery selects.

    PostgreSQL makes it a join only where it reads NOT EXISTS; MariaDB takes that as well. SQLite
    would run it once for each row, but keeps the result of a subquery that does not depend on the
    row, as that of NOT IN. Neither is misled by a NULL as it is written here.

    It has no type: SQLAlchemy would compare a Boolean to 1 where the database has no booleans, and
    MariaDB no longer sees a join in that.
    """

    inherit_cache = True


@compiles(_NotAmong)
def _not_exists(element: _NotAmong, compiler: Any, **how: Any) -> str:
    value, among = element.clauses
    rows = among.element.subquery()
    same = sa.exists(1).where(rows.c[0] == value).correlate_except(rows)
    return _grouped(compiler.process(~same, **how))


@compiles(_NotAmong, "sqlite")
def _not_in(element: _NotAmong, compiler: Any, **how: Any) -> str:
    value, among = element.clauses
    return _grouped(compiler.process(value.in_(among.element).is_not(sa.true()), **how))


def _grouped(text: str) -> str:
    return f"({text})"
