"""Reads of the tables of consumers: allocations, usages, counts, and pages of consumers."""

from array import array
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from steelyard.consumers import type_rows
from steelyard.consumers.model import allocations, consumer_types, consumers
from steelyard.consumers.names import ALL, UNKNOWN, ConsumerType
from steelyard.consumers.usages import COUNT, added

PAGE = 1000
"""Consumers on a page."""


def allocations_of(connection: sa.Connection, uuid: str) -> dict[str, Any]:
    """Return the body of the answer; the allocations of a missing consumer are empty."""
    rows = connection.execute(
        sa.select(consumers, consumer_types.c.name, allocations)
        .join(allocations, allocations.c.consumer_id == consumers.c.id)
        .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
        .where(consumers.c.uuid == uuid)
        .order_by(allocations.c.resource_provider, allocations.c.resource_class)
    ).all()
    found: dict[str, Any] = {"allocations": {}}
    for row in rows:
        provider = found["allocations"].setdefault(row.resource_provider, {"resources": {}})
        provider["resources"][row.resource_class] = row.used
        found |= {
            "project_id": row.project,
            "user_id": row.user,
            "consumer_generation": row.generation,
            "consumer_type": row.name or UNKNOWN.name,
        }
    return found


def conditions_on(
    project: str | None, user: str | None, kind: ConsumerType | None
) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on consumers; None stands for any value."""
    conditions = []
    if project is not None:
        conditions.append(consumers.c.project == project)
    if user is not None:
        conditions.append(consumers.c.user == user)
    if kind is not None:
        conditions.append(type_rows.has_type(kind))
    return conditions


def count(connection: sa.Connection, conditions: Sequence[sa.ColumnElement[bool]]) -> int:
    """Return the number of consumers, without reading their allocations."""
    counted = sa.select(sa.func.count()).select_from(consumers).where(*conditions)
    return int(connection.execute(counted).scalar_one())


def ids(
    connection: sa.Connection,
    conditions: Sequence[sa.ColumnElement[bool]],
    provider: str | None,
) -> "array[int]":
    """Return the ids of the consumers with these conditions and this provider, sorted."""
    found = sa.select(consumers.c.id).where(*conditions)
    if provider is not None:
        there = allocations.c.resource_provider == provider
        found = found.where(consumers.c.id.in_(sa.select(allocations.c.consumer_id).where(there)))
    # An array takes 8 bytes for each id, and the driver fetches few rows at a time.
    few = {"yield_per": 10 * PAGE}
    rows = connection.execute(found.order_by(consumers.c.id), execution_options=few)
    return array("q", rows.scalars())


def page(
    connection: sa.Connection,
    numbers: Sequence[int],
    conditions: Sequence[sa.ColumnElement[bool]],
    provider: str | None,
) -> list[str]:
    """Return the UUIDs of the consumers with these ids that still meet the conditions."""
    # Numbers in the text of the statement: drivers take longer for parameters.
    here = sa.bindparam("here", list(numbers), sa.Integer, expanding=True, literal_execute=True)
    if provider is not None:
        there = sa.exists().where(
            allocations.c.consumer_id == consumers.c.id,
            allocations.c.resource_provider == provider,
        )
        conditions = [*conditions, there]
    # In the WHERE clause, the conditions could make SQLite prefer another index to the ids.
    meets = sa.and_(sa.true(), *conditions).label("meets")
    rows = connection.execute(
        sa.select(consumers.c.uuid, meets).where(consumers.c.id.in_(here)).order_by(consumers.c.id)
    )
    return [row.uuid for row in rows if row.meets]


def usages(
    connection: sa.Connection, conditions: Sequence[sa.ColumnElement[bool]]
) -> dict[str, dict[str, int]]:
    """Return amounts and number of consumers by type, all read in one statement."""
    kind = consumers.c.consumer_type_id
    # Group by the indexed column itself. In the join, 0 stands for NULL, which equals nothing; no
    # type has the id 0.
    number = sa.func.coalesce(kind, 0).label("kind")
    # Consumers without allocations are removed, so count consumers without a join.
    counted = (
        sa.select(number, sa.func.count().label("consumers"))
        .where(*conditions)
        .group_by(kind)
        .subquery()
    )
    # Group millions of rows by the id of the type, and join the names to the few groups.
    summed = (
        sa.select(
            number, allocations.c.resource_class, sa.func.sum(allocations.c.used).label("used")
        )
        .join(allocations, allocations.c.consumer_id == consumers.c.id)
        .where(*conditions)
        .group_by(kind, allocations.c.resource_class)
        .subquery()
    )
    statement = (
        sa.select(
            summed.c.kind,
            consumer_types.c.name,
            counted.c.consumers,
            summed.c.resource_class,
            summed.c.used,
        )
        .join(counted, counted.c.kind == summed.c.kind)
        .outerjoin(consumer_types, consumer_types.c.id == summed.c.kind)
    )
    groups: dict[tuple[int, str], dict[str, int]] = {}
    for identity, name, count, resource_class, amount in connection.execute(statement):
        group = groups.setdefault((identity, name or UNKNOWN.name), {COUNT: count})
        group[resource_class] = int(amount)
    used: dict[str, dict[str, int]] = {}
    for (_, name), group in groups.items():
        used[name] = added([used[name], group]) if name in used else group
    return used


def usages_together(
    connection: sa.Connection, conditions: Sequence[sa.ColumnElement[bool]]
) -> dict[str, dict[str, int]]:
    """Return amounts and number of the consumers of all types, all read in one statement."""
    counted = sa.select(sa.func.count()).select_from(consumers).where(*conditions).correlate(None)
    statement = (
        sa.select(
            allocations.c.resource_class,
            sa.func.sum(allocations.c.used),
            counted.scalar_subquery(),
        )
        .join(consumers, consumers.c.id == allocations.c.consumer_id)
        .where(*conditions)
        .group_by(allocations.c.resource_class)
    )
    group: dict[str, int] = {}
    for resource_class, amount, count in connection.execute(statement):
        group |= {COUNT: count, resource_class: int(amount)}
    return {ALL: group} if group else {}
