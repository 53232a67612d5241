"""The store of instances and their tags."""

import copy
import functools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Self

import sqlalchemy as sa

from steelyard import errors
from steelyard.sql.stores import Store, is_left_to_host
from steelyard.sql.transactions import AnswerT
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.codec import Tag
from steelyard.tags.database import listing, model, ownership, registering, rows, told, watched
from steelyard.tags.database.model import instances, marks, operations, tags
from steelyard.tags.database.rows import Snapshot
from steelyard.tags.states.values import Instance, Operation, State, StateChange, Status


class TagStore(Store):
    """A store of instances, their tags and their pending operations.

    ``where`` is a URL, an engine, or a connection whose transaction the store joins. Each change is
    made completely or not at all. Changes of one instance wait for each other, by a lock on its
    row.

    The store of a service changes nothing in a database that belongs to another backend than the
    service's. A store that is used on its own has no backend, and does not check this.
    """

    name = "tags"
    upgrade_command = "steelyard db upgrade --schema tags"
    metadata = model.metadata
    version_table = "steelyard_tags_version"
    migrations = "steelyard.tags:migrations"
    _writer: ownership.Writer | None = None

    def written_by(self, writer: ownership.Writer) -> Self:
        """Return a store on the same database for the backend of this writer.

        Its changes raise WrongBackend unless the database belongs to that backend.
        """
        store = copy.copy(self)
        store._writer = writer
        return store

    def in_a_transaction(self, work: Callable[[sa.Connection], AnswerT]) -> AnswerT:
        return self._checked(work, ownership.check_until_commit)

    def _checked(
        self,
        work: Callable[[sa.Connection], AnswerT],
        check: Callable[[sa.Connection, BackendIdentity], None],
    ) -> AnswerT:
        if self._writer is None:
            return super().in_a_transaction(work)
        writer = self._writer.identity()  # may ask the backend, so it comes before the transaction

        def checked(connection: sa.Connection) -> AnswerT:
            check(connection, writer)
            return work(connection)

        return super().in_a_transaction(checked)

    def check_backend(self) -> None:
        """Ask the writer's backend, and raise WrongBackend unless it is the recorded one.

        Does nothing in a store without a writer.
        """
        if self._writer is not None:
            self.reading(functools.partial(ownership.check, writer=self._writer.ask()))

    def backend(self) -> BackendIdentity | None:
        """Return the backend that the database belongs to, or None if none is recorded.

        None also if the tables are too old or missing.
        """
        return self.reading(ownership.recorded_if_any)

    def unfinished(self) -> int:
        """Return the number of pending operations."""
        return self.reading(ownership.unfinished)

    def record_backend(self, identity: BackendIdentity) -> None:
        """Record the backend that the database belongs to.

        Raises WrongBackend if another one is recorded.
        """
        super().in_a_transaction(functools.partial(ownership.record, identity=identity))

    def rename_backend(self, identity: BackendIdentity) -> None:
        """Record the new name of the recorded backend, whose jobs keep their numbers."""
        super().in_a_transaction(functools.partial(ownership.rename, identity=identity))

    def move_to_backend(
        self, identity: BackendIdentity, *, drop_unfinished: bool = False
    ) -> list[tuple[Instance, Operation]]:
        """Record another backend that has the instances now, and forget the former one's jobs.

        Returns the dropped operations. Raises Conflict while operations are pending, unless
        ``drop_unfinished`` is True.
        """

        def work(connection: sa.Connection) -> list[tuple[Instance, Operation]]:
            ownership.move(connection, identity, drop_unfinished=drop_unfinished)
            return rows.forget_jobs(connection)

        return super().in_a_transaction(work)

    def register(
        self, instance: Instance, change: StateChange | None = None, most: int | None = None
    ) -> None:
        """Record a new instance, with the change that begins its creation, if any.

        ``most`` is the greatest number of instances of a project. Raises Conflict if the id or the
        name is taken, OverQuota if the project has as many instances already, and BadRequest if the
        database cannot store the instance.
        """
        rows.check_instance(instance)

        def keep(connection: sa.Connection) -> None:
            number = registering.insert(connection, instance, most)
            if change is not None:
                rows.write(connection, [(number, State(), change)])

        self._registering(keep, most)

    def register_all(
        self, wanted: Sequence[Instance], horizon: int, most: int | None = None
    ) -> registering.Registered:
        """Record those instances of one project that are new, up to ``most`` in the project.

        All jobs up to ``horizon`` count as finished. The database must be able to store the
        instances.
        """
        work = functools.partial(registering.insert_all, wanted=wanted, horizon=horizon, most=most)
        return self._registering(work, most)

    def _registering(self, work: Callable[[sa.Connection], AnswerT], most: int | None) -> AnswerT:
        """Run a registration; if there is a limit, let no other change run meanwhile."""
        if most is None:
            return self.in_a_transaction(work)
        return self._checked(work, ownership.check_alone_until_commit)

    def forget(self, instance: str) -> None:
        """Delete the instance and all records of its tags; raise NotFound if it is unknown."""

        def work(connection: sa.Connection) -> None:
            row = self._locked(connection, "id", instance)
            if row is None:
                raise rows.unknown(instance)
            rows.forget_instances(connection, [row.number])

        self.in_a_transaction(work)

    def instance(self, instance: str) -> Instance:
        """Return the instance with the id; raise NotFound if there is none."""
        return self.reading(
            lambda connection: rows.as_instance(rows.instance_row(connection, instance))
        )

    def instances(self) -> list[Instance]:
        """Return all instances, sorted by id."""
        found = sa.select(instances).order_by(instances.c.id)
        return self.reading(
            lambda connection: [rows.as_instance(row) for row in connection.execute(found)]
        )

    def tagged(self, page: listing.Page) -> list[listing.TaggedInstance]:
        """Return the instances of the page with their tags."""
        return self.reading(functools.partial(listing.read, page=page))

    def count(self) -> int:
        """Return the number of instances."""
        found = sa.select(sa.func.count()).select_from(instances)
        return self.reading(lambda connection: int(connection.execute(found).scalar_one()))

    def snapshots(self, size: int, after: str = "") -> list[Snapshot]:
        """Return snapshots of up to ``size`` instances with ids after ``after``, sorted by id."""
        page = sa.select(instances).where(instances.c.id > after)
        return self._snapshots(page.order_by(instances.c.id).limit(size))

    def snapshots_of(self, ids: Collection[str]) -> list[Snapshot]:
        """Return snapshots of the instances with these ids; unknown ids are left out."""
        return self._snapshots(sa.select(instances).where(instances.c.id.in_(ids)))

    def _snapshots(self, found: sa.Select[Any]) -> list[Snapshot]:
        def read(connection: sa.Connection) -> list[Snapshot]:
            page = connection.execute(found).all()
            states = rows.read_states(connection, page)
            return [
                Snapshot(row.number, row.generation, rows.as_instance(row), states[row.number])
                for row in page
            ]

        return self.reading(read)

    def change_unchanged(self, changes: Sequence[tuple[Snapshot, StateChange]]) -> set[str]:
        """Apply the changes of the instances that are unchanged since their snapshots.

        Returns the ids of the other instances.
        """

        def work(connection: sa.Connection) -> set[str]:
            numbers = [was.number for was, _ in changes]
            now = (
                sa.select(instances)
                .where(instances.c.number.in_(numbers))
                .order_by(instances.c.number)
                .with_for_update()
            )
            # This compares the instances, too: SQLite reuses the numbers of deleted rows.
            same = {rows.as_it_is(row) for row in connection.execute(now)}
            still = [each for each in changes if each[0].as_it_was in same]
            rows.write(connection, [(was.number, was.state, change) for was, change in still])
            return {was.instance.id for was, _ in changes if was.as_it_was not in same}

        return self.in_a_transaction(work)

    def state(self, instance: str, being: Instance | None = None) -> State:
        """Return the state of the instance's tags.

        Raises NotFound if no instance has the id, or if another one than ``being`` has it.
        """

        def read(connection: sa.Connection) -> State:
            row = rows.instance_row(connection, instance, being)
            return rows.read_state(connection, row)

        return self.reading(read)

    def tags(self, instance: str, prefix: str, being: Instance | None = None) -> dict[str, Status]:
        """Return the tags of one owner with their statuses, sorted by name.

        Raises NotFound if no instance has the id, or if another one than ``being`` has it.
        """

        def read(connection: sa.Connection) -> dict[str, Status]:
            row = rows.instance_row(connection, instance, being)
            mine = sa.select(tags.c.name, tags.c.status).where(
                tags.c.instance_id == row.number, tags.c.prefix == prefix
            )
            found = ((each.name, Status(each.status)) for each in connection.execute(mine))
            return dict(sorted(found))

        return self.reading(read)

    def failure(self, instance: str, tag: Tag, being: Instance | None = None) -> str | None:
        """Return the reason why the tag could not be added in the last hour, or None.

        Raises NotFound if no instance has the id, or if another one than ``being`` has it.
        """

        def read(connection: sa.Connection) -> str | None:
            return told.read(connection, rows.instance_row(connection, instance, being).number, tag)

        return self.reading(read)

    def change(
        self,
        instance: str,
        decide: Callable[[State], tuple[StateChange, AnswerT]],
        being: Instance | None = None,
    ) -> AnswerT:
        """Apply the change that ``decide`` returns for the instance's state, and return its answer.

        The instance is locked meanwhile. ``decide`` runs again if the transaction is retried, so it
        must have no other effects. Raises NotFound if no instance has the id, or if another one
        than ``being`` has it: ids can be used again.
        """

        def work(connection: sa.Connection) -> AnswerT:
            row = self._locked(connection, "id", instance)
            if row is None:
                raise rows.unknown(instance)
            rows.check_same(row, being)
            return _changed(connection, row, decide)

        return self.in_a_transaction(work)

    def change_named(
        self, name: str, decide: Callable[[State], tuple[StateChange, AnswerT]]
    ) -> tuple[Instance, AnswerT] | None:
        """Apply a change as ``change`` does, to the instance with this name at the backend.

        Returns the instance and the answer of ``decide``, or None if no instance has the name.
        """

        def work(connection: sa.Connection) -> tuple[Instance, AnswerT] | None:
            row = self._locked(connection, "name", name)
            if row is None:
                return None
            return rows.as_instance(row), _changed(connection, row, decide)

        return self.in_a_transaction(work)

    def record_job(self, operation: str, job: int) -> None:
        """Record the job of an operation; do nothing if the operation has finished already.

        This does not check the backend: the check was made when the operation was recorded.
        """
        numbered = sa.update(operations).where(operations.c.id == operation).values(job=job)
        super().in_a_transaction(lambda connection: connection.execute(numbered))

    def last_job(self) -> int:
        """Return the greatest known job number, or 0 if none is known."""
        greatest = [
            sa.select(sa.func.max(column))
            for column in (instances.c.horizon, operations.c.job, marks.c.job)
        ]

        def read(connection: sa.Connection) -> int:
            return max(connection.execute(each).scalar() or 0 for each in greatest)

        return self.reading(read)

    def forget_jobs(self) -> list[tuple[Instance, Operation]]:
        """Forget all jobs: delete all marks, and all operations but creations.

        Returns the deleted operations. Reconciliation shows whether these were applied. Creations
        stay pending until then, so that an instance that was never created is not kept.
        """
        return self.in_a_transaction(rows.forget_jobs)

    def watched(self) -> watched.Watched:
        """Return how far the watch has followed the backend's jobs."""
        return self.reading(watched.read)

    def follow(self, before: int | None, job: int) -> None:
        """Record that all jobs up to this one are applied, if the record is still ``before``."""
        self.in_a_transaction(functools.partial(watched.follow, before=before, job=job))

    def note_reconciled(self, moment: float) -> None:
        """Record when all instances were reconciled, in seconds since the epoch."""
        self.in_a_transaction(functools.partial(watched.reconciled, moment=moment))

    def pending(self) -> list[tuple[Instance, Operation]]:
        """Return all pending operations with their instances, oldest first."""
        return self.reading(rows.pending)

    def prune(self, older_than: float) -> int:
        """Delete the marks that are older than these seconds, and return their number.

        Failures that are no longer told are deleted, too.

        This locks one instance after the other, so a mark that is being renewed is not lost.
        """
        self.in_a_transaction(told.prune)
        moment = time.time() - older_than
        old = sa.select(marks.c.instance_id).where(marks.c.seen < moment).distinct()
        numbers = self.reading(lambda connection: sorted(connection.execute(old).scalars()))
        return sum(
            self.in_a_transaction(functools.partial(rows.prune_marks, number=number, moment=moment))
            for number in numbers
        )

    def _locked(self, connection: sa.Connection, field: str, value: str) -> Any:
        """Lock the row of the instance and return it, or None if there is none.

        Raises ServiceError if the caller's transaction still sees an older version of the row: a
        decision based on it would be wrong. PostgreSQL raises an error by itself.
        """
        if not rows.possible(field, value):
            return None
        this = sa.select(instances).where(instances.c[field] == value)
        row = connection.execute(this.with_for_update()).first()
        if self.inside_a_transaction and connection.execute(this).first() != row:
            raise errors.ServiceError(
                f"cannot change instance {value!r:.100}: another transaction changed it since this "
                f"one began; roll back and retry"
            )
        return row


def _changed(
    connection: sa.Connection,
    row: Any,
    decide: Callable[[State], tuple[StateChange, AnswerT]],
) -> AnswerT:
    state = rows.read_state(connection, row)
    change, answer = decide(state)
    rows.write(connection, [(row.number, state, change)])
    return answer


def include_name(name: str | None, type_: str, parent_names: Mapping[Any, str | None]) -> bool:
    """Return whether alembic may compare the object with this name.

    False for the tables of :class:`TagStore` and its version table. Use it as the hook
    ``include_name`` in the ``env.py`` of a service that has these tables in its own database.
    Autogenerated revisions of the service then leave them alone.
    """
    return is_left_to_host(TagStore, name, type_, parent_names)
