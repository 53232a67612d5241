"""The contract of consumer models on the store with PostgreSQL and MariaDB."""

from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from support.consumers import contract


@pytest.mark.parametrize("check", contract.CONTRACT)
def test_store_obeys_the_contract(upgraded: sa.Engine, check: Any) -> None:
    check(ConsumerStore(upgraded))
