"""Lists of instances with their tags, in pages."""

import dataclasses
import itertools
import operator
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from steelyard.tags.codec import Tag
from steelyard.tags.database.model import instances, tags
from steelyard.tags.database.rows import as_instance
from steelyard.tags.names import ANY_TAGS, TagFilter
from steelyard.tags.states.values import Instance, Status

LARGEST_PAGE = 1000
"""The most instances on a page. Each page is read by one statement."""

# The most tags with a condition each; further ones are counted together.
_ONE_BY_ONE = 5


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedInstance:
    """An instance with tags and their statuses."""

    instance: Instance
    tags: Mapping[Tag, Status]

    @property
    def statuses(self) -> dict[str, Status]:
        """The statuses by the names of the tags, sorted, if all tags have one owner."""
        return {tag.name: status for tag, status in sorted(self.tags.items())}


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """The request for up to ``size`` instances with ids after ``after``, sorted by id.

    The filter is about tags with one of the prefixes, and only these are included. None for
    ``project`` means the instances of all projects.
    """

    prefixes: Collection[str]
    size: int = LARGEST_PAGE
    after: str = ""
    wanted: TagFilter = ANY_TAGS
    project: str | None = None


def read(connection: sa.Connection, page: Page) -> list[TaggedInstance]:
    """Return the instances of the page."""
    found = connection.execute(_statement(page))
    return [
        _tagged(list(rows)) for _, rows in itertools.groupby(found, operator.attrgetter("number"))
    ]


def _statement(page: Page) -> sa.Select[Any]:
    conditions = _conditions(page.prefixes, page.wanted)
    if page.project is not None:
        conditions.append(instances.c.project == page.project)
    here = (
        sa.select(instances)
        .where(instances.c.id > page.after, *conditions)
        .order_by(instances.c.id)
        .limit(page.size)
        .subquery("page")
    )
    mine = sa.and_(tags.c.instance_id == here.c.number, tags.c.prefix.in_(page.prefixes))
    return (
        sa.select(here, tags.c.prefix, tags.c.name.label("tag"), tags.c.status)
        .select_from(here.outerjoin(tags, mine))
        .order_by(here.c.id)
    )


def _conditions(prefixes: Collection[str], wanted: TagFilter) -> list[sa.ColumnElement[bool]]:
    # A database can begin with the instances that have the rarest of these tags. It cannot begin
    # with a count, but the number of tables in a statement is limited.
    conditions = [_has_any(prefixes, [name]) for name in sorted(wanted.all_of)[:_ONE_BY_ONE]]
    if len(wanted.all_of) > _ONE_BY_ONE:
        conditions.append(_has_all(prefixes, wanted.all_of))
    if wanted.any_of:
        conditions.append(_has_any(prefixes, wanted.any_of))
    if wanted.not_all_of:
        conditions.append(~_has_all(prefixes, wanted.not_all_of))
    if wanted.not_any_of:
        conditions.append(~_has_any(prefixes, wanted.not_any_of))
    return conditions


def _has_any(prefixes: Collection[str], names: Collection[str]) -> sa.ColumnElement[bool]:
    return sa.exists().where(_of_instance(prefixes, names))


def _has_all(prefixes: Collection[str], names: Collection[str]) -> sa.ColumnElement[bool]:
    different = sa.select(sa.func.count(tags.c.name.distinct()))
    found = different.where(_of_instance(prefixes, names)).scalar_subquery()
    return found == len(names)


def _of_instance(prefixes: Collection[str], names: Collection[str]) -> sa.ColumnElement[bool]:
    return sa.and_(
        tags.c.instance_id == instances.c.number,
        tags.c.prefix.in_(prefixes),
        tags.c.name.in_(sorted(names)),
    )


def _tagged(rows: list[Any]) -> TaggedInstance:
    """Return the instance of these rows, each of which has a tag, or none if there is no tag."""
    there = {Tag(row.prefix, row.tag): Status(row.status) for row in rows if row.tag is not None}
    return TaggedInstance(as_instance(rows[0]), there)
