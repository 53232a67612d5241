"""Databases and virtual hosts on real servers, for one test or for the tests of one worker."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.consumers import model as of_consumers
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.ganeti import GanetiBackend
from steelyard.tags.database import model as of_tags
from support.services import brokers, databases, ganeti_cluster
from support.services.ganeti_cluster import INST1, INST2, NEW, Cluster

WorkerDatabase = Callable[[str], sa.Engine]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run all tests of Ganeti on one worker, because they share a cluster, and others on any.

    pytest-xdist 3.8 does the same with ``--dist loadgroup`` and a mark, but not on pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling  # installed if xdist calls this hook

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return "ganeti" if needs_ganeti(nodeid.partition("::")[0]) else nodeid

    return Scheduling(config, log)


def needs_ganeti(path: str) -> bool:
    """Return whether the name of the file says that its tests need Ganeti."""
    return "ganeti" in pathlib.PurePath(path).name


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the soaks first: the other workers would wait for a long test at the end."""
    items.sort(key=lambda item: "soak" not in item.path.name)


@pytest.fixture(params=["postgresql", "mariadb"])
def engine(request: Any) -> Iterator[sa.Engine]:
    """Yield an engine on an empty database of the test's own."""
    with databases.own_database(databases.needed(request.param)) as engine:
        yield engine


@pytest.fixture
def postgresql() -> Iterator[sa.Engine]:
    """Yield an engine on an empty database of the test's own on PostgreSQL."""
    with databases.own_database(databases.needed("postgresql")) as engine:
        yield engine


@pytest.fixture(scope="session")
def worker_database() -> Iterator[WorkerDatabase]:
    """Yield a function that returns an engine on the worker's database on a server.

    The database has the tables of both stores, without rows except those of the migrations.
    """
    engines: dict[str, sa.Engine] = {}

    def find(server: str) -> sa.Engine:
        url = databases.needed(server)
        if server not in engines:
            engines[server] = stack.enter_context(databases.own_database(url))
            ConsumerStore(engines[server]).upgrade()
            TagStore(engines[server]).upgrade()
        _remove_rows(engines[server])
        return engines[server]

    with contextlib.ExitStack() as stack:
        yield find


@pytest.fixture(params=["postgresql", "mariadb"])
def upgraded(request: Any, worker_database: WorkerDatabase) -> sa.Engine:
    """Return an engine on the worker's database, for tests that change rows only."""
    return worker_database(request.param)


@pytest.fixture
def upgraded_postgresql(worker_database: WorkerDatabase) -> sa.Engine:
    """Return an engine on the worker's database on PostgreSQL, for tests that change rows only."""
    return worker_database("postgresql")


@pytest.fixture(scope="session")
def host() -> Iterator[str]:
    """Yield the URL of the worker's virtual host at RabbitMQ."""
    with brokers.own_host(brokers.needed()) as host:
        yield host


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[Cluster]:
    """Yield the Ganeti cluster after opening its job queue and removing its job filters.

    All tests share the cluster; files of tests that use it have ``ganeti`` in their names.
    """
    with ganeti_cluster.needed() as cluster:
        if "unset" not in cluster.inside("gnt-cluster", "queue", "info"):
            cluster.inside("gnt-cluster", "queue", "undrain")
        ganeti_cluster.remove_filters(cluster)
        backend = cluster.backend()
        ganeti_cluster.wait(lambda: backend.horizon() == ganeti_cluster.last_job(cluster))
        yield cluster


@pytest.fixture
def cluster(request: pytest.FixtureRequest, running_cluster: Cluster) -> Cluster:
    """Return the cluster, with two instances that have no tags."""
    assert needs_ganeti(str(request.path)), "only files with ganeti in their names share a worker"
    backend = running_cluster.backend()
    found = backend.tags([INST1, INST2, NEW])
    if NEW in found:
        running_cluster.inside("gnt-instance", "remove", "--force", NEW)
    jobs = [
        backend.delete(name, batch)
        for name in (INST1, INST2)
        for batch in backend.batches(name, sorted(found[name]))
        if found[name]
    ]
    ganeti_cluster.done(backend, *jobs)
    return running_cluster


@pytest.fixture
def backend(cluster: Cluster) -> GanetiBackend:
    """Return the backend of the cluster."""
    return cluster.backend()


@pytest.fixture
def service(backend: GanetiBackend, tmp_path: pathlib.Path) -> TagService:
    """Return a service of the cluster with both instances in a new database."""
    return ganeti_cluster.service_of(backend, tmp_path)


def _remove_rows(engine: sa.Engine) -> None:
    """Delete all rows except the consumer type that the migrations create."""
    tables = [*of_consumers.metadata.sorted_tables, *of_tags.metadata.sorted_tables]
    with engine.begin() as connection:
        for table in reversed(tables):
            removal = sa.delete(table)
            if table is of_consumers.consumer_types:
                removal = removal.where(table.c.name != "UNKNOWN")
            connection.execute(removal)
