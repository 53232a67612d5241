"""Connections to the SQLite databases of Nova and Placement that stay open.

oslo.db opens a connection for each transaction, and each connection reads the whole schema again.
"""

from typing import Any
from unittest import mock

import sqlalchemy as sa


class _KeptConnections(sa.pool.QueuePool):
    """A pool that keeps all connections open."""

    def __init__(self, creator: Any, **options: Any) -> None:
        super().__init__(creator, **options | {"pool_size": 0, "pre_ping": False, "use_lifo": True})


def kept_connections() -> Any:
    """Return a patch, with which oslo.db gives such a pool to the engines that it creates."""
    return mock.patch("sqlalchemy.pool.NullPool", _KeptConnections)
