"""The database servers that tests use, and a database on one that is theirs alone.

Where the servers are is said by environment variables; the defaults fit one that was installed on
this host as it comes, and that lets its superuser in.
"""

import contextlib
import os
import uuid
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

DEFAULTS = {
    "postgresql": "postgresql+psycopg://postgres@127.0.0.1:5432/postgres",
    "mariadb": "mysql+pymysql://root@127.0.0.1:3306/",
}
REQUIRE = "STEELYARD_REQUIRE_SERVICES"


def variable(server: str) -> str:
    return f"STEELYARD_TEST_{server.upper()}"


def url(server: str) -> sa.URL:
    """Where the server is; the database that it names is only for connecting to."""
    return sa.make_url(os.environ.get(variable(server), DEFAULTS[server]))


def why_unavailable(server: str) -> str | None:
    """None if the server answers."""
    try:
        with contextlib.closing(_administrator(url(server)).connect()) as connection:
            connection.exec_driver_sql("SELECT 1")
    except ModuleNotFoundError as error:
        return f"no driver for {server}: {error}"
    except sa.exc.OperationalError as error:
        return f"no {server} at {url(server)!r} (set {variable(server)}): {error.orig}"
    return None


def needed(server: str) -> sa.URL:
    """The URL of a server that answers; else the test is skipped, or fails where it must not be."""
    why = why_unavailable(server)
    if why and os.environ.get(REQUIRE) == "1":
        pytest.fail(f"{why}; {REQUIRE} is set", pytrace=False)
    if why:
        pytest.skip(why)
    return url(server)


@contextlib.contextmanager
def own_database(server_url: sa.URL, options: str = "") -> Iterator[sa.Engine]:
    """An engine on a new database, which is dropped in the end."""
    name = f"steelyard_test_{uuid.uuid4().hex}"
    with contextlib.closing(_administrator(server_url).connect()) as administrator:
        administrator.exec_driver_sql(f"CREATE DATABASE {name} {options}")
        engine = sa.create_engine(server_url.set(database=name))
        try:
            yield engine
        finally:
            engine.dispose()
            administrator.exec_driver_sql(f"DROP DATABASE {name}")


def _administrator(server_url: sa.URL) -> sa.Engine:
    """Its connections are closed when they are given back: none is left to be in the way."""
    return sa.create_engine(server_url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
