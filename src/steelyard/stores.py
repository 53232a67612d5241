"""Stores of tables in a database of one's own: SQLite, PostgreSQL, MariaDB or MySQL.

Each kind of store has its own tables and its own history of revisions, and lives beside others, and
beside whatever else is in the database.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

import alembic.command
import alembic.config
import alembic.runtime.migration
import alembic.script
import alembic.util
import sqlalchemy as sa

from steelyard import engines, errors, schema_changes
from steelyard.database_errors import passing, said, telling
from steelyard.engines import READING, WRITING, Purpose

# Seconds before each attempt at a transaction; those who have met are to part.
_PAUSES = (0, 0.02, 0.04, 0.08, 0.16)

# What revisions are run by is alembic's, and the same for all threads: one would have another's.
_ONE_AT_A_TIME = threading.Lock()

AnswerT = TypeVar("AnswerT")


class Text(sa.TypeDecorator[str]):
    """Text that is compared as it is written, in every database: no letter is like another one.

    Of MySQL's collations even most of the binary ones take no notice of spaces at the end.
    """

    impl = sa.String
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[str]:
        if dialect.name not in ("mysql", "mariadb"):
            return sa.String(self.length)
        # A URL of MySQL's may lead to a MariaDB.
        theirs = getattr(dialect, "is_mariadb", False)
        return sa.String(
            self.length, collation="utf8mb4_nopad_bin" if theirs else "utf8mb4_0900_bin"
        )


class Store:
    """Tables with a history of revisions, and transactions on them.

    Takes a URL or an engine. A transaction that the database has given up for another one's sake,
    a deadlock for example, is tried again, a few times.

    Given a connection, it works inside the transaction there, and leaves the end of it to the
    caller: what fails is undone up to where it began, and nothing is tried again. When the database
    has given up the transaction, nothing can be done in it any more until the caller has rolled it
    back.
    """

    metadata: ClassVar[sa.MetaData]
    version_table: ClassVar[str]
    migrations: ClassVar[str]
    """Where alembic finds the revisions."""

    foreign_tables: ClassVar[frozenset[str]] = frozenset()
    """Tables beside which ours must not be."""

    def __init__(self, where: str | sa.URL | sa.Engine | sa.Connection) -> None:
        self._database = engines.prepared(where)
        self._owns_engine = isinstance(where, str | sa.URL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that the store opened.

        An engine or a connection that the caller gave is left open. A store that was made from a
        URL connects again when it is used again; a database in memory is lost.
        """
        if self._owns_engine:
            self._database.engine.dispose()

    @property
    def inside_a_transaction(self) -> bool:
        """Whether it works inside a transaction of the caller's."""
        return isinstance(self._database, sa.Connection)

    def upgrade(self, revision: str = "head") -> None:
        """Brings the tables to the revision; refuses a database that is somebody else's.

        What is there already is left as it is, and others who upgrade the same wait: it can be
        repeated, by anybody, whenever it has been stopped.
        """
        self._migrate(alembic.command.upgrade, revision, self._refuse_what_is_not_ours)

    def downgrade(self, revision: str) -> None:
        """Takes the tables back to the revision."""
        self._migrate(alembic.command.downgrade, revision)

    def current(self) -> str | None:
        """The revision of the tables; None where there are none."""
        return self.reading(self._revision)

    def history(self) -> list[tuple[str, str]]:
        """Each revision, from the first on, with what it does."""
        scripts = alembic.script.ScriptDirectory.from_config(self._config())
        found = [(script.revision, script.doc) for script in scripts.walk_revisions()]
        return found[::-1]

    def reading(self, work: Callable[[sa.Connection], AnswerT]) -> AnswerT:
        """What the work answers, in a transaction that changes nothing."""
        return self._done(work, READING)

    def in_a_transaction(self, work: Callable[[sa.Connection], AnswerT]) -> AnswerT:
        """What the work answers, once all of it is done; or none of it is."""
        return self._done(work, WRITING)

    def _done(self, work: Callable[[sa.Connection], AnswerT], purpose: Purpose) -> AnswerT:
        with telling():
            if isinstance(self._database, sa.Connection):
                return _inside(self._database, work, purpose)
            for pause in _PAUSES:
                time.sleep(pause * random.uniform(0.5, 1.5))
                try:
                    return _at_once(self._database, work, purpose)
                except sa.exc.DBAPIError as error:
                    if not passing(error):
                        raise
                    failure = error
        raise errors.ServiceError(
            f"the database has given up the transaction {len(_PAUSES)} times: {said(failure)}"
        ) from failure

    def _migrate(
        self,
        command: Callable[..., None],
        revision: str,
        *checks: Callable[[sa.Connection], None],
    ) -> None:
        with telling(), self._alone() as connection:
            # Apart from the revisions: each of those is to be a transaction, where it can be one.
            with contextlib.nullcontext() if connection.in_transaction() else connection.begin():
                for check in (*checks, self._refuse_what_is_not_known):
                    check(connection)
            config = self._config()
            config.attributes["connection"] = connection
            try:
                with _ONE_AT_A_TIME:
                    command(config, revision)
            except alembic.util.CommandError as error:
                raise errors.Conflict(
                    f"the tables cannot be taken to the revision {revision!r:.100}: {error}"
                ) from error

    def _alone(self) -> contextlib.AbstractContextManager[sa.Connection]:
        if isinstance(self._database, sa.Connection):
            return schema_changes.alone_inside(self._database, self.version_table)
        return schema_changes.alone(self._database, self.version_table)

    def _refuse_what_is_not_ours(self, connection: sa.Connection) -> None:
        there = set(sa.inspect(connection).get_table_names())
        foreign = there & self.foreign_tables
        if self.version_table not in there:
            foreign |= there & set(self.metadata.tables)
        if foreign:
            raise errors.Conflict(
                f"the database has the tables {', '.join(sorted(foreign))}, which are not ours: "
                f"give the store a database of its own"
            )

    def _refuse_what_is_not_known(self, connection: sa.Connection) -> None:
        current = self._revision(connection)
        if current not in {None, *(revision for revision, _ in self.history())}:
            raise errors.Conflict(
                f"the database is at the revision {current}, which this steelyard does not know: "
                f"upgrade steelyard"
            )

    def _revision(self, connection: sa.Connection) -> str | None:
        context = alembic.runtime.migration.MigrationContext.configure(
            connection, opts={"version_table": self.version_table}
        )
        return context.get_current_revision()

    def _config(self) -> alembic.config.Config:
        config = alembic.config.Config()
        config.set_main_option("script_location", self.migrations)
        config.set_main_option("path_separator", "os")
        return config


def run_revisions(context: Any, kind: type[Store]) -> None:
    """What the environment of the revisions does: on the connection of the store, to our tables."""
    ours = frozenset(kind.metadata.tables)

    def is_ours(name: str | None, what: str, parents: object) -> bool:
        return what != "table" or name in ours

    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=kind.metadata,
        version_table=kind.version_table,
        include_name=is_ours,
        # MySQL commits with each step of a schema: each revision is one step, and stands by itself.
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def _at_once(
    engine: sa.Engine, work: Callable[[sa.Connection], AnswerT], purpose: Purpose
) -> AnswerT:
    with engine.begin() as connection:
        engines.begin(connection, purpose)
        return work(connection)


def _inside(
    connection: sa.Connection, work: Callable[[sa.Connection], AnswerT], purpose: Purpose
) -> AnswerT:
    """Works inside the caller's transaction, which only the caller can begin again."""
    engines.join(connection, purpose)
    savepoint = connection.begin_nested()
    try:
        answer = work(connection)
        savepoint.commit()
    except BaseException as error:
        if not passing(error):
            _undo(savepoint, connection)
            raise
        # A database may have undone the caller's part too, and would take what comes now for the
        # whole of it.
        connection.invalidate()
        raise errors.ServiceError(
            f"the database has given up the transaction: {said(error)}; roll it back, and begin it "
            f"again"
        ) from error
    return answer


def _undo(savepoint: sa.NestedTransaction, connection: sa.Connection) -> None:
    """Undoes what is after the savepoint; why that is done is told, and not that it has failed."""
    try:
        savepoint.rollback()
    except sa.exc.SQLAlchemyError:
        connection.invalidate()
