"""Instances and their tags, in a database of one's own."""

import collections
import copy
import dataclasses
import functools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from steelyard import errors
from steelyard.stores import Store
from steelyard.tags import model, ownership
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.model import instances, marks, operations, tags
from steelyard.tags.states import Change, Instance, Key, Kind, Mark, Operation, State, Status

AnswerT = TypeVar("AnswerT")

_Rows = dict[tuple[int, str, str], dict[str, Any]]
"""Fields of rows, by the number of the instance, the prefix and the name."""

# Keys in one statement.
_AT_ONCE = 1000

_LONGEST = {"id": 64, "name": 255, "project": 255, "user": 255}


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """An instance as it was at one moment."""

    number: int
    generation: int
    instance: Instance
    state: State

    @property
    def as_it_was(self) -> tuple[object, ...]:
        """By what one sees that it has been changed since."""
        return self.number, self.generation, self.state.horizon, self.instance


class TagStore(Store):
    """What is known of tags; each change is done as a whole or not at all.

    ``where`` is a URL, an engine, or a connection whose transaction it is to work inside. Changes
    of one instance are done one after the other, by a lock on its row.

    The store of a service changes nothing in a database that belongs to another backend than the
    service's. A store that is used by itself knows no backend, and does not check that.
    """

    metadata = model.metadata
    version_table = "steelyard_tags_version"
    migrations = "steelyard.tags:migrations"
    _writer: ownership.Writer | None = None

    def written_by(self, writer: ownership.Writer) -> Self:
        """Return a store on the same database that is written for the backend of the writer.

        Instead of changing anything, it raises WrongBackend unless that backend is recorded.
        """
        store = copy.copy(self)
        store._writer = writer
        return store

    def in_a_transaction(self, work: Callable[[sa.Connection], AnswerT]) -> AnswerT:
        if self._writer is None:
            return super().in_a_transaction(work)
        writer = self._writer.identity()  # may ask the backend, so it comes before the transaction

        def checked(connection: sa.Connection) -> AnswerT:
            ownership.check_until_commit(connection, writer)
            return work(connection)

        return super().in_a_transaction(checked)

    def check_backend(self) -> None:
        """Ask the writer's backend, and raise WrongBackend unless it is the recorded one."""
        if self._writer is not None:
            self.reading(functools.partial(ownership.check, writer=self._writer.ask()))

    def backend(self) -> BackendIdentity | None:
        """Return the backend that the database belongs to, or None if none is recorded.

        The tables may be old or missing.
        """
        return self.reading(ownership.recorded_if_any)

    def unfinished(self) -> int:
        """Return the number of unfinished operations."""
        return self.reading(ownership.unfinished)

    def record_backend(self, identity: BackendIdentity) -> None:
        """Record the backend that the database belongs to.

        Raises WrongBackend if another one is recorded.
        """
        super().in_a_transaction(functools.partial(ownership.record, identity=identity))

    def rename_backend(self, identity: BackendIdentity) -> None:
        """Record the new name of the recorded backend, whose jobs keep their numbers."""
        super().in_a_transaction(functools.partial(ownership.rename, identity=identity))

    def move_to_backend(self, identity: BackendIdentity, *, drop_unfinished: bool = False) -> None:
        """Record another backend that has the instances now, and forget the former one's jobs.

        Raises Conflict while operations are unfinished, unless they are to be dropped.
        """

        def work(connection: sa.Connection) -> None:
            ownership.move(connection, identity, drop_unfinished=drop_unfinished)
            _forget_jobs(connection)

        super().in_a_transaction(work)

    def register(self, instance: Instance, change: Change | None = None) -> None:
        """Keeps an instance that is not known yet, with what its creation begins."""
        check_instance(instance)

        def keep(connection: sa.Connection) -> None:
            known = sa.select(instances).where(
                (instances.c.id == instance.id) | (instances.c.name == instance.name)
            )
            if connection.execute(known).first() is not None:
                raise _taken(instance)
            number = _insert(connection, instance)
            if change is not None:
                _write(connection, [(number, State(), change)])

        self.in_a_transaction(keep)

    def forget(self, instance: str) -> None:
        """Removes the instance and all that is known of its tags."""

        def work(connection: sa.Connection) -> None:
            row = self._locked(connection, "id", instance)
            if row is None:
                raise _unknown(instance)
            _forget(connection, [row.number])

        self.in_a_transaction(work)

    def instance(self, instance: str) -> Instance:
        """The instance with the id; NotFound if there is none."""
        return self.reading(lambda connection: _as_instance(_row_of(connection, instance)))

    def instances(self) -> list[Instance]:
        """All of them, by id."""
        found = sa.select(instances).order_by(instances.c.id)
        return self.reading(
            lambda connection: [_as_instance(row) for row in connection.execute(found)]
        )

    def count(self) -> int:
        """How many instances there are."""
        found = sa.select(sa.func.count()).select_from(instances)
        return self.reading(lambda connection: int(connection.execute(found).scalar_one()))

    def snapshots(self, size: int, after: str = "") -> list[Snapshot]:
        """The next so many instances after the one with the id, in the order of their ids."""
        page = sa.select(instances).where(instances.c.id > after)
        return self._snapshots(page.order_by(instances.c.id).limit(size))

    def snapshots_of(self, ids: Collection[str]) -> list[Snapshot]:
        """Those of the instances that there are."""
        return self._snapshots(sa.select(instances).where(instances.c.id.in_(ids)))

    def _snapshots(self, found: sa.Select[Any]) -> list[Snapshot]:
        def read(connection: sa.Connection) -> list[Snapshot]:
            rows = connection.execute(found).all()
            states = _states(connection, rows)
            return [
                Snapshot(row.number, row.generation, _as_instance(row), states[row.number])
                for row in rows
            ]

        return self.reading(read)

    def change_unchanged(self, changes: Sequence[tuple[Snapshot, Change]]) -> set[str]:
        """Changes those instances that are still as they were; the ids of the others."""

        def work(connection: sa.Connection) -> set[str]:
            numbers = [was.number for was, _ in changes]
            now = (
                sa.select(instances)
                .where(instances.c.number.in_(numbers))
                .order_by(instances.c.number)
                .with_for_update()
            )
            # Of whose the row is, too: SQLite gives the number of one that has gone to another.
            same = {_as_it_is(row) for row in connection.execute(now)}
            still = [each for each in changes if each[0].as_it_was in same]
            _write(connection, [(was.number, was.state, change) for was, change in still])
            return {was.instance.id for was, _ in changes if was.as_it_was not in same}

        return self.in_a_transaction(work)

    def state(self, instance: str, being: Instance | None = None) -> State:
        """What is known of the instance's tags; NotFound if it is no longer the given one."""

        def read(connection: sa.Connection) -> State:
            row = _row_of(connection, instance)
            _check_same(_as_instance(row), being)
            return _state(connection, row)

        return self.reading(read)

    def tags(self, instance: str, prefix: str, being: Instance | None = None) -> dict[str, Status]:
        """The tags of one owner, by name; NotFound if the instance is no longer the given one."""

        def read(connection: sa.Connection) -> dict[str, Status]:
            row = _row_of(connection, instance)
            _check_same(_as_instance(row), being)
            mine = sa.select(tags.c.name, tags.c.status).where(
                tags.c.instance_id == row.number, tags.c.prefix == prefix
            )
            found = ((each.name, Status(each.status)) for each in connection.execute(mine))
            return dict(sorted(found))

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
            row = self._locked(connection, "id", instance)
            if row is None:
                raise _unknown(instance)
            _check_same(_as_instance(row), being)
            state = _state(connection, row)
            change, answer = decide(state)
            _write(connection, [(row.number, state, change)])
            return answer

        return self.in_a_transaction(work)

    def change_named(self, name: str, decide: Callable[[State], Change]) -> bool:
        """The same for the instance that the backend calls so; False if none is known."""

        def work(connection: sa.Connection) -> bool:
            row = self._locked(connection, "name", name)
            if row is None:
                return False
            state = _state(connection, row)
            _write(connection, [(row.number, state, decide(state))])
            return True

        return self.in_a_transaction(work)

    def record_job(self, operation: str, job: int) -> None:
        """Keeps the number of the job, unless its outcome has come already.

        The operation is the writer's own, so its backend is not checked again.
        """
        numbered = sa.update(operations).where(operations.c.id == operation).values(job=job)
        super().in_a_transaction(lambda connection: connection.execute(numbered))

    def last_job(self) -> int:
        """The greatest number of a job that is known; 0 if none is."""
        greatest = [
            sa.select(sa.func.max(column))
            for column in (instances.c.horizon, operations.c.job, marks.c.job)
        ]

        def read(connection: sa.Connection) -> int:
            return max(connection.execute(each).scalar() or 0 for each in greatest)

        return self.reading(read)

    def forget_jobs(self) -> None:
        """Forgets all jobs, and what has been seen of them.

        What was under way is left to reconcile. So is whether an instance has been created: nobody
        may keep one that never was.
        """
        self.in_a_transaction(_forget_jobs)

    def pending(self) -> list[tuple[Instance, Operation]]:
        """What is under way, oldest first, and where."""
        of = [column.label(f"of_{column.name}") for column in instances.c]
        found = (
            sa.select(operations, *of)
            .join(instances, instances.c.number == operations.c.instance_id)
            .order_by(operations.c.begun, operations.c.id)
        )
        return self.reading(
            lambda connection: [
                (
                    Instance(row.of_id, row.of_name, row.of_project, row.of_user),
                    _as_operation(row),
                )
                for row in connection.execute(found)
            ]
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

    def _locked(self, connection: sa.Connection, field: str, value: str) -> Any:
        """The row of the instance, once it is the caller's turn; None if there is none.

        A caller's transaction may go on seeing what was there at its first look: then nothing can
        be decided in it. PostgreSQL says so by itself.
        """
        if not _possible(field, value):
            return None
        this = sa.select(instances).where(instances.c[field] == value)
        row = connection.execute(this.with_for_update()).first()
        if self.inside_a_transaction and connection.execute(this).first() != row:
            raise errors.ServiceError(
                f"the tags of {value!r:.100} have been changed since this transaction has begun: "
                f"roll it back, and begin it again"
            )
        return row


def check_instance(instance: Instance) -> None:
    """Raises BadRequest for what cannot be kept."""
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


def _row_of(connection: sa.Connection, instance: str) -> Any:
    this = sa.select(instances).where(instances.c.id == instance)
    row = connection.execute(this).first() if _possible("id", instance) else None
    if row is None:
        raise _unknown(instance)
    return row


def _check_same(found: Instance, being: Instance | None) -> None:
    if being not in (None, found):
        raise _unknown(found.id)


def _unknown(instance: str) -> errors.NotFound:
    return errors.NotFound(f"there is no instance {instance!r:.100}")


def _as_instance(row: Any) -> Instance:
    return Instance(row.id, row.name, row.project, row.user)


def _as_it_is(row: Any) -> tuple[object, ...]:
    return row.number, row.generation, row.horizon, _as_instance(row)


def _prune(connection: sa.Connection, number: int, moment: float) -> int:
    this = sa.update(instances).where(instances.c.number == number)
    connection.execute(this.values(generation=instances.c.generation + 1))
    old = sa.delete(marks).where(marks.c.instance_id == number, marks.c.seen < moment)
    return connection.execute(old).rowcount


def _state(connection: sa.Connection, row: Any) -> State:
    return _states(connection, [row])[row.number]


def _states(connection: sa.Connection, rows: Sequence[Any]) -> dict[int, State]:
    """The states of the instances with these rows, by their numbers."""
    numbers = [row.number for row in rows]
    there: dict[int, dict[Key, Status]] = {number: {} for number in numbers}
    for row in _of(connection, tags, numbers):
        there[row.instance_id][row.prefix, row.name] = Status(row.status)
    pending: dict[int, list[Operation]] = {number: [] for number in numbers}
    for row in _of(connection, operations, numbers, "begun", "id"):
        pending[row.instance_id].append(_as_operation(row))
    seen: dict[int, dict[Key, Mark]] = {number: {} for number in numbers}
    for row in _of(connection, marks, numbers):
        seen[row.instance_id][row.prefix, row.name] = Mark(row.job, row.there)
    return {
        row.number: State(
            there[row.number], tuple(pending[row.number]), seen[row.number], row.horizon
        )
        for row in rows
    }


def _of(
    connection: sa.Connection, table: sa.Table, numbers: Sequence[int], *order: str
) -> Iterable[Any]:
    found = sa.select(table).where(table.c.instance_id.in_(numbers))
    return connection.execute(found.order_by(*(table.c[name] for name in order)))


def _as_operation(row: Any) -> Operation:
    return Operation(row.id, Kind(row.kind), row.prefix, tuple(row.names), row.begun, row.job)


def _write(connection: sa.Connection, changes: Iterable[tuple[int, State, Change]]) -> None:
    """Writes what becomes of the instances, which are locked and in these states."""
    real = [each for each in changes if each[2] != Change()]
    _forget(connection, [number for number, _, change in real if change.forgotten])
    kept = [each for each in real if not each[2].forgotten]
    _write_instances(connection, [(number, change) for number, _, change in kept])
    for table, gone in (
        (tags, [(number, *key) for number, _, change in kept for key in change.removed]),
        (marks, [(number, *key) for number, _, change in kept for key in change.unmarked]),
    ):
        for these in _at(table, gone):
            connection.execute(sa.delete(table).where(these))
    _write_operations(connection, [(number, change) for number, _, change in kept])
    statuses: _Rows = {}
    seen: _Rows = {}
    now = time.time()
    for number, _, change in kept:
        for key, status in change.put.items():
            statuses[number, *key] = {"status": status.value}
        for key, mark in change.marked.items():
            seen[number, *key] = {"job": mark.job, "there": mark.there, "seen": now}
    _put(connection, tags, statuses, {(n, *key) for n, state, _ in kept for key in state.tags})
    _put(connection, marks, seen, {(n, *key) for n, state, _ in kept for key in state.marks})


def _write_instances(connection: sa.Connection, changes: Iterable[tuple[int, Change]]) -> None:
    horizons = collections.defaultdict(list)
    changed = []
    for number, change in changes:
        if change.horizon is not None:
            horizons[change.horizon].append(number)
        if dataclasses.replace(change, horizon=None) != Change():
            changed.append(number)
    for horizon, numbers in horizons.items():
        these = sa.update(instances).where(instances.c.number.in_(numbers))
        connection.execute(these.values(horizon=horizon))
    if changed:
        these = sa.update(instances).where(instances.c.number.in_(changed))
        connection.execute(these.values(generation=instances.c.generation + 1))


def _write_operations(connection: sa.Connection, changes: Sequence[tuple[int, Change]]) -> None:
    ended = [operation for _, change in changes for operation in change.ended]
    for start in range(0, len(ended), _AT_ONCE):
        these = operations.c.id.in_(ended[start : start + _AT_ONCE])
        connection.execute(sa.delete(operations).where(these))
    begun = [_row(number, each) for number, change in changes for each in change.begun]
    if begun:
        connection.execute(sa.insert(operations), begun)


def _forget_jobs(connection: sa.Connection) -> None:
    changed = sa.update(instances)
    connection.execute(changed.values(horizon=0, generation=instances.c.generation + 1))
    creation = operations.c.kind == Kind.CREATE.value
    connection.execute(sa.delete(operations).where(~creation))
    connection.execute(sa.update(operations).where(creation).values(job=None, begun=0.0))
    connection.execute(sa.delete(marks))


def _forget(connection: sa.Connection, numbers: Sequence[int]) -> None:
    if not numbers:
        return
    for table in (tags, operations, marks):
        connection.execute(sa.delete(table).where(table.c.instance_id.in_(numbers)))
    connection.execute(sa.delete(instances).where(instances.c.number.in_(numbers)))


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
    rows: _Rows,
    there: Collection[tuple[int, str, str]],
) -> None:
    """Updates the rows that are there and inserts the others."""
    alike = collections.defaultdict(list)
    for where, fields in rows.items():
        if where in there:
            alike[tuple(fields.items())].append(where)
    for values, keys in alike.items():
        for these in _at(table, keys):
            connection.execute(sa.update(table).where(these).values(dict(values)))
    added = [
        {"instance_id": number, "prefix": prefix, "name": name, **fields}
        for (number, prefix, name), fields in rows.items()
        if (number, prefix, name) not in there
    ]
    if added:
        connection.execute(sa.insert(table), added)


def _at(table: sa.Table, where: Iterable[tuple[int, str, str]]) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions for the rows with these keys.

    The instances are named beside them: MariaDB finds no rows by several columns at once.
    """
    key = sa.tuple_(table.c.instance_id, table.c.prefix, table.c.name)
    keys = list(where)
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        numbers = {number for number, _, _ in some}
        yield sa.and_(table.c.instance_id.in_(numbers), key.in_(some))
