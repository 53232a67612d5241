"""Reads and writes of instances and their states on a connection."""

import collections
import dataclasses
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from steelyard import errors
from steelyard.tags.codec import Tag
from steelyard.tags.database import told, watched
from steelyard.tags.database.model import (
    failures,
    instances,
    marks,
    operations,
    tags,
)
from steelyard.tags.states.values import (
    Instance,
    Kind,
    Operation,
    State,
    StateChange,
    Status,
    TagMark,
)

_Rows = dict[tuple[int, str, str], dict[str, Any]]
"""Fields of rows, by the number of the instance, the prefix and the name."""

# The most keys in one statement.
_AT_ONCE = 1000

_LONGEST = {"id": 64, "name": 255, "project": 255, "user": 255}


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """An instance and its state at one moment."""

    number: int
    generation: int
    instance: Instance
    state: State

    @property
    def as_it_was(self) -> tuple[object, ...]:
        """The values that differ if the instance has been changed since."""
        return self.number, self.generation, self.state.horizon, self.instance


def check_instance(instance: Instance) -> None:
    """Raise BadRequest if the database cannot store the instance."""
    for field, longest in _LONGEST.items():
        value = getattr(instance, field)
        if not possible(field, value):
            raise errors.BadRequest(
                f"invalid instance {field} {value!r:.100}: expected 1 to {longest} printable "
                f"characters"
            )


def possible(field: str, value: object) -> bool:
    """Return whether the value is valid for this field of an instance.

    Queries must check this, too: some databases fail for a value that they cannot store.
    """
    return isinstance(value, str) and 0 < len(value) <= _LONGEST[field] and value.isprintable()


def instance_row(connection: sa.Connection, instance: str, being: Instance | None = None) -> Any:
    """Return the row of the instance with the id.

    Raises NotFound if no instance has the id, or if another one than ``being`` has it.
    """
    this = sa.select(instances).where(instances.c.id == instance)
    row = connection.execute(this).first() if possible("id", instance) else None
    if row is None:
        raise unknown(instance)
    check_same(row, being)
    return row


def check_same(row: Any, being: Instance | None) -> None:
    """Raise NotFound if an instance is given and the row is that of another one."""
    if being not in (None, as_instance(row)):
        raise unknown(row.id)


def unknown(instance: str) -> errors.NotFound:
    """Return the error about an unknown id of an instance."""
    return errors.NotFound(f"no instance {instance!r:.100}")


def as_instance(row: Any) -> Instance:
    """Return the instance of the row."""
    return Instance(row.id, row.name, row.project, row.user)


def as_it_is(row: Any) -> tuple[object, ...]:
    """Return the values that differ from those of a snapshot if the instance has changed since."""
    return row.number, row.generation, row.horizon, as_instance(row)


def prune_marks(connection: sa.Connection, number: int, moment: float) -> int:
    """Delete the instance's marks of jobs seen before the moment, and return their number."""
    this = sa.update(instances).where(instances.c.number == number)
    connection.execute(this.values(generation=instances.c.generation + 1))
    old = sa.delete(marks).where(marks.c.instance_id == number, marks.c.seen < moment)
    return connection.execute(old).rowcount


def read_state(connection: sa.Connection, row: Any) -> State:
    """Return the state of the instance with the row."""
    return read_states(connection, [row])[row.number]


def read_states(connection: sa.Connection, rows: Sequence[Any]) -> dict[int, State]:
    """Return the states of the instances with these rows, by their numbers."""
    numbers = [row.number for row in rows]
    there: dict[int, dict[Tag, Status]] = {number: {} for number in numbers}
    for row in _of(connection, tags, numbers):
        there[row.instance_id][Tag(row.prefix, row.name)] = Status(row.status)
    pending: dict[int, list[Operation]] = {number: [] for number in numbers}
    for row in _of(connection, operations, numbers, "begun", "id"):
        pending[row.instance_id].append(_as_operation(row))
    seen: dict[int, dict[Tag, TagMark]] = {number: {} for number in numbers}
    for row in _of(connection, marks, numbers):
        seen[row.instance_id][Tag(row.prefix, row.name)] = TagMark(row.job, row.there)
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
    tags = tuple(Tag(row.prefix, name) for name in row.names)
    return Operation(row.id, Kind(row.kind), row.prefix, tags, row.begun, row.job, row.caller)


def write(connection: sa.Connection, changes: Iterable[tuple[int, State, StateChange]]) -> None:
    """Write the changes of instances, which are given by number with their states.

    The caller must have locked their rows before reading the states.
    """
    real = [each for each in changes if each[2] != StateChange()]
    forget_instances(connection, [number for number, _, change in real if change.forgotten])
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
    requested = {(n, *tag) for n, _, change in kept for each in change.begun for tag in each.tags}
    failed = {(n, *tag) for n, _, change in kept for tag in change.failures}
    for these in _at(failures, sorted(requested | failed)):
        connection.execute(sa.delete(failures).where(these))
    told.write(connection, [(number, change.failures) for number, _, change in kept], now)


def _write_instances(connection: sa.Connection, changes: Iterable[tuple[int, StateChange]]) -> None:
    horizons = collections.defaultdict(list)
    changed = []
    for number, change in changes:
        if change.horizon is not None:
            horizons[change.horizon].append(number)
        if dataclasses.replace(change, horizon=None) != StateChange():
            changed.append(number)
    for horizon, numbers in horizons.items():
        these = sa.update(instances).where(instances.c.number.in_(numbers))
        connection.execute(these.values(horizon=horizon))
    if changed:
        these = sa.update(instances).where(instances.c.number.in_(changed))
        connection.execute(these.values(generation=instances.c.generation + 1))


def _write_operations(
    connection: sa.Connection, changes: Sequence[tuple[int, StateChange]]
) -> None:
    ended = [operation for _, change in changes for operation in change.ended]
    for start in range(0, len(ended), _AT_ONCE):
        these = operations.c.id.in_(ended[start : start + _AT_ONCE])
        connection.execute(sa.delete(operations).where(these))
    begun = [_row(number, each) for number, change in changes for each in change.begun]
    if begun:
        connection.execute(sa.insert(operations), begun)


def pending(connection: sa.Connection) -> list[tuple[Instance, Operation]]:
    """Return all pending operations, oldest first, each with its instance."""
    of = [column.label(f"of_{column.name}") for column in instances.c]
    found = (
        sa.select(operations, *of)
        .join(instances, instances.c.number == operations.c.instance_id)
        .order_by(operations.c.begun, operations.c.id)
    )
    return [
        (Instance(row.of_id, row.of_name, row.of_project, row.of_user), _as_operation(row))
        for row in connection.execute(found)
    ]


def forget_jobs(connection: sa.Connection) -> list[tuple[Instance, Operation]]:
    """Delete all operations but creations, and all job numbers; return the deleted operations."""
    changed = sa.update(instances)
    connection.execute(changed.values(horizon=0, generation=instances.c.generation + 1))
    dropped = [each for each in pending(connection) if each[1].kind is not Kind.CREATE]
    creation = operations.c.kind == Kind.CREATE.value
    connection.execute(sa.delete(operations).where(~creation))
    connection.execute(sa.update(operations).where(creation).values(job=None, begun=0.0))
    connection.execute(sa.delete(marks))
    watched.forget_jobs(connection)
    return dropped


def forget_instances(connection: sa.Connection, numbers: Sequence[int]) -> None:
    """Delete the instances with these numbers, and everything recorded about them."""
    if not numbers:
        return
    for table in (tags, operations, marks, failures):
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
        "caller": operation.caller,
    }


def _put(
    connection: sa.Connection,
    table: sa.Table,
    rows: _Rows,
    there: Collection[tuple[int, str, str]],
) -> None:
    """Update the rows whose keys are in ``there``, and insert the others."""
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
    """Yield conditions for the rows with these keys, a thousand keys each.

    They repeat the numbers of the instances on their own, because MariaDB uses no index for several
    columns at once.
    """
    key = sa.tuple_(table.c.instance_id, table.c.prefix, table.c.name)
    keys = list(where)
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        numbers = {number for number, _, _ in some}
        yield sa.and_(table.c.instance_id.in_(numbers), key.in_(some))
