"""Fixtures: a service over a backend in memory whose jobs a watch follows."""

import pathlib

import pytest

from steelyard.tags import TagService, TagStore
from steelyard.tags.reconciliation import Reconciliation
from steelyard.tags.states.values import Instance
from support.tags.databases import upgrade
from support.tags.watched_jobs import S1, S2, Archiving


@pytest.fixture
def backend() -> Archiving:
    backend = Archiving()
    backend.adopt({S1: (), S2: ()})
    return backend


@pytest.fixture
def new_service(tmp_path: pathlib.Path, backend: Archiving) -> TagService:
    """Return a service whose jobs no watch has followed yet."""
    store = TagStore(f"sqlite:///{tmp_path}/tags.db")
    upgrade(store)
    service = TagService(store, backend)
    for server in ("s1", "s2"):
        service.register(Instance(server, f"{server}.example.org", "p", "u"))
    return service


@pytest.fixture
def service(new_service: TagService) -> TagService:
    """Return a service whose jobs are followed from the first one."""
    new_service.store.follow(None, 0)
    return new_service


@pytest.fixture
def reconciled(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that gets one entry per full reconciliation."""
    times: list[None] = []
    real = Reconciliation.apply

    def apply(reconciliation: Reconciliation) -> None:
        times.append(None)
        real(reconciliation)

    monkeypatch.setattr(Reconciliation, "apply", apply)
    return times
