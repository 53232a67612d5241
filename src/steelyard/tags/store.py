"""Instances and their tags, in a database of one's own."""

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import sqlalchemy as sa

from steelyard import errors
from steelyard.stores import Store
from steelyard.tags import model
from steelyard.tags.model import instances, marks, operations, tags
from steelyard.tags.states import Change, Instance, Key, Kind, Mark, Operation, State, Status

AnswerT = TypeVar("AnswerT")

_LONGEST = {"id": 64, "name": 255, "project": 255, "user": 255}


class TagStore(Store):
    """What is known of tags; each change is done as a whole or not at all.

    ``where`` is a URL, an engine, or a connection whose transaction it is to work inside. Changes
    of one instance are done one after the other, by a lock on its row.
    """

    metadata = model.metadata
    version_table = "steelyard_tags_version"
    migrations = "steelyard.tags:migrations"

    def register(self, instance: Instance, change: Change | None = None) -> None:
        """Keeps an instance that is not known yet, with what its creation begins."""
        _check(instance)

        def keep(connection: sa.Connection) -> None:
            known = sa.select(instances).where(
                (instances.c.id == instance.id) | (instances.c.name == instance.name)
            )
            if connection.execute(known).first() is not None:
                raise _taken(instance)
            number = _insert(connection, instance)
            if change is not None:
                _apply(connection, number, change)

        self.in_a_transaction(keep)

    def forget(self, instance: str) -> None:
        """Removes the instance and all that is known of its tags."""

        def work(connection: sa.Connection) -> None:
            number = self._locked(connection, "id", instance)
            if number is not None:
                _forget(connection, number)

        self.in_a_transaction(work)

    def instance(self, instance: str) -> Instance:
        """The instance with the id; NotFound if there is none."""
        return self.reading(lambda connection: _instance(connection, instance)[1])

    def instances(self) -> list[Instance]:
        """All of them, by id."""
        found = sa.select(instances).order_by(instances.c.id)
        return self.reading(
            lambda connection: [_as_instance(row) for row in connection.execute(found)]
        )

    def state(self, instance: str, being: Instance | None = None) -> State:
        """What is known of the instance's tags; NotFound if it is no longer the given one."""

        def read(connection: sa.Connection) -> State:
            number, found = _instance(connection, instance)
            _check_same(found, being)
            return _state(connection, number)

        return self.reading(read)

    def change(
        self,
        instance: str,
        decide: Callable[[State], tuple[Change, AnswerT]],
        being: Instance | None = None,
    ) -> AnswerT:
        """Does what is decided upon the state, which nobody else changes meanwhile.

        NotFound if the instance is no longer the given one: an id can be used another time.
        """

        def work(connection: sa.Connection) -> AnswerT:
            number = self._locked(connection, "id", instance)
            if number is None:
                raise _unknown(instance)
            _check_same(_instance(connection, instance)[1], being)
            change, answer = decide(_state(connection, number))
            _apply(connection, number, change)
            return answer

        return self.in_a_transaction(work)

    def change_named(self, name: str, decide: Callable[[State], Change]) -> bool:
        """The same for the instance that the backend calls so; False if none is known."""

        def work(connection: sa.Connection) -> bool:
            number = self._locked(connection, "name", name)
            if number is None:
                return False
            _apply(connection, number, decide(_state(connection, number)))
            return True

        return self.in_a_transaction(work)

    def record_job(self, operation: str, job: int) -> None:
        """Keeps the number of the job, unless its outcome has come already."""
        numbered = sa.update(operations).where(operations.c.id == operation).values(job=job)
        self.in_a_transaction(lambda connection: connection.execute(numbered))

    def pending(self) -> list[tuple[str, Operation]]:
        """What is under way, oldest first, with what the backend calls the instance."""
        found = (
            sa.select(operations, instances.c.name)
            .join(instances, instances.c.number == operations.c.instance_id)
            .order_by(operations.c.begun, operations.c.id)
        )
        return self.reading(
            lambda connection: [(row.name, _as_operation(row)) for row in connection.execute(found)]
        )

    def prune(self, older_than: float) -> int:
        """Forgets marks of jobs that were seen longer ago than so many seconds; how many.

        One instance after the other: a mark that is just being renewed is not lost.
        """
        moment = time.time() - older_than
        old = sa.select(marks.c.instance_id).where(marks.c.seen < moment).distinct()
        numbers = self.reading(lambda connection: sorted(connection.execute(old).scalars()))
        return sum(
            self.in_a_transaction(functools.partial(_prune, number=number, moment=moment))
            for number in numbers
        )

    def _locked(self, connection: sa.Connection, field: str, value: str) -> int | None:
        """The number of the instance, once it is the caller's turn; None if there is none.

        A caller's transaction may go on seeing what was there at its first look: then nothing can
        be decided in it. PostgreSQL says so by itself.
        """
        if not _possible(field, value):
            return None
        this = sa.select(instances.c.number, instances.c.generation).where(
            instances.c[field] == value
        )
        row = connection.execute(this.with_for_update()).first()
        if isinstance(self._database, sa.Connection) and connection.execute(this).first() != row:
            raise errors.ServiceError(
                f"the tags of {value!r:.100} have been changed since this transaction has begun: "
                f"roll it back, and begin it again"
            )
        return None if row is None else int(row.number)


def _check(instance: Instance) -> None:
    for field, longest in _LONGEST.items():
        value = getattr(instance, field)
        if not _possible(field, value):
            raise errors.BadRequest(
                f"the instance's {field} is {value!r:.100}; it is 1 to {longest} printable "
                f"characters"
            )


def _possible(field: str, value: object) -> bool:
    """Whether an instance can have this; a database may fail at what it cannot keep."""
    return isinstance(value, str) and 0 < len(value) <= _LONGEST[field] and value.isprintable()


def _taken(instance: Instance) -> errors.Conflict:
    return errors.Conflict(
        f"there is already an instance with the id {instance.id!r} or the name {instance.name!r}"
    )


def _insert(connection: sa.Connection, instance: Instance) -> int:
    values = {
        "id": instance.id,
        "name": instance.name,
        "project": instance.project,
        "user": instance.user,
    }
    try:
        key = connection.execute(sa.insert(instances).values(values)).inserted_primary_key
    except sa.exc.IntegrityError as error:
        raise _taken(instance) from error
    assert key is not None  # noqa: S101  (it has just been inserted)
    return int(key[0])


def _instance(connection: sa.Connection, instance: str) -> tuple[int, Instance]:
    this = sa.select(instances).where(instances.c.id == instance)
    row = connection.execute(this).first() if _possible("id", instance) else None
    if row is None:
        raise _unknown(instance)
    return row.number, _as_instance(row)


def _check_same(found: Instance, being: Instance | None) -> None:
    if being not in (None, found):
        raise _unknown(found.id)


def _unknown(instance: str) -> errors.NotFound:
    return errors.NotFound(f"there is no instance {instance!r:.100}")


def _as_instance(row: Any) -> Instance:
    return Instance(row.id, row.name, row.project, row.user)


def _prune(connection: sa.Connection, number: int, moment: float) -> int:
    this = sa.select(instances.c.number).where(instances.c.number == number)
    connection.execute(this.with_for_update())
    old = sa.delete(marks).where(marks.c.instance_id == number, marks.c.seen < moment)
    return connection.execute(old).rowcount


def _state(connection: sa.Connection, number: int) -> State:
    there = connection.execute(sa.select(tags).where(tags.c.instance_id == number))
    pending = connection.execute(
        sa.select(operations)
        .where(operations.c.instance_id == number)
        .order_by(operations.c.begun, operations.c.id)
    )
    seen = connection.execute(sa.select(marks).where(marks.c.instance_id == number))
    return State(
        dict(sorted(((row.prefix, row.name), Status(row.status)) for row in there)),
        tuple(_as_operation(row) for row in pending),
        {(row.prefix, row.name): Mark(row.job, row.there) for row in seen},
    )


def _as_operation(row: Any) -> Operation:
    return Operation(row.id, Kind(row.kind), row.prefix, tuple(row.names), row.begun, row.job)


def _apply(connection: sa.Connection, number: int, change: Change) -> None:
    if change == Change():
        return
    if change.forgotten:
        _forget(connection, number)
        return
    changed = sa.update(instances).where(instances.c.number == number)
    connection.execute(changed.values(generation=instances.c.generation + 1))
    if change.removed:
        _delete(connection, tags, number, change.removed)
    if change.put:
        _put(connection, tags, number, {key: {"status": s.value} for key, s in change.put.items()})
    if change.ended:
        connection.execute(sa.delete(operations).where(operations.c.id.in_(change.ended)))
    if change.begun:
        connection.execute(sa.insert(operations), [_row(number, each) for each in change.begun])
    if change.marked:
        now = time.time()
        seen = {
            key: {"job": mark.job, "there": mark.there, "seen": now}
            for key, mark in change.marked.items()
        }
        _put(connection, marks, number, seen)


def _forget(connection: sa.Connection, number: int) -> None:
    for table in (tags, operations, marks):
        connection.execute(sa.delete(table).where(table.c.instance_id == number))
    connection.execute(sa.delete(instances).where(instances.c.number == number))


def _row(number: int, operation: Operation) -> dict[str, Any]:
    return {
        "id": operation.id,
        "instance_id": number,
        "kind": operation.kind.value,
        "prefix": operation.prefix,
        "names": list(operation.names),
        "job": operation.job,
        "begun": operation.begun,
    }


def _put(
    connection: sa.Connection,
    table: sa.Table,
    number: int,
    rows: Mapping[Key, Mapping[str, Any]],
) -> None:
    """Updates the rows that are there and inserts the others; the instance is locked."""
    mine = sa.select(table.c.prefix, table.c.name).where(table.c.instance_id == number)
    there = {(row.prefix, row.name) for row in connection.execute(mine)}
    changed = [
        {"its_prefix": prefix, "its_name": name, **rows[prefix, name]}
        for prefix, name in rows.keys() & there
    ]
    if changed:
        this = sa.and_(
            table.c.instance_id == number,
            table.c.prefix == sa.bindparam("its_prefix"),
            table.c.name == sa.bindparam("its_name"),
        )
        connection.execute(sa.update(table).where(this), changed)
    added = [
        {"instance_id": number, "prefix": prefix, "name": name, **fields}
        for (prefix, name), fields in rows.items()
        if (prefix, name) not in there
    ]
    if added:
        connection.execute(sa.insert(table), added)


def _delete(connection: sa.Connection, table: sa.Table, number: int, keys: Iterable[Key]) -> None:
    for prefix, names in _by_prefix(keys):
        connection.execute(
            sa.delete(table).where(
                table.c.instance_id == number, table.c.prefix == prefix, table.c.name.in_(names)
            )
        )


def _by_prefix(keys: Iterable[Key]) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for prefix, name in keys:
        found.setdefault(prefix, []).append(name)
    yield from found.items()
