"""Fixtures: the HTTP API of consumers over its own database."""

from collections.abc import Iterator

import pytest

from steelyard.consumers import ConsumerStore
from support.consumers.in_process_api import Client


@pytest.fixture
def store() -> Iterator[ConsumerStore]:
    with ConsumerStore("sqlite://") as made:
        made.upgrade()
        yield made


@pytest.fixture
def ask(store: ConsumerStore) -> Client:
    return Client(store)
