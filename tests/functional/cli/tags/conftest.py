"""Tag databases with the newest schema, and the folder of a backend of third parties."""

import pathlib
from typing import Any

import pytest

from steelyard.tags import TagStore
from steelyard.tags.backends.base import BackendIdentity
from support.tags.databases import upgrade


@pytest.fixture
def url(tmp_path: Any) -> str:
    made = f"sqlite:///{tmp_path}/tags.db"
    upgrade(TagStore(made))
    return made


@pytest.fixture
def backend(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return the folder whose files are the instances of the backend ``files``."""
    directory = tmp_path / "backend"
    directory.mkdir()
    return directory


@pytest.fixture
def store(tmp_path: pathlib.Path) -> TagStore:
    """Return a store that belongs to this backend."""
    made = TagStore(f"sqlite:///{tmp_path}/tags.db")
    upgrade(made, BackendIdentity("files", "backend"))
    return made
