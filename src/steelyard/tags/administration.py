"""Administration of a database of tags: its tables, and the backend that it belongs to."""

from collections.abc import Iterable

from oslo_log import log as logging

from steelyard import errors
from steelyard.tags import audit
from steelyard.tags.backends.base import BackendIdentity, JobStatus
from steelyard.tags.database.ownership import Writer, check_free_for
from steelyard.tags.database.store import TagStore
from steelyard.tags.states.values import Instance, Kind, Operation

LOG = logging.getLogger(__name__)

# The most instances to look for at a backend, which must have at least one of them.
_SAMPLE = 500


class Administration:
    """An operator's commands on a whole database, run with the configured backend."""

    def __init__(self, store: TagStore, writer: Writer) -> None:
        self._store = store
        self._writer = writer

    def identity(self) -> BackendIdentity:
        """Ask the backend for its identity."""
        return self._writer.ask()

    def upgrade(self) -> None:
        """Upgrade the tables, and record the backend as the one that the database belongs to.

        Changes nothing if another backend is recorded.
        """
        identity = self.identity()
        self._store.create_file()
        check_free_for(self._store.backend(), identity)
        self._store.upgrade()
        self.record_backend()

    def record_backend(self) -> None:
        """Record the backend as the one that the database belongs to.

        Raises WrongBackend if another one is recorded. If none is recorded and the database has
        instances, raises Conflict unless the backend has them.
        """
        identity = self.identity()
        if self._store.backend() is None:
            self._check_has_the_instances(identity)
        self._store.record_backend(identity)

    def rename_backend(self) -> None:
        """Record the backend's new name; its jobs keep their numbers."""
        self._store.rename_backend(self.identity())

    def move_to_backend(self, *, drop_unfinished: bool = False) -> None:
        """Record the backend as the one that has the instances now.

        Forgets the jobs of the former backend. Raises Conflict while operations are pending, unless
        ``drop_unfinished`` is True.
        """
        identity = self.identity()
        dropped = self._store.move_to_backend(identity, drop_unfinished=drop_unfinished)
        _log_dropped(dropped, f"the instances were moved to backend {identity}")

    def forget_jobs(self) -> None:
        """Forget all jobs, for a backend that was reinstalled and numbers its jobs from 1 again."""
        _log_dropped(self._store.forget_jobs(), "the backend was reinstalled")

    def refuse_wrong_backend(self) -> None:
        """Raise WrongBackend if the database belongs to another backend, or records none.

        If the backend or the database is unreachable, only logs a warning: each change checks this
        again.
        """
        try:
            self._store.check_backend()
        except errors.WrongBackend:
            raise
        except errors.ServiceError as error:
            LOG.warning("Cannot check yet which backend the database belongs to: %s", error)

    def _check_has_the_instances(self, identity: BackendIdentity) -> None:
        """Raise Conflict if the database was written for another backend.

        The backend must have each instance with a pending operation, and at least one of the
        others. It must know the jobs of pending creations.
        """
        backend = self._writer.backend
        pending = self._store.pending()
        creations = [each for _, each in pending if each.kind is Kind.CREATE]
        creating = {each.name for each, operation in pending if operation.kind is Kind.CREATE}
        changing = {each.name for each, _ in pending} - creating
        others = {each.instance.name for each in self._store.snapshots(_SAMPLE)} - creating
        there = backend.tags(changing | others)
        missing = sorted(changing - there.keys()) or (sorted(others) if not there else [])
        if missing:
            raise errors.Conflict(_not_its_database(identity, f"has no instance {missing[0]!r}"))
        numbers = [each.job for each in creations if each.job is not None]
        for number, status in backend.jobs(numbers).items() if numbers else ():
            if status is JobStatus.LOST:
                raise errors.Conflict(_not_its_database(identity, f"knows no job {number}"))


def _log_dropped(dropped: Iterable[tuple[Instance, Operation]], reason: str) -> None:
    audit.write(
        audit.of_operation(audit.Event.DROPPED, instance, operation, reason=reason)
        for instance, operation in dropped
    )


def _not_its_database(identity: BackendIdentity, why: str) -> str:
    return (
        f"cannot record backend {identity}: it {why}, which the database has; use the "
        f"configuration of the backend that has the instances, or 'steelyard tags backend set "
        f"{identity.driver} --moved' if they were moved"
    )
