"""Writes of new instances, one by one or many at once."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from steelyard import errors
from steelyard.sql.transactions import TryAgain
from steelyard.tags.database.model import instances
from steelyard.tags.states.values import Instance


@dataclasses.dataclass(frozen=True, slots=True)
class Registered:
    """The result of registering many instances at once."""

    new: Sequence[Instance]
    known: Sequence[str]
    """The names of the instances that were registered already."""

    refused: Mapping[str, str]
    """The reasons of those that cannot be registered, by name."""


def insert(connection: sa.Connection, instance: Instance, most: int | None = None) -> int:
    """Insert the instance and return its number.

    Raises Conflict if the id or name is taken, and OverQuota if the project has ``most`` instances.
    """
    taken = errors.Conflict(
        f"the instance id {instance.id!r} or the name {instance.name!r} is taken; choose another"
    )
    known = (instances.c.id == instance.id) | (instances.c.name == instance.name)
    if connection.execute(sa.select(instances).where(known)).first() is not None:
        raise taken
    if most is not None and _count(connection, instance.project) >= most:
        raise errors.OverQuota(
            f"cannot register instance {instance.name!r}: {reached(instance.project, most)}; "
            f"unregister others first"
        )
    try:
        key = connection.execute(
            sa.insert(instances).values(dataclasses.asdict(instance))
        ).inserted_primary_key
    except sa.exc.IntegrityError as error:
        raise taken from error
    assert key is not None  # noqa: S101  (it has just been inserted)
    return int(key[0])


def insert_all(
    connection: sa.Connection, wanted: Sequence[Instance], horizon: int, most: int | None = None
) -> Registered:
    """Insert those instances of one project whose ids and names are free, up to ``most``."""
    ids, names = _taken(connection, wanted)
    known = [each.name for each in wanted if each.name in names]
    free = [each for each in wanted if each.name not in names and each.id not in ids]
    project = wanted[0].project
    room = len(free) if most is None else max(most - _count(connection, project), 0)
    refused = {
        each.name: "its ID is taken" for each in wanted if each.id in ids and each.name not in names
    }
    refused |= {each.name: reached(project, most) for each in free[room:]}
    new = free[:room]
    if new:
        rows = [{**dataclasses.asdict(each), "horizon": horizon} for each in new]
        try:
            connection.execute(sa.insert(instances), rows)
        except sa.exc.IntegrityError as error:
            raise TryAgain("another process registered some of the instances") from error
    return Registered(new, known, refused)


def reached(project: str, most: int | None) -> str:
    """Return the statement that the project has its greatest number of instances."""
    return f"project {project!r:.100} has reached its limit of {most} instances"


def _taken(connection: sa.Connection, wanted: Sequence[Instance]) -> tuple[set[str], set[str]]:
    """Return the ids and the names of these that are taken."""
    ids, names = {each.id for each in wanted}, {each.name for each in wanted}
    found = sa.select(instances.c.id, instances.c.name).where(
        instances.c.id.in_(ids) | instances.c.name.in_(names)
    )
    rows: Sequence[Any] = connection.execute(found).all()
    return {row.id for row in rows} & ids, {row.name for row in rows} & names


def _count(connection: sa.Connection, project: str) -> int:
    of_project = instances.c.project == project
    count = sa.select(sa.func.count()).select_from(instances).where(of_project)
    return int(connection.execute(count).scalar_one())
