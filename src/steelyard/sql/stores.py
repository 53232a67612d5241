"""Stores: tables with revisions in SQLite, PostgreSQL, MariaDB or MySQL.

Each kind of store has its own tables and its own history of revisions. It can share a database with
other stores and with other tables.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import alembic.config
import alembic.operations
import alembic.runtime.migration
import alembic.script
import alembic.util
import sqlalchemy as sa
from oslo_log import log as logging

from steelyard import errors
from steelyard.sql import engines, schema_changes, sqlite_files, transactions
from steelyard.sql.database_errors import translated
from steelyard.sql.engines import READING, WRITING
from steelyard.sql.transactions import AnswerT

LOG = logging.getLogger(__name__)


class Store:
    """Tables with a history of revisions, and transactions on them.

    ``where`` is a URL, an engine or a connection. With a URL or an engine, each call is a
    transaction. If the database aborts it, for example because of a deadlock, the store retries it
    a few times.

    With a connection, the store works inside the caller's transaction and does not end it. A call
    that fails undoes its own changes, and is not retried. If the database aborts the transaction,
    the store raises TransactionAborted, and then ServiceError until the caller has rolled the
    transaction back.
    """

    name: ClassVar[str]
    """The name of the store in messages."""

    upgrade_command: ClassVar[str]

    metadata: ClassVar[sa.MetaData]
    """The tables; ``info["revision"]`` of each is the revision that creates it."""

    version_table: ClassVar[str]
    migrations: ClassVar[str]
    """The location of the revisions, as alembic's ``script_location``."""

    foreign_tables: ClassVar[frozenset[str]] = frozenset()
    """Tables of other programs: the store refuses to create its own beside them."""

    def __init__(self, where: str | sa.URL | sa.Engine | sa.Connection) -> None:
        self._database = engines.prepared(where)
        self._owns_engine = isinstance(where, str | sa.URL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that the store opened.

        An engine or a connection of the caller is left open. A store with a URL connects again when
        it is used again; a database in memory is lost.
        """
        if self._owns_engine:
            self._database.engine.dispose()

    @property
    def inside_a_transaction(self) -> bool:
        """Whether the store works inside a transaction of the caller."""
        return isinstance(self._database, sa.Connection)

    def upgrade(self, revision: str = "head") -> None:
        """Upgrade the tables to the revision, and create the file of an SQLite database.

        Concurrent upgrades wait for each other, and an interrupted upgrade can be repeated. Raises
        Conflict if the database has tables of another program, has lost some of the store's tables,
        or cannot be migrated to the revision.
        """

        def steps(scripts: Any, current: object) -> Any:
            return scripts._upgrade_revs(revision, current)

        self.create_file()
        self._migrate(revision, steps, self._refuse_foreign_tables)

    def downgrade(self, revision: str, confirmed: str | None = None) -> None:
        """Downgrade the tables to the revision; ``base`` drops them all.

        Raises Conflict as ``upgrade`` does, and if the tables are not at the ``confirmed`` revision
        when no other process can change them any more.
        """

        def steps(scripts: Any, current: object) -> Any:
            return scripts._downgrade_revs(revision, current)

        def refuse_other_revision(connection: sa.Connection) -> None:
            current = self._revision(connection)
            if confirmed not in (None, current):
                raise errors.Conflict(
                    f"the tables are at revision {current}, not {confirmed!r:.100}: check that "
                    f"this is the right database, and confirm with {current}"
                )

        self._migrate(revision, steps, refuse_other_revision)

    def create_file(self) -> None:
        """Create the file of an SQLite database unless it exists, as ``upgrade`` does.

        All other methods raise UpgradeNeeded if the file is missing. An engine or a connection of
        the caller creates the file itself.
        """
        if self._owns_engine:
            sqlite_files.create(self._database.engine)

    def current(self) -> str | None:
        """Return the revision of the tables, or None if there are none."""
        return self.reading(self._revision)

    def require_tables(self) -> None:
        """Raise UpgradeNeeded if the tables are missing or outdated.

        Raises Conflict if a newer steelyard has upgraded them.
        """
        self.reading(self._refuse_unknown_revision)
        current, newest = self.current(), self.history()[-1][0]
        if current != newest:
            advice = f"run '{self.upgrade_command} --url URL'"
            if sqlite_files.is_without(self._database.engine):
                advice = "a database in memory begins without tables; name a file in the URL"
            raise errors.UpgradeNeeded(
                f"the tables of {self.name} are "
                f"{f'at revision {current}' if current else 'missing'}, and revision {newest} is "
                f"needed: {advice}"
            )

    def history(self) -> list[tuple[str, str]]:
        """Return the known revisions with their descriptions, oldest first."""
        return list(self._history)

    @functools.cached_property
    def _history(self) -> Sequence[tuple[str, str]]:
        # Kept, because health checks ask for it and parsing all revisions takes 10 ms.
        found = [(script.revision, script.doc) for script in self._scripts().walk_revisions()]
        return found[::-1]

    def rows_of_tables_after(self, revision: str) -> dict[str, int]:
        """Return the number of rows of each table that a later revision created.

        A downgrade to the revision drops these tables.
        """

        def count(connection: sa.Connection) -> dict[str, int]:
            there = set(sa.inspect(connection).get_table_names())
            return {
                name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for name, table in self.metadata.tables.items()
                if name in there and table.info["revision"] > revision
            }

        return self.reading(count)

    def reading(self, work: Callable[[sa.Connection], AnswerT]) -> AnswerT:
        """Run the work in a transaction for reading, and return its result.

        The work must change nothing. It runs again if the transaction is retried.
        """
        return transactions.run(self._database, work, READING)

    def in_a_transaction(self, work: Callable[[sa.Connection], AnswerT]) -> AnswerT:
        """Run the work in a transaction for writing, and return its result.

        Its changes are made together or not at all. The work runs again if the transaction is
        retried, so it must have no effects outside of the database.
        """
        return transactions.run(self._database, work, WRITING)

    def _migrate(
        self,
        revision: str,
        steps: Callable[[Any, object], Iterable[Any]],
        *checks: Callable[[sa.Connection], None],
    ) -> None:
        """Run the steps that lead to the revision, as alembic's scripts list them.

        ``alembic.command`` would replace the global ``alembic.op`` and ``alembic.context``, which a
        revision of a host service may be using.
        """
        if not isinstance(revision, str) or not revision:
            raise errors.BadRequest(
                f"invalid revision {revision!r:.100}: expected text such as 'head' or '0001'",
                revision,
            )
        with translated(), self._migration_lock() as connection:
            # The checks have a separate transaction, so that each revision is one, where possible.
            with contextlib.nullcontext() if connection.in_transaction() else connection.begin():
                self._refuse_unknown_revision(connection)
                self._refuse_lost_tables(connection)
                for check in checks:
                    check(connection)
            scripts = self._scripts()
            context = self._context(connection, fn=lambda current, _: steps(scripts, current))
            operations = alembic.operations.Operations(context)
            try:
                context.run_migrations(schema=schema_changes.SchemaEditor(operations))
            except alembic.util.CommandError as error:
                message = str(error).encode("ascii", "backslashreplace").decode()
                raise errors.Conflict(
                    f"cannot migrate the tables to revision {revision!r:.100}: {message}",
                    revision,
                ) from error

    def _migration_lock(self) -> contextlib.AbstractContextManager[sa.Connection]:
        if isinstance(self._database, sa.Connection):
            return schema_changes.locked_inside(self._database, self.version_table)
        return schema_changes.locked(self._database, self.version_table)

    def _refuse_foreign_tables(self, connection: sa.Connection) -> None:
        there = set(sa.inspect(connection).get_table_names())
        foreign = there & self.foreign_tables
        if self.version_table not in there:
            foreign |= there & set(self.metadata.tables)
        if foreign:
            raise errors.Conflict(
                f"the database has tables of another program: "
                f"{', '.join(map(repr, sorted(foreign)))}; use a separate database for the store"
            )

    def _refuse_unknown_revision(self, connection: sa.Connection) -> None:
        current = self._revision(connection)
        if current not in {None, *(revision for revision, _ in self.history())}:
            raise errors.Conflict(
                f"the database has revision {current!r}, which this version of steelyard lacks; "
                f"upgrade steelyard"
            )

    def _refuse_lost_tables(self, connection: sa.Connection) -> None:
        current = self._revision(connection) or ""
        # A downgrade that was interrupted may have dropped the table of the current revision.
        expected = {
            name for name, table in self.metadata.tables.items() if table.info["revision"] < current
        }
        there = set(sa.inspect(connection).get_table_names())
        if lost := sorted(expected - there):
            left = [*sorted(there & set(self.metadata.tables)), self.version_table]
            raise errors.Conflict(
                f"missing tables of revision {current!r}: {', '.join(map(repr, lost))}; restore "
                f"them from a backup, or drop {', '.join(map(repr, left))} and run "
                f"'{self.upgrade_command}'"
            )

    def _revision(self, connection: sa.Connection) -> str | None:
        # alembic's context would log two lines each time, for each check of the health, too.
        if not sa.inspect(connection).has_table(self.version_table):
            return None
        recorded = sa.table(self.version_table, sa.column("version_num", sa.String))
        found: str | None = connection.execute(sa.select(recorded.c.version_num)).scalar()
        return found

    def _context(
        self, connection: sa.Connection, **options: Any
    ) -> alembic.runtime.migration.MigrationContext:
        return alembic.runtime.migration.MigrationContext.configure(
            connection,
            opts={
                "version_table": self.version_table,
                # MySQL commits after each change of a schema, so each revision makes one change.
                "transaction_per_migration": True,
                "on_version_apply": (functools.partial(_log_step, self.name), _keep_step),
                **options,
            },
        )

    def _scripts(self) -> alembic.script.ScriptDirectory:
        config = alembic.config.Config()
        config.set_main_option("script_location", self.migrations)
        config.set_main_option("path_separator", "os")
        return alembic.script.ScriptDirectory.from_config(config)


def is_left_to_host(
    kind: type[Store], name: str | None, what: str, parents: Mapping[Any, str | None]
) -> bool:
    """Return whether alembic in a host service may compare the object with this name.

    False for the store's tables and its version table. Tables of the same names in another schema
    are not the store's.
    """
    if what != "table" or parents.get("schema_name") is not None:
        return True
    return name != kind.version_table and name not in kind.metadata.tables


def _log_step(store: str, *, step: Any, **_: Any) -> None:
    LOG.info(
        "%s revision %s of '%s': %s",
        "Applied" if step.is_upgrade else "Reverted",
        step.up_revision_id,
        store,
        step.up_revision.doc.rstrip("."),
    )


def _keep_step(*, ctx: Any, **_: Any) -> None:
    """Commit the record of a revision on MariaDB and MySQL, which have committed its changes.

    In a caller's transaction, the lock is released before the transaction ends. Without
    this, another upgrade could then run the revision again.
    """
    if ctx.dialect.name in ("mysql", "mariadb"):
        ctx.connection.exec_driver_sql("COMMIT")
