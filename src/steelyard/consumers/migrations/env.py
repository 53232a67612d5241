"""Runs the revisions on the connection that the store passes in, beside whatever else is there."""

from alembic import context

from steelyard.consumers import model

_OURS = frozenset(model.metadata.tables)


def _is_ours(name: str | None, kind: str, parents: object) -> bool:
    return kind != "table" or name in _OURS


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=model.metadata,
    version_table=model.VERSION_TABLE,
    include_name=_is_ours,
    # MySQL commits with each step of a schema: so each revision is one step, and stands by itself.
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
