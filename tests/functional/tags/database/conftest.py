"""Fixtures: a tag database that belongs to a Ganeti cluster."""

import pathlib

import pytest

from steelyard.tags import TagStore
from support.tags.databases import upgrade
from support.tags.owned_database import CLUSTER, fill


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f"sqlite:///{tmp_path}/tags.db"


@pytest.fixture
def store(url: str) -> TagStore:
    """Return a store of a Ganeti cluster that has unfinished operations."""
    store = TagStore(url)
    upgrade(store, CLUSTER)
    fill(store)
    return store
