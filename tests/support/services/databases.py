"""The database servers that tests use, with one database for each test.

Environment variables set the URLs of the servers. The defaults are those of servers on this host
that admit their superuser without a password.
"""

import contextlib
import functools
import os
import uuid
from collections.abc import Iterator

import sqlalchemy as sa

from support.services import required

DEFAULTS = {
    "postgresql": "postgresql+psycopg://postgres@127.0.0.1:5432/postgres",
    "mariadb": "mysql+pymysql://root@127.0.0.1:3306/",
}


def variable(server: str) -> str:
    return f"STEELYARD_TEST_{server.upper()}"


def url(server: str) -> sa.URL:
    """Return the URL of the server; its database serves only to connect."""
    return sa.make_url(os.environ.get(variable(server), DEFAULTS[server]))


def why_unavailable(server: str) -> str | None:
    """Return the reason why the server is unavailable, or None if it answers."""
    return _why_unavailable(server, url(server))


@functools.cache
def _why_unavailable(server: str, where: sa.URL) -> str | None:
    """Ask the server once, so that a later failure fails the tests."""
    try:
        with contextlib.closing(_administrator(where).connect()) as connection:
            connection.exec_driver_sql("SELECT 1")
    except ModuleNotFoundError as error:
        return f"no driver for {server}: {error}"
    except sa.exc.OperationalError as error:
        return f"no {server} at {where!r} (set {variable(server)}): {error.orig}"
    return None


def needed(server: str) -> sa.URL:
    """Return the URL of the server; without it, skip the test, or fail it if services are required."""
    why = why_unavailable(server)
    if why:
        required.missing(why)
    return url(server)


@contextlib.contextmanager
def own_database(server_url: sa.URL, options: str = "") -> Iterator[sa.Engine]:
    """Yield an engine on a new database, which is dropped at the end."""
    name = f"steelyard_test_{uuid.uuid4().hex}"
    with contextlib.closing(_administrator(server_url).connect()) as administrator:
        administrator.exec_driver_sql(f"CREATE DATABASE {name} {options}")
        if server_url.get_backend_name() == "postgresql":
            # The server itself never crashes in tests, so no commit has to wait for the disk.
            administrator.exec_driver_sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
        engine = sa.create_engine(server_url.set(database=name))
        try:
            yield engine
        finally:
            engine.dispose()
            administrator.exec_driver_sql(f"DROP DATABASE {name}")


def _administrator(server_url: sa.URL) -> sa.Engine:
    """Return an engine that closes each connection after use, so that it blocks nothing."""
    return sa.create_engine(server_url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
