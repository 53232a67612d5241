"""The store of consumers and their allocations in a database."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from steelyard import errors
from steelyard.consumers import bodies, model, reads, type_rows, writes
from steelyard.consumers.base import Consumers
from steelyard.consumers.bodies import Write
from steelyard.consumers.model import consumer_types, consumers
from steelyard.consumers.names import ALL
from steelyard.sql.stores import Store, is_left_to_host


class ConsumerStore(Store, Consumers):
    """The store of consumers, their types and their allocations.

    ``where`` is a URL, an engine, or a connection; given a connection, the store joins its
    transaction. A write that fails changes nothing.
    """

    name = "consumers"
    upgrade_command = "steelyard db upgrade"
    metadata = model.metadata
    version_table = model.VERSION_TABLE
    migrations = "steelyard.consumers:migrations"
    # Tables by which a database of Placement is recognised. The store's own table names occur in
    # Placement too.
    foreign_tables = frozenset({"resource_providers", "inventories", "placement_aggregates"})

    def remove_unused_types(self) -> list[str]:
        """Remove all types that no consumer has, and return their names, sorted.

        ``UNKNOWN`` stays. The ids of removed types are not reused.
        """
        return self.in_a_transaction(type_rows.remove_unused)

    def _refuse_foreign_tables(self, connection: sa.Connection) -> None:
        super()._refuse_foreign_tables(connection)
        if faults := list(_pre_release(connection, self._revision(connection) or "")):
            raise errors.Conflict(
                f"a version of steelyard before 0.1.0 created the tables of consumers: "
                f"{', '.join(faults)}; to keep the types, copy the consumers into a new database; "
                f"to discard them, run 'steelyard db downgrade 0002 --schema consumers' and "
                f"'steelyard db upgrade'; see 'Tables from before 0.1.0' in the guide 'Upgrade the "
                f"tables of consumers'"
            )

    def put_allocations(self, consumer: str, body: object) -> None:
        """Replace the allocations of one consumer, as ``PUT /allocations/{consumer}`` does."""
        self._write([bodies.put(consumer, body)])

    def post_allocations(self, body: object) -> None:
        """Replace the allocations of all consumers in the body, as ``POST /allocations`` does.

        On an error, it changes none of them.
        """
        self._write(bodies.post(body))

    def delete_allocations(self, consumer: str) -> None:
        """Delete the consumer, as ``DELETE /allocations/{consumer}`` does, whatever its generation.

        Raises NotFound if the consumer has no allocations.
        """
        uuid = bodies.check_uuid("consumer", consumer)
        if not self.in_a_transaction(lambda connection: writes.delete(connection, uuid)):
            raise errors.NotFound(f"consumer {uuid} has no allocations")

    def reshape(self, body: object) -> None:
        """Replace the allocations of all consumers in the body of ``POST /reshaper``.

        The store has no inventories: those in the body may be left out, empty, or name providers
        with empty inventories. Like :meth:`post_allocations` otherwise.
        """
        self._write(bodies.reshaper_of_store(body))

    def get_allocations(self, consumer: str) -> dict[str, Any]:
        """Return the body of ``GET /allocations/{consumer}``, which can be sent back in a PUT."""
        uuid = bodies.check_uuid("consumer", consumer)
        return self.reading(lambda connection: reads.allocations_of(connection, uuid))

    def usages(
        self, project_id: str, user_id: str | None = None, consumer_type: str | None = None
    ) -> dict[str, Any]:
        """Return the body of ``GET /usages``: by type, of one type, or of all types together.

        Without ``consumer_type``, usages are by type. ``"all"`` adds up all types. Each group has
        the number of consumers as ``consumer_count``.
        """
        conditions = _conditions(project_id, user_id, consumer_type)
        read = reads.usages_together if consumer_type == ALL else reads.usages
        return {"usages": self.reading(lambda connection: read(connection, conditions))}

    def count(self, project_id: str, user_id: str | None = None, consumer_type: str = ALL) -> int:
        """Return the number of consumers of the type in a project, or of one of its users.

        Faster than :meth:`usages`: it does not read allocations.
        """
        conditions = _conditions(project_id, user_id, consumer_type)
        return self.reading(lambda connection: reads.count(connection, conditions))

    def types(self, project_id: str | None = None, user_id: str | None = None) -> dict[str, int]:
        """Return the number of consumers of each type, in the database or in one project.

        Without a project, types without consumers are included until ``remove_unused_types``
        removes them.
        """
        if project_id is None:
            bodies.check_project_of_user(user_id)
            return self.reading(type_rows.consumers_by_type)
        conditions = _conditions(project_id, user_id)
        return self.reading(lambda connection: type_rows.consumers_by_type(connection, *conditions))

    def consumers_of(
        self,
        *,
        project: str | None = None,
        type: str | None = None,  # noqa: A002  (a public keyword)
        provider: str | None = None,
    ) -> Iterator[str]:
        """Return an iterator over the UUIDs of the consumers with this project, type and provider.

        An argument that is None stands for all. The ids of the consumers are read first; then each
        page of 1000 consumers is a transaction of its own, in the order of their ids.
        """
        if project is not None:
            bodies.check_owner(project)
        conditions = reads.conditions_on(project, None, bodies.check_type(type))
        uuid = None if provider is None else bodies.check_uuid("resource provider", provider)
        return self._pages(conditions, uuid)

    def _pages(
        self, conditions: Sequence[sa.ColumnElement[bool]], provider: str | None
    ) -> Iterator[str]:
        # Read the ids once: a query for each page would sort all consumers again for each of them.
        found = self.reading(functools.partial(reads.ids, conditions=conditions, provider=provider))
        for first in range(0, len(found), reads.PAGE):
            numbers = found[first : first + reads.PAGE].tolist()
            yield from self.reading(
                functools.partial(
                    reads.page, numbers=numbers, conditions=conditions, provider=provider
                )
            )

    def _write(self, requested: Sequence[Write]) -> None:
        # All writers lock consumers in UUID order, so they cannot deadlock.
        in_order = sorted(requested, key=lambda write: write.consumer)

        def write_all(connection: sa.Connection) -> None:
            used = {write.type for write in requested if write.resources}
            types = type_rows.ids_of(connection, used)
            for write in in_order:
                writes.replace(connection, write, types.get(write.type))

        self.in_a_transaction(write_all)


def include_name(name: str | None, type_: str, parent_names: Mapping[Any, str | None]) -> bool:
    """Return whether alembic may compare the object with this name.

    False for the tables of :class:`ConsumerStore` and its version table. Use it as the hook
    ``include_name`` in the ``env.py`` of a service that has these tables in its own database.
    Autogenerated revisions of the service then leave them alone.
    """
    return is_left_to_host(ConsumerStore, name, type_, parent_names)


def _conditions(
    project: str, user: str | None, kind: str | None = None
) -> list[sa.ColumnElement[bool]]:
    bodies.check_owner(project, user)
    return reads.conditions_on(project, user, bodies.check_type(kind))


def _pre_release(connection: sa.Connection, current: str) -> Iterator[str]:
    """Yield each object that is missing because a revision from before 0.1.0 made the tables.

    Those revisions had the same numbers as today's.
    """
    inspector = sa.inspect(connection)
    on_sqlite = connection.dialect.name == "sqlite"
    if on_sqlite and current >= "0003":
        made = sa.text("SELECT sql FROM sqlite_master WHERE name = 'consumer_types'")
        if "AUTOINCREMENT" not in str(connection.execute(made).scalar()).upper():
            yield "consumer_types.id has no AUTOINCREMENT"
    if current >= ("0004" if on_sqlite else "0006") and not any(
        key["referred_table"] == consumer_types.name
        for key in inspector.get_foreign_keys(consumers.name)
    ):
        yield "consumers.consumer_type_id has no foreign key"
    if current >= "0005" and not inspector.has_index(consumers.name, "consumers_type_idx"):
        yield "consumers.consumer_type_id has no index 'consumers_type_idx'"
