"""Trait queries as SQL conditions, over any tables of providers and traits.

::

    statement = select(providers.c.uuid).where(sql.condition(query, providers.c.id))

Everything runs in that one statement; there is no query before it.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

from steelyard import errors, extras
from steelyard.traits import arguments
from steelyard.traits.query import TraitQuery, check_query

with extras.required("sql", "a trait query in SQL"):
    import sqlalchemy as sa
    from sqlalchemy.ext.compiler import compiles
    from sqlalchemy.sql.functions import FunctionElement

__all__ = ["PLACEMENT", "TraitTables", "condition"]


@dataclasses.dataclass(frozen=True, slots=True)
class TraitTables:
    """The columns that associate providers with traits, and traits with their names.

    Names are compared with the collation of the column, because another one in the query would
    prevent the use of the index. A collation that ignores case is safe: no two names of traits
    differ only in case.
    """

    association_provider_id: sa.SQLColumnExpression[Any]
    association_trait_id: sa.SQLColumnExpression[Any]
    trait_id: sa.SQLColumnExpression[Any]
    trait_name: sa.SQLColumnExpression[Any]

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check_column(field.name, getattr(self, field.name))

    def holders(self, traits: Iterable[str]) -> sa.Select[Any]:
        """Return a select of the ids of the providers that have at least one of these traits."""
        ids = sa.select(self.trait_id).where(self.trait_name.in_(sorted(traits)))
        return sa.select(self.association_provider_id).where(self.association_trait_id.in_(ids))


def _check_column(argument: str, value: object) -> None:
    arguments.instance(argument, value, sa.SQLColumnExpression, "a column", errors.InvalidTrait)


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
    """Return the condition that the provider with this id satisfies the query.

    ``provider_id`` is any column of the caller's statement that has ids of providers. A trait that
    is missing from the tables counts as one that no provider has. Raises InvalidTrait if an
    argument has the wrong type.
    """
    _check_column("provider_id", provider_id)
    arguments.instance("tables", tables, TraitTables, "a TraitTables", errors.InvalidTrait)
    query = check_query("query", query).simplified()
    groups = [[trait] for trait in sorted(query.required)] + sorted(map(sorted, query.any_of))
    required = [tables.holders(group) for group in groups]
    if not query.forbidden:
        return _among_all(provider_id, required)
    forbidden = tables.holders(query.forbidden)
    if len(required) < 2:
        return sa.and_(_among_all(provider_id, required), _not_among(provider_id, forbidden))
    lookups = sa.literal(len(query.forbidden), sa.Integer)
    parts = (each.scalar_subquery() for each in (forbidden, *required))
    return sa.and_(sa.true(), _AmongAllBut(provider_id, lookups, *parts))


def _among_all(
    value: sa.SQLColumnExpression[Any], lists: Iterable[sa.Select[Any]]
) -> sa.ColumnElement[bool]:
    return sa.and_(sa.true(), *(value.in_(each) for each in lists))


def _not_among(value: sa.SQLColumnExpression[Any], rows: sa.Select[Any]) -> sa.ColumnElement[bool]:
    return _NotAmong(value, rows.scalar_subquery())


class _NotAmong(FunctionElement[bool]):
    """An anti-join: the condition that a value is not in the result of a subquery.

    PostgreSQL turns only NOT EXISTS into a join, and MariaDB does so too. SQLite would run NOT
    EXISTS once for each row, but NOT IN only once, because the subquery does not depend on the row.
    Both are written so that a NULL does not change the result.

    The element has no type: SQLAlchemy would compare a Boolean to 1 on a database without booleans,
    and MariaDB would no longer use a join.
    """

    inherit_cache = True


@compiles(_NotAmong)
def _not_among_by_lookup(element: _NotAmong, compiler: Any, **how: Any) -> str:
    value, among = element.clauses
    return _grouped(compiler.process(_not_exists(value, among.element), **how))


@compiles(_NotAmong, "sqlite")
def _not_among_by_list(element: _NotAmong, compiler: Any, **how: Any) -> str:
    value, among = element.clauses
    return _grouped(compiler.process(_not_in(value, among.element), **how))


class _AmongAllBut(FunctionElement[bool]):
    """The condition that a value is in the results of several subqueries, and not in one more.

    Its clauses are the value, the number of index searches that look up a value in the last
    subquery, that subquery, and the others. Like the anti-join alone, it has no type.

    Several subqueries often leave few values. PostgreSQL then looks up each of them in the last
    subquery; SQLite and MariaDB list all its rows. For these two, the statement itself counts the
    values that are left, and looks them up if that takes fewer steps than the list.
    """

    inherit_cache = True


@compiles(_AmongAllBut)
def _planned(element: _AmongAllBut, compiler: Any, **how: Any) -> str:
    value, _, but, *among = element.clauses
    among_all = _among_all(value, [each.element for each in among])
    return _grouped(compiler.process(sa.and_(among_all, _not_among(value, but.element)), **how))


@compiles(_AmongAllBut, "mysql")
@compiles(_AmongAllBut, "mariadb")
def _counted_by_mariadb(element: _AmongAllBut, compiler: Any, **how: Any) -> str:
    # MySQL has no INTERSECT before 8.0.31.
    render = _counted if compiler.dialect.is_mariadb else _planned
    return render(element, compiler, **how)


@compiles(_AmongAllBut, "sqlite")
def _counted(element: _AmongAllBut, compiler: Any, **how: Any) -> str:
    value, lookups, but, *among = element.clauses
    among_all = sa.intersect(*(each.element for each in among)).subquery()
    left = sa.select(
        among_all.c[0].label("value"), sa.func.count().over().label("number")
    ).subquery()
    listed = but.element.limit(_COUNTED).subquery()
    steps = sa.select(sa.func.count()).select_from(listed).scalar_subquery()
    lacks = sa.case(
        (left.c.number * lookups < steps, _not_exists(left.c.value, but.element)),
        else_=_not_in(left.c.value, but.element),
    )
    return _grouped(compiler.process(value.in_(sa.select(left.c.value).where(lacks)), **how))


# No more rows of the list are counted, because counting takes time, too.
_COUNTED = 10_000


def _not_exists(value: Any, rows: sa.Select[Any]) -> sa.ColumnElement[bool]:
    listed = rows.subquery()
    return ~sa.exists(1).where(listed.c[0] == value).correlate_except(listed)


def _not_in(value: sa.ColumnElement[Any], rows: sa.Select[Any]) -> sa.ColumnElement[bool]:
    return value.in_(rows).is_not(sa.true())


def _grouped(text: str) -> str:
    return f"({text})"
