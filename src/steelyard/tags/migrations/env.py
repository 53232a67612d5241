"""Runs the revisions of the store of tags."""

from alembic import context

from steelyard.stores import run_revisions
from steelyard.tags.store import TagStore

run_revisions(context, TagStore)
