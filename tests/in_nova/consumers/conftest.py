"""A Placement and a consumer store, shared by the tests of a file."""

from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.consumers import ConsumerStore
from support.nova.consumers_in_both import Both, new, placement_with_plenty, store_in


@pytest.fixture(scope="module")
def placement() -> Iterator[Any]:
    with placement_with_plenty() as client:
        yield client


@pytest.fixture(scope="module")
def store(tmp_path_factory: Any) -> ConsumerStore:
    return store_in(tmp_path_factory.mktemp("store"))


@pytest.fixture
def both(placement: Any, store: ConsumerStore) -> Both:
    return Both(placement, store)


@pytest.fixture
def project() -> str:
    """Return the UUID of a project without consumers."""
    return new()
