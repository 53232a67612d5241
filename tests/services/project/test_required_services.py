"""Tests without their service: skipped, or failed where services are required."""

import os
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.services import brokers, databases, ganeti_cluster, required

NOBODY = 65534


@pytest.fixture
def without_scripts(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv(ganeti_cluster.VARIABLE, str(tmp_path))


@pytest.fixture
def as_ordinary_user() -> Iterator[None]:
    """Give up the rights of root while the test runs."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    yield
    os.seteuid(before)


def check_needed(monkeypatch: pytest.MonkeyPatch, need: Callable[[], object], why: str) -> None:
    """Check that the test is skipped with this reason, and fails where services are required."""
    monkeypatch.delenv(required.REQUIRE, raising=False)
    with pytest.raises(pytest.skip.Exception, match=why):
        need()
    monkeypatch.setenv(required.REQUIRE, "1")
    with pytest.raises(pytest.fail.Exception, match=f"{why}.*; {required.REQUIRE} is set"):
        need()


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("postgresql", "postgresql+psycopg://postgres@127.0.0.1:1/postgres"),
        ("mariadb", "mysql+pymysql://root@127.0.0.1:1/"),
    ],
)
def test_needed_without_the_database_server_skips_or_fails(
    monkeypatch: pytest.MonkeyPatch, server: str, url: str
) -> None:
    variable = databases.variable(server)
    monkeypatch.setenv(variable, url)
    check_needed(monkeypatch, lambda: databases.needed(server), f"(?s)no {server} at .*{variable}")


def test_needed_without_rabbitmq_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(brokers.VARIABLE, "amqp://guest:guest@127.0.0.1:1/%2F")
    check_needed(monkeypatch, brokers.needed, f"no RabbitMQ at .*{brokers.VARIABLE}")


@pytest.mark.parametrize("condition", ["without_scripts", "as_ordinary_user"])
def test_needed_without_a_cluster_skips_or_fails(
    request: Any, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    request.getfixturevalue(condition)
    why = ganeti_cluster.why_unavailable()
    assert why is not None
    check_needed(monkeypatch, lambda: ganeti_cluster.needed().__enter__(), re.escape(why))
