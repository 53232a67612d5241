"""A tag database with the newest schema."""

from typing import Any

import pytest

from steelyard.tags import TagStore
from support.tags.databases import upgrade


@pytest.fixture
def url(tmp_path: Any) -> str:
    made = f"sqlite:///{tmp_path}/tags.db"
    upgrade(TagStore(made))
    return made
