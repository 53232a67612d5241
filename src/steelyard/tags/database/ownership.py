"""The record of the backend that a database of tags belongs to."""

import sqlalchemy as sa

from steelyard import errors
from steelyard.tags.backends.base import BackendIdentity, TagBackend
from steelyard.tags.database import model

_SET = "steelyard tags backend set"
# The number of the only row.
_NUMBER = 1


class Writer:
    """The backend for which this process writes to a database, with its last known identity."""

    def __init__(self, backend: TagBackend) -> None:
        self.backend = backend
        self._known: BackendIdentity | None = None

    def identity(self) -> BackendIdentity:
        """Return the last known identity of the backend; ask the backend if there is none."""
        return self._known or self.ask()

    def ask(self) -> BackendIdentity:
        """Ask the backend for its identity.

        Raises BackendUnreachable if the backend fails, and PluginError for an invalid answer.
        """
        try:
            found = self.backend.identity()
        except errors.SteelyardError:
            raise
        except Exception as error:  # a third-party backend can raise anything
            raise errors.BackendUnreachable(
                f"cannot ask the backend for its name: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(found, BackendIdentity):
            raise errors.PluginError(
                f"invalid identity {found!r:.100} of a tag backend: expected a BackendIdentity"
            )
        self._known = found
        return found


def recorded(connection: sa.Connection) -> BackendIdentity | None:
    """Return the recorded backend, or None if none is recorded."""
    return _row(connection, _recorded())


def recorded_if_any(connection: sa.Connection) -> BackendIdentity | None:
    """Return the recorded backend; None also if the tables are too old or missing."""
    return recorded(connection) if sa.inspect(connection).has_table(model.backend.name) else None


def check(connection: sa.Connection, writer: BackendIdentity) -> None:
    """Raise WrongBackend unless the writer's backend is the recorded one."""
    _check(recorded(connection), writer)


def check_until_commit(connection: sa.Connection, writer: BackendIdentity) -> None:
    """Check as ``check`` does, and lock the record against changes until the transaction ends."""
    _check(_row(connection, _recorded().with_for_update(read=True)), writer)


def check_alone_until_commit(connection: sa.Connection, writer: BackendIdentity) -> None:
    """Check as ``check`` does, and let no other transaction with such a check run meanwhile."""
    _check(_locked(connection), writer)


def record(connection: sa.Connection, identity: BackendIdentity) -> None:
    """Record the backend; raise WrongBackend if another one is recorded."""
    values = {"number": _NUMBER, "driver": identity.driver, "name": identity.name}
    if recorded(connection) is None:
        try:
            with connection.begin_nested():
                connection.execute(sa.insert(model.backend).values(values))
        except sa.exc.IntegrityError:  # another process has recorded one meanwhile
            pass
    check_free_for(recorded(connection), identity)


def rename(connection: sa.Connection, identity: BackendIdentity) -> None:
    """Record a new name of the recorded backend.

    Raises Conflict if no backend is recorded, or one with another driver.
    """
    owner = _locked(connection)
    if owner is None:
        raise errors.Conflict(
            f"cannot rename a backend: the database records none; run '{_SET} "
            f"{identity.driver}' without --renamed"
        )
    if owner.driver != identity.driver:
        raise errors.Conflict(
            f"cannot rename backend {owner} to {identity}: the drivers differ; use --moved if the "
            f"instances were moved"
        )
    _replace(connection, identity)


def move(connection: sa.Connection, identity: BackendIdentity, *, drop_unfinished: bool) -> None:
    """Record another backend.

    Raises Conflict if it is recorded already, or while operations are pending unless
    ``drop_unfinished`` is True. The caller then drops these operations.
    """
    owner = _locked(connection)
    if owner == identity:
        raise errors.Conflict(
            f"cannot move to backend {identity}: the database belongs to it already; to forget "
            f"its jobs, run 'steelyard tags reconcile --forget-jobs'"
        )
    count = unfinished(connection)
    if count and not drop_unfinished:
        raise errors.Conflict(
            f"cannot move to backend {identity}: unfinished operations of "
            f"{'an unknown backend' if owner is None else owner}: {count}; let its services finish "
            f"them, or drop them with --drop-unfinished"
        )
    if owner is None:
        record(connection, identity)
    else:
        _replace(connection, identity)


def unfinished(connection: sa.Connection) -> int:
    """Return the number of pending operations."""
    count = sa.select(sa.func.count()).select_from(model.operations)
    return int(connection.execute(count).scalar_one())


def check_free_for(owner: BackendIdentity | None, identity: BackendIdentity) -> None:
    """Raise WrongBackend if the database belongs to another backend."""
    if owner not in (None, identity):
        raise _conflict(owner, identity)


def _check(owner: BackendIdentity | None, writer: BackendIdentity) -> None:
    if owner is None:
        raise errors.WrongBackend(
            f"cannot use the database with backend {writer}: it records no backend; run '{_SET} "
            f"DRIVER' once, with the configuration of the backend that has the instances"
        )
    check_free_for(owner, writer)


def _conflict(owner: BackendIdentity | None, writer: BackendIdentity) -> errors.WrongBackend:
    return errors.WrongBackend(
        f"cannot use the database: it belongs to backend {owner}, and backend {writer} is "
        f"configured (option backend in [steelyard_tags], memory by default); pass the "
        f"configuration of {owner} with --config-file, or see '{_SET} --help' if the "
        f"backend was renamed or the instances were moved"
    )


def _locked(connection: sa.Connection) -> BackendIdentity | None:
    """Lock the record, and return the recorded backend or None."""
    return _row(connection, _recorded().with_for_update())


def _replace(connection: sa.Connection, identity: BackendIdentity) -> None:
    values = {"driver": identity.driver, "name": identity.name}
    connection.execute(sa.update(model.backend).values(values))


def _recorded() -> sa.Select[tuple[str, str]]:
    return sa.select(model.backend.c.driver, model.backend.c.name)


def _row(connection: sa.Connection, query: sa.Select[tuple[str, str]]) -> BackendIdentity | None:
    row = connection.execute(query).first()
    return None if row is None else BackendIdentity(row.driver, row.name)
