"""Consumers and what is allocated to them, in a database of one's own."""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from steelyard import errors
from steelyard.consumers import bodies, model
from steelyard.consumers.bodies import Write
from steelyard.consumers.model import allocations, consumer_types, consumers
from steelyard.consumers.names import ALL, UNKNOWN, ConsumerType
from steelyard.consumers.usages import COUNT, added, count_of
from steelyard.stores import Store


class ConsumerStore(Store):
    """Writes, reads and counts; each write is done as a whole or not at all.

    ``where`` is a URL, an engine, or a connection whose transaction it is to work inside.
    """

    metadata = model.metadata
    version_table = "steelyard_consumers_version"
    migrations = "steelyard.consumers:migrations"
    # Tables of Placement's that we do not have; ours have the names of others of its tables.
    foreign_tables = frozenset({"resource_providers", "inventories", "placement_aggregates"})

    def put_allocations(self, consumer: str, body: object) -> None:
        """What ``PUT /allocations/{consumer}`` does."""
        self._write([bodies.put(consumer, body)])

    def post_allocations(self, body: object) -> None:
        """What ``POST /allocations`` does, for all of the consumers or for none."""
        self._write(bodies.post(body))

    def delete_allocations(self, consumer: str) -> None:
        """What ``DELETE /allocations/{consumer}`` does, whatever the generation; or NotFound."""
        uuid = bodies.check_uuid("consumer", consumer)
        if not self.in_a_transaction(lambda connection: _deleted(connection, uuid)):
            raise errors.NotFound(f"consumer {uuid} has no allocations")

    def reshape(self, body: object) -> None:
        """Replaces the allocations of many consumers at once; the body is that of a POST."""
        self._write(bodies.reshape(body))

    def get_allocations(self, consumer: str) -> dict[str, Any]:
        """What ``GET /allocations/{consumer}`` answers, which can be put back."""
        uuid = bodies.check_uuid("consumer", consumer)
        return self.reading(lambda connection: _allocations_of(connection, uuid))

    def usages(
        self, project_id: str, user_id: str | None = None, consumer_type: str | None = None
    ) -> dict[str, Any]:
        """What ``GET /usages`` answers: by type, for one type, or for all together."""
        bodies.check_owner(project_id, user_id)
        only = None if consumer_type in (None, ALL) else ConsumerType(str(consumer_type))
        used = self.reading(lambda connection: _usages(connection, project_id, user_id, only))
        if consumer_type == ALL:
            used = {ALL: added(used.values())} if used else {}
        return {"usages": used}

    def count(self, project_id: str, user_id: str | None = None, consumer_type: str = ALL) -> int:
        """How many consumers of the type a project, or a user of it, has."""
        return count_of(self.usages(project_id, user_id, consumer_type))

    def types(self) -> dict[str, int]:
        """Every type that has been used, with how many consumers of it there are."""
        return self.reading(_counted_types)

    def _write(self, writes: Sequence[Write]) -> None:
        # In one order, whoever writes: two transactions that wait for each other cannot be.
        in_order = sorted(writes, key=lambda write: write.consumer)

        def write_all(connection: sa.Connection) -> None:
            types = _ids_of_types(connection, {write.type for write in writes})
            for write in in_order:
                _write(connection, write, types[write.type])

        self.in_a_transaction(write_all)


def _ids_of_types(
    connection: sa.Connection, types: Iterable[ConsumerType]
) -> dict[ConsumerType, int]:
    """The ids of the types, of which those that are new are created."""
    names = sorted(kind.name for kind in types)
    known = sa.select(consumer_types.c.name, consumer_types.c.id).where(
        consumer_types.c.name.in_(names)
    )
    ids = {row.name: row.id for row in connection.execute(known)}
    if len(ids) < len(names):
        missing = [{"name": name} for name in names if name not in ids]
        # Whoever creates types takes turns by a row that is always there. In InnoDB, those who wait
        # for the same new row would wait for each other once it has been taken back.
        turn = sa.select(consumer_types.c.id).where(consumer_types.c.name == UNKNOWN.name)
        connection.execute(turn.with_for_update())
        connection.execute(_insert_unless_there(connection), missing)
        # A lock sees what others have just committed, where a caller's transaction else does not.
        latest = known.with_for_update(read=True)
        ids = {row.name: row.id for row in connection.execute(latest)}
    return {ConsumerType(name): number for name, number in ids.items()}


def _insert_unless_there(connection: sa.Connection) -> sa.Insert:
    """An insert that another one of the same name does not turn into an error."""
    if connection.dialect.name in ("mysql", "mariadb"):
        return mysql.insert(consumer_types).prefix_with("IGNORE")
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    ignoring: sa.Insert = dialect.insert(consumer_types).on_conflict_do_nothing()
    return ignoring


def _write(connection: sa.Connection, write: Write, type_id: int) -> None:
    identity = _claimed(connection, write, type_id)
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
    """Changes the rows that differ from what is wanted, and no other.

    InnoDB locks the neighbours of a row that is removed and put back.
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
    """The id and the amount of each row, as they are now, by provider and resource class."""
    found = connection.execute(
        sa.select(allocations).where(allocations.c.consumer_id == identity).with_for_update()
    )
    return {(row.resource_provider, row.resource_class): (row.id, row.used) for row in found}


def _deleted(connection: sa.Connection, uuid: str) -> bool:
    """Whether the consumer was there; it is gone now."""
    mine = consumers.c.uuid == uuid
    identity = sa.select(consumers.c.id).where(mine)
    # First the consumer, then its allocations, as whoever writes: nobody waits for the other.
    if connection.execute(identity.with_for_update()).first() is None:
        return False
    # By the UUID all along: SQLite gives the id of who has gone to who comes next.
    of_mine = allocations.c.consumer_id == identity.scalar_subquery()
    connection.execute(sa.delete(allocations).where(of_mine))
    return connection.execute(sa.delete(consumers).where(mine)).rowcount == 1


def _remove(connection: sa.Connection, identity: int) -> None:
    connection.execute(sa.delete(allocations).where(allocations.c.consumer_id == identity))
    connection.execute(sa.delete(consumers).where(consumers.c.id == identity))


def _claimed(connection: sa.Connection, write: Write, type_id: int) -> int | None:
    """The consumer's id, once it is the write's turn; None if there is nothing to write to."""
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
            raise _written_meanwhile(write) from error
    found: int = connection.execute(sa.select(consumers.c.id).where(mine)).scalar_one()
    return found


def _generation_without_allocations(connection: sa.Connection, write: Write) -> int | None:
    """The generation of a consumer that has nothing and can be taken over; None if none is there.

    The store leaves none behind. But whoever reads one is told that it is not there.
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


def _conflict(connection: sa.Connection, write: Write) -> errors.Conflict:
    generation = sa.select(consumers.c.generation).where(consumers.c.uuid == write.consumer)
    seen = connection.execute(generation).scalar()
    # A lock sees what is there now, where a caller's transaction else does not.
    now = connection.execute(generation.with_for_update(read=True)).scalar()
    if now == seen != write.generation:
        return errors.Conflict(
            f"consumer {write.consumer} has the generation {_shown(now)}, not "
            f"{_shown(write.generation)}; read its allocations again"
        )
    return _written_meanwhile(write)


def _written_meanwhile(write: Write) -> errors.Conflict:
    """A transaction that is kept stable by the database may never see what others have written."""
    return errors.Conflict(
        f"consumer {write.consumer} has been written by somebody else since this transaction "
        f"began; read its allocations again, in a new one"
    )


def _shown(generation: int | None) -> str:
    return "null" if generation is None else str(generation)


def _allocations_of(connection: sa.Connection, uuid: str) -> dict[str, Any]:
    rows = connection.execute(
        sa.select(consumers, consumer_types.c.name, allocations)
        .join(allocations, allocations.c.consumer_id == consumers.c.id)
        .join(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
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
            "consumer_type": row.name,
        }
    return found


def _counted_types(connection: sa.Connection) -> dict[str, int]:
    counted = (
        sa.select(consumers.c.consumer_type_id, sa.func.count().label("consumers"))
        .group_by(consumers.c.consumer_type_id)
        .subquery()
    )
    statement = (
        sa.select(consumer_types.c.name, sa.func.coalesce(counted.c.consumers, 0))
        .outerjoin(counted, counted.c.consumer_type_id == consumer_types.c.id)
        .order_by(consumer_types.c.name)
    )
    return dict(connection.execute(statement).all())


def _usages(
    connection: sa.Connection, project: str, user: str | None, only: ConsumerType | None
) -> dict[str, dict[str, int]]:
    """What is used and by how many consumers, by type; in one statement, so at one moment."""
    theirs = [consumers.c.project == project]
    if user is not None:
        theirs.append(consumers.c.user == user)
    if only is not None:
        named = sa.select(consumer_types.c.id).where(consumer_types.c.name == only.name)
        theirs.append(consumers.c.consumer_type_id == named.scalar_subquery())
    kind = consumers.c.consumer_type_id
    # Each consumer has allocations, for one without is removed: it can be counted by itself.
    counted = (
        sa.select(kind, sa.func.count().label("consumers")).where(*theirs).group_by(kind).subquery()
    )
    # Millions of rows are grouped by numbers; the names come to the few that are left.
    summed = (
        sa.select(kind, allocations.c.resource_class, sa.func.sum(allocations.c.used).label("used"))
        .join(allocations, allocations.c.consumer_id == consumers.c.id)
        .where(*theirs)
        .group_by(kind, allocations.c.resource_class)
        .subquery()
    )
    statement = (
        sa.select(
            consumer_types.c.name, counted.c.consumers, summed.c.resource_class, summed.c.used
        )
        .join(summed, summed.c.consumer_type_id == consumer_types.c.id)
        .join(counted, counted.c.consumer_type_id == consumer_types.c.id)
    )
    used: dict[str, dict[str, int]] = {}
    for name, count, resource_class, amount in connection.execute(statement):
        used.setdefault(name, {COUNT: count})[resource_class] = int(amount)
    return used
