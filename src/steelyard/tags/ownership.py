"""The backend that a database of tags belongs to, recorded in the database."""

import sqlalchemy as sa

from steelyard import errors
from steelyard.tags import model
from steelyard.tags.backends.base import BackendIdentity

_RECORD = "steelyard tags backend set DRIVER"
# The number of the only row.
_NUMBER = 1
_LONGEST = {"driver": 64, "name": 255}


def recorded(connection: sa.Connection) -> BackendIdentity | None:
    """Return the recorded backend, or None if none is recorded."""
    row = connection.execute(sa.select(model.backend.c.driver, model.backend.c.name)).first()
    return None if row is None else BackendIdentity(row.driver, row.name)


def check(connection: sa.Connection, writer: BackendIdentity) -> None:
    """Raise WrongBackend unless the writer's backend is the recorded one."""
    owner = recorded(connection)
    if owner is None:
        raise errors.WrongBackend(
            f"cannot write tags through backend {writer}: the database records no backend; "
            f"run '{_RECORD}' once, with the configuration of the backend that has the instances"
        )
    if owner != writer:
        raise _conflict("cannot write tags", owner, writer)


def check_free_for(connection: sa.Connection, identity: BackendIdentity) -> None:
    """Raise WrongBackend if another backend is recorded; the tables may be old or missing."""
    if sa.inspect(connection).has_table(model.backend.name):
        owner = recorded(connection)
        if owner not in (None, identity):
            raise _conflict("cannot record a backend", owner, identity)


def record(connection: sa.Connection, identity: BackendIdentity) -> None:
    """Record the backend, or raise WrongBackend if another one is recorded."""
    owner = recorded(connection)
    if owner is None:
        replace(connection, identity)
    elif owner != identity:
        raise _conflict("cannot record a backend", owner, identity)


def replace(connection: sa.Connection, identity: BackendIdentity) -> None:
    """Record the backend in place of the recorded one."""
    _check_can_be_kept(identity)
    connection.execute(sa.delete(model.backend))
    connection.execute(sa.insert(model.backend).values(_row(identity)))


def check_renamed(connection: sa.Connection, identity: BackendIdentity) -> None:
    """Raise Conflict unless this can be the recorded backend under a new name."""
    owner = recorded(connection)
    if owner is None or owner.driver != identity.driver:
        raise errors.Conflict(
            f"cannot rename the recorded backend: {owner or 'no backend'} is recorded, and "
            f"{identity} has another driver; use --moved if the instances have moved there"
        )


def check_nothing_unfinished(connection: sa.Connection, identity: BackendIdentity) -> None:
    """Raise Conflict while the recorded backend has operations to finish."""
    unfinished = sa.select(sa.func.count()).select_from(model.operations)
    count = connection.execute(unfinished).scalar_one()
    if count:
        raise errors.Conflict(
            f"cannot move to backend {identity}: unfinished operations of "
            f"{recorded(connection)}: {count}; run 'steelyard tags watch' with its configuration "
            f"until they are finished, or drop them with --drop-unfinished"
        )


def _conflict(failed: str, owner: BackendIdentity, writer: BackendIdentity) -> errors.WrongBackend:
    return errors.WrongBackend(
        f"{failed}: the database belongs to backend {owner}, and backend {writer} is configured; "
        f"name the --config-file of {owner}, or see 'steelyard tags backend set --help' if the "
        f"backend was renamed or the instances were moved"
    )


def _row(identity: BackendIdentity) -> dict[str, int | str]:
    return {"number": _NUMBER, "driver": identity.driver, "name": identity.name}


def _check_can_be_kept(identity: BackendIdentity) -> None:
    for field, longest in _LONGEST.items():
        value = getattr(identity, field)
        if not (0 < len(value) <= longest and value.isprintable()):
            raise errors.BadRequest(
                f"cannot record a backend: invalid {field} {value!r:.100}; expected 1 to {longest} "
                f"printable characters"
            )
