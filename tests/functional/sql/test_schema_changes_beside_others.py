"""Stores in the database of a service with its own alembic migrations, on SQLite."""

import asyncio
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from support.sql import host_service

pytestmark = pytest.mark.usefixtures("closed_databases")


def without_foreign_keys(path: pathlib.Path) -> sa.Engine:
    return sa.create_engine(f"sqlite:///{path}")


def with_foreign_keys(path: pathlib.Path) -> sa.Engine:
    engine = without_foreign_keys(path)

    def enforce(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA foreign_keys = ON")

    sa.event.listen(engine, "connect", enforce)
    return engine


@pytest.mark.parametrize("make", [without_foreign_keys, with_foreign_keys])
@pytest.mark.parametrize("check", host_service.CHECKS)
def test_stores_coexist_with_a_host_service(
    tmp_path: pathlib.Path,
    make: Callable[[pathlib.Path], sa.Engine],
    check: Callable[[sa.Engine, pathlib.Path], None],
) -> None:
    engine = make(tmp_path / "service.db")
    check(engine, tmp_path / "migrations")
    engine.dispose()


def test_stores_run_on_an_async_connection(tmp_path: pathlib.Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/service.db")
    host_service.check_recipe_for_asyncio(asyncio.run, engine)
