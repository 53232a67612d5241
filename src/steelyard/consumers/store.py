"""Consumers and what is allocated to them, in a database of one's own."""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from steelyard import errors
from steelyard.consumers import bodies, model
from steelyard.consumers.bodies import Write
from steelyard.consumers.model import allocations, consumer_types, consumers
from steelyard.consumers.names import ALL, ConsumerType
from steelyard.consumers.usages import COUNT, added, count_of

try:
    import alembic.command
    import alembic.config
    import alembic.runtime.migration
    import alembic.script
    import sqlalchemy as sa
    from sqlalchemy.dialects import mysql, postgresql, sqlite
except ModuleNotFoundError as error:
    raise errors.MissingExtra(
        "the store of consumers needs SQLAlchemy and alembic: "
        "python3 -m pip install 'steelyard[sql]'"
    ) from error

_MIGRATIONS = "steelyard.consumers:migrations"
# Tables of Placement's that we do not have; ours have the names of others of its tables.
_PLACEMENTS = frozenset({"resource_providers", "inventories", "placement_aggregates"})
_ATTEMPTS = 5

AnswerT = TypeVar("AnswerT")


class ConsumerStore:
    """Writes, reads and counts; each write is done as a whole or not at all.

    Takes a URL or an engine. A transaction that the database has given up for another one's sake,
    a deadlock for example, is tried again, a few times.
    """

    def __init__(self, url_or_engine: str | sa.URL | sa.Engine) -> None:
        if isinstance(url_or_engine, sa.Engine):
            self._engine = url_or_engine
        else:
            self._engine = _engine(url_or_engine)
        # Statements see what others have committed before each of them. What has been read is
        # checked again where it is written: a generation, a unique name. SQLite lets nobody else
        # write in between anyway.
        self._transactions = self._engine
        if self._engine.dialect.name != "sqlite":
            self._transactions = self._engine.execution_options(isolation_level="READ COMMITTED")

    def upgrade(self, revision: str = "head") -> None:
        """Brings the tables to the revision; refuses a database that a Placement lives in."""
        with _telling():
            self._refuse_a_placement()
        self._migrate(alembic.command.upgrade, revision)

    def downgrade(self, revision: str) -> None:
        """Takes the tables back to the revision."""
        self._migrate(alembic.command.downgrade, revision)

    def current(self) -> str | None:
        """The revision of the tables; None where there are none."""
        with _telling(), self._engine.connect() as connection:
            context = alembic.runtime.migration.MigrationContext.configure(
                connection, opts={"version_table": model.VERSION_TABLE}
            )
            return context.get_current_revision()

    def history(self) -> list[tuple[str, str]]:
        """Each revision, from the first on, with what it does."""
        scripts = alembic.script.ScriptDirectory.from_config(_config())
        found = [(script.revision, script.doc) for script in scripts.walk_revisions()]
        return found[::-1]

    def put_allocations(self, consumer: str, body: object) -> None:
        """What ``PUT /allocations/{consumer}`` does."""
        self._write([bodies.put(consumer, body)])

    def post_allocations(self, body: object) -> None:
        """What ``POST /allocations`` does, for all of the consumers or for none."""
        self._write(bodies.post(body))

    def reshape(self, body: object) -> None:
        """Replaces the allocations of many consumers at once; the body is that of a POST."""
        self._write(bodies.post(body))

    def get_allocations(self, consumer: str) -> dict[str, Any]:
        """What ``GET /allocations/{consumer}`` answers, which can be put back."""
        uuid = bodies.check_uuid("consumer", consumer)
        return self._in_a_transaction(lambda connection: _allocations_of(connection, uuid))

    def usages(
        self, project_id: str, user_id: str | None = None, consumer_type: str | None = None
    ) -> dict[str, Any]:
        """What ``GET /usages`` answers: by type, for one type, or for all together."""
        only = None if consumer_type in (None, ALL) else ConsumerType(str(consumer_type))
        used = self._in_a_transaction(
            lambda connection: _usages(connection, project_id, user_id, only)
        )
        if consumer_type == ALL:
            used = {ALL: added(used.values())} if used else {}
        return {"usages": used}

    def count(self, project_id: str, user_id: str | None = None, consumer_type: str = ALL) -> int:
        """How many consumers of the type a project, or a user of it, has."""
        return count_of(self.usages(project_id, user_id, consumer_type))

    def _write(self, writes: Sequence[Write]) -> None:
        # In one order, whoever writes: two transactions that wait for each other cannot be.
        in_order = sorted(writes, key=lambda write: write.consumer)

        def write_all(connection: sa.Connection) -> None:
            types = _ids_of_types(connection, {write.type for write in writes})
            for write in in_order:
                _write(connection, write, types[write.type])

        self._in_a_transaction(write_all)

    def _in_a_transaction(self, work: Callable[[sa.Connection], AnswerT]) -> AnswerT:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with _telling(), self._transactions.begin() as connection:
                    return work(connection)
            except _GivenUp as error:
                failure = error
                time.sleep(0.01 * 2**attempt)
        raise errors.ServiceError(
            f"the database has given up the transaction {_ATTEMPTS} times: {failure}"
        ) from failure

    def _migrate(self, command: Callable[..., None], revision: str) -> None:
        config = _config()
        with _telling(), self._engine.connect() as connection:
            config.attributes["connection"] = connection
            command(config, revision)
            connection.commit()

    def _refuse_a_placement(self) -> None:
        there = set(sa.inspect(self._engine).get_table_names())
        foreign = there & _PLACEMENTS
        if model.VERSION_TABLE not in there:
            foreign |= there & set(model.metadata.tables)
        if foreign:
            raise errors.Conflict(
                f"the database has the tables {', '.join(sorted(foreign))}, which are not ours: it "
                f"seems to be Placement's; give the store a database of its own"
            )


def _config() -> alembic.config.Config:
    config = alembic.config.Config()
    config.set_main_option("script_location", _MIGRATIONS)
    config.set_main_option("path_separator", "os")
    return config


def _engine(url: str | sa.URL) -> sa.Engine:
    try:
        engine = sa.create_engine(url)
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError) as error:
        raise errors.BadRequest(
            f"{str(url)!r:.200} is no URL of a database; write one such as sqlite:///consumers.db"
        ) from error
    except ModuleNotFoundError as error:
        raise errors.MissingExtra(
            f"the driver {error.name} is missing: python3 -m pip install 'steelyard[postgresql]', "
            f"or 'steelyard[mysql]'"
        ) from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _prepare_sqlite)
        # Who is going to write says so at once, and waits; sqlite3 would notice it too late.
        sa.event.listen(engine, "begin", lambda found: found.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    for pragma in ("foreign_keys = ON", "journal_mode = WAL", "busy_timeout = 10000"):
        connection.execute(f"PRAGMA {pragma}")


class _GivenUp(errors.ServiceError):
    """The database has given up a transaction, and may not the next time."""


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    """Makes our errors of what a database says: that it is not there, that it lacks the tables."""
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.ProgrammingError) as error:
        if _passing(error):
            raise _GivenUp(str(error.orig)) from error
        said = " ".join(str(error.orig).split())
        raise errors.ServiceError(f"the database cannot do it: {said}") from error


def _passing(error: sa.exc.DBAPIError) -> bool:
    """Whether the same may succeed when it is tried again."""
    original: Any = error.orig
    code = getattr(original, "sqlstate", None) or (original.args[0] if original.args else None)
    return code in {"40001", "40P01", 1213, 1205, "database is locked"}


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
        connection.execute(_insert_unless_there(connection), missing)
        ids = {row.name: row.id for row in connection.execute(known)}
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
    connection.execute(sa.delete(allocations).where(allocations.c.consumer_id == identity))
    rows = [
        {
            "consumer_id": identity,
            "resource_provider": provider,
            "resource_class": name,
            "used": amount,
        }
        for provider, resources in write.resources.items()
        for name, amount in resources.items()
    ]
    if rows:
        connection.execute(sa.insert(allocations), rows)
    else:
        connection.execute(sa.delete(consumers).where(consumers.c.id == identity))


def _claimed(connection: sa.Connection, write: Write, type_id: int) -> int | None:
    """The consumer's id, once it is the write's turn; None if there is nothing to write to."""
    fields = {"project": write.project, "user": write.user, "consumer_type_id": type_id}
    mine = consumers.c.uuid == write.consumer
    if write.generation is not None:
        updated = connection.execute(
            sa.update(consumers)
            .where(mine, consumers.c.generation == write.generation)
            .values(generation=write.generation + 1, **fields)
        )
        if updated.rowcount != 1:
            raise _conflict(connection, write)
    elif connection.execute(sa.select(consumers.c.id).where(mine)).first():
        raise _conflict(connection, write)
    elif not write.resources:
        return None
    else:
        try:
            connection.execute(
                sa.insert(consumers).values(uuid=write.consumer, generation=1, **fields)
            )
        except sa.exc.IntegrityError as error:
            raise errors.Conflict(
                f"consumer {write.consumer} has been created by somebody else just now; read its "
                f"allocations again"
            ) from error
    found: int = connection.execute(sa.select(consumers.c.id).where(mine)).scalar_one()
    return found


def _conflict(connection: sa.Connection, write: Write) -> errors.Conflict:
    expected = connection.execute(
        sa.select(consumers.c.generation).where(consumers.c.uuid == write.consumer)
    ).scalar()
    return errors.Conflict(
        f"consumer {write.consumer} has the generation {_shown(expected)}, not "
        f"{_shown(write.generation)}; read its allocations again"
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


def _usages(
    connection: sa.Connection, project: str, user: str | None, only: ConsumerType | None
) -> dict[str, dict[str, int]]:
    """What is used and by how many consumers, by type; in one statement, so at one moment."""
    theirs = [consumers.c.project == project]
    if user is not None:
        theirs.append(consumers.c.user == user)
    # Each consumer has allocations, for one without is removed: it can be counted by itself.
    counted = (
        sa.select(consumers.c.consumer_type_id, sa.func.count().label("consumers"))
        .where(*theirs)
        .group_by(consumers.c.consumer_type_id)
        .subquery()
    )
    statement = (
        sa.select(
            consumer_types.c.name,
            counted.c.consumers,
            allocations.c.resource_class,
            sa.func.sum(allocations.c.used).label("used"),
        )
        .select_from(consumers)
        .join(allocations, allocations.c.consumer_id == consumers.c.id)
        .join(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
        .join(counted, counted.c.consumer_type_id == consumers.c.consumer_type_id)
        .where(*theirs)
        .group_by(consumer_types.c.name, counted.c.consumers, allocations.c.resource_class)
    )
    if only is not None:
        statement = statement.where(consumer_types.c.name == only.name)
    used: dict[str, dict[str, int]] = {}
    for name, count, resource_class, amount in connection.execute(statement):
        used.setdefault(name, {COUNT: count})[resource_class] = int(amount)
    return used
