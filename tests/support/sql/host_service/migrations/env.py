"""The environment of the service's migrations, as from ``alembic init``, with the hook."""

from collections.abc import Mapping
from typing import Any

from alembic import context

from steelyard import consumers, tags


def include_name(name: str | None, type_: str, parent_names: Mapping[Any, str | None]) -> bool:
    """Return whether alembic may compare the object with this name."""
    return all(ours.include_name(name, type_, parent_names) for ours in (consumers, tags))


with context.config.attributes["engine"].connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=context.config.attributes["tables"],
        include_name=include_name,
        include_schemas=context.config.attributes.get("include_schemas", False),
    )
    with context.begin_transaction():
        context.run_migrations()
