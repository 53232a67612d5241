"""Runs the revisions of the store of consumers."""

from alembic import context

from steelyard.consumers.store import ConsumerStore
from steelyard.stores import run_revisions

run_revisions(context, ConsumerStore)
