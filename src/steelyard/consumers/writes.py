"""Writes to the tables of consumers: the allocations of one consumer are replaced or deleted."""

import sqlalchemy as sa

from steelyard import errors
from steelyard.consumers import type_rows
from steelyard.consumers.bodies import Write
from steelyard.consumers.model import KEY_OF_TYPES, allocations, consumers
from steelyard.sql.database_errors import is_duplicate, violates


def replace(connection: sa.Connection, write: Write, type_id: int | None) -> None:
    """Replace the allocations of the consumer; without resources, delete it.

    ``type_id`` is the id of its type, None if the consumer is deleted. Raises ConcurrentUpdate if
    the generation is not current.
    """
    try:
        identity = _claimed(connection, write, type_id)
    except sa.exc.IntegrityError as error:
        if violates(error, KEY_OF_TYPES):
            raise type_rows.removed_meanwhile(write.type.name) from error
        raise
    if identity is None:
        return
    if write.resources:
        wanted = {
            (provider, name): amount
            for provider, resources in write.resources.items()
            for name, amount in resources.items()
        }
        _allocate(connection, identity, wanted, new=write.generation is None)
    else:
        _remove(connection, identity)


def _allocate(
    connection: sa.Connection, identity: int, wanted: dict[tuple[str, str], int], *, new: bool
) -> None:
    """Change only the rows that differ from the wanted amounts.

    InnoDB locks the neighbours of a row that is deleted and inserted again.
    """
    rows = {} if new else _rows(connection, identity)
    gone = [number for key, (number, _) in rows.items() if key not in wanted]
    if gone:
        connection.execute(sa.delete(allocations).where(allocations.c.id.in_(gone)))
    changed = [
        {"number": rows[key][0], "amount": amount}
        for key, amount in wanted.items()
        if key in rows and rows[key][1] != amount
    ]
    if changed:
        this = allocations.c.id == sa.bindparam("number")
        connection.execute(
            sa.update(allocations).where(this).values(used=sa.bindparam("amount")), changed
        )
    added = [
        {
            "consumer_id": identity,
            "resource_provider": provider,
            "resource_class": name,
            "used": amount,
        }
        for (provider, name), amount in wanted.items()
        if (provider, name) not in rows
    ]
    if added:
        connection.execute(sa.insert(allocations), added)


def _rows(connection: sa.Connection, identity: int) -> dict[tuple[str, str], tuple[int, int]]:
    """Lock the consumer's rows and return the id and amount of each.

    The keys are pairs of provider and resource class.
    """
    found = connection.execute(
        sa.select(allocations).where(allocations.c.consumer_id == identity).with_for_update()
    )
    return {(row.resource_provider, row.resource_class): (row.id, row.used) for row in found}


def delete(connection: sa.Connection, uuid: str) -> bool:
    """Delete the consumer with its allocations and return whether it existed."""
    mine = consumers.c.uuid == uuid
    identity = sa.select(consumers.c.id).where(mine)
    # Lock the consumer before its allocations, as all writers do, so that they cannot deadlock.
    if connection.execute(identity.with_for_update()).first() is None:
        return False
    # Always select by UUID: SQLite may give the id of a deleted consumer to a new one.
    of_mine = allocations.c.consumer_id == identity.scalar_subquery()
    connection.execute(sa.delete(allocations).where(of_mine))
    return connection.execute(sa.delete(consumers).where(mine)).rowcount == 1


def _remove(connection: sa.Connection, identity: int) -> None:
    connection.execute(sa.delete(allocations).where(allocations.c.consumer_id == identity))
    connection.execute(sa.delete(consumers).where(consumers.c.id == identity))


def _claimed(connection: sa.Connection, write: Write, type_id: int | None) -> int | None:
    """Lock the consumer for this write and return its id; None if there is nothing to remove.

    Creates the consumer if it is new, and increments its generation otherwise. Raises
    ConcurrentUpdate if the generation in the write is not the current one.
    """
    fields: dict[str, object] = {}
    if write.resources:
        fields = {"project": write.project, "user": write.user, "consumer_type_id": type_id}
    mine = consumers.c.uuid == write.consumer
    generation = write.generation
    if generation is None:
        generation = _generation_without_allocations(connection, write)
    if generation is not None:
        updated = connection.execute(
            sa.update(consumers)
            .where(mine, consumers.c.generation == generation)
            .values(generation=generation + 1, **fields)
        )
        if updated.rowcount != 1:
            raise _conflict(connection, write)
    elif not write.resources:
        return None
    else:
        try:
            connection.execute(
                sa.insert(consumers).values(uuid=write.consumer, generation=1, **fields)
            )
        except sa.exc.IntegrityError as error:
            if is_duplicate(error):
                raise _written_meanwhile(write) from error
            raise
    found: int = connection.execute(sa.select(consumers.c.id).where(mine)).scalar_one()
    return found


def _generation_without_allocations(connection: sa.Connection, write: Write) -> int | None:
    """Return the generation of a consumer that exists without allocations; None if it is missing.

    The store itself leaves no such consumer. For readers it does not exist, so a write may replace
    it. Raises ConcurrentUpdate if the consumer has allocations.
    """
    has_some = sa.exists().where(allocations.c.consumer_id == consumers.c.id)
    row = connection.execute(
        sa.select(consumers.c.generation, has_some.label("has_some")).where(
            consumers.c.uuid == write.consumer
        )
    ).first()
    if row is not None and row.has_some:
        raise _conflict(connection, write)
    return None if row is None else int(row.generation)


def _conflict(connection: sa.Connection, write: Write) -> errors.ConcurrentUpdate:
    generation = sa.select(consumers.c.generation).where(consumers.c.uuid == write.consumer)
    seen = connection.execute(generation).scalar()
    # A locking read sees the latest commits. A plain read in a caller's REPEATABLE READ transaction
    # does not.
    now = connection.execute(generation.with_for_update(read=True)).scalar()
    if now == seen != write.generation:
        return errors.ConcurrentUpdate(
            f"consumer {write.consumer} has generation {_shown(now)}, not "
            f"{_shown(write.generation)}; read its allocations and retry"
        )
    return _written_meanwhile(write)


def _written_meanwhile(write: Write) -> errors.ConcurrentUpdate:
    """Return the error for a concurrent write that this transaction cannot see.

    In REPEATABLE READ, this transaction may never see it, so the caller must begin a new one.
    """
    return errors.ConcurrentUpdate(
        f"another transaction changed consumer {write.consumer} after this one began; read its "
        f"allocations and retry in a new transaction"
    )


def _shown(generation: int | None) -> str:
    return "null" if generation is None else str(generation)
