"""The registration of all instances of a backend."""

import json
import logging
import pathlib
import tracemalloc
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from steelyard.errors import BackendRefused, WrongBackend
from steelyard.tags import BackendIdentity, TagBackend, TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from support.tags.databases import upgrade

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.fixture
def store(tmp_path: pathlib.Path) -> TagStore:
    made = TagStore(f"sqlite:///{tmp_path}/tags.db")
    upgrade(made)
    return made


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """Yield the statements that are executed."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield seen
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


def having(store: TagStore, count: int) -> TagService:
    """Return a service whose backend has so many instances."""
    backend = MemoryBackend()
    backend.adopt({f"vm-{number}": () for number in range(count)})
    return TagService(store, backend)


def test_many_instances_are_registered_by_few_statements(
    store: TagStore, statements: list[str]
) -> None:
    inventory = having(store, 10_000).inventory
    names = inventory.names()
    statements.clear()
    tracemalloc.start()
    parts = [len(part.new) for part in inventory.register(names, "p", "u")]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert parts == [500] * 20
    # The last job from three tables; then, for each part: the backend of the database, the taken
    # ids and names, and the insertion.
    assert len([each for each in statements if not each.startswith("BEGIN")]) == 3 + 20 * 3
    assert peak < 16 * 2**20
    assert store.count() == 10_000
    statements.clear()
    assert sum(len(part.known) for part in inventory.register(names, "p", "u")) == 10_000
    assert len(statements) < 3 + 20 * 4


def test_registrations_are_in_the_audit_log(
    store: TagStore, caplog: pytest.LogCaptureFixture
) -> None:
    inventory = having(store, 2).inventory
    with caplog.at_level(logging.INFO, "steelyard.tags.audit"):
        list(inventory.register(["vm-0", "vm-1"], "p", "u"))
    assert [message.split(" reason")[0] for message in caplog.messages] == [
        f'event=registered operation=- caller="operator" project="p" server={json.dumps(name)} '
        f"instance={json.dumps(name)} prefix=- tags=[] job=-"
        for name in ("vm-0", "vm-1")
    ]


def test_earlier_jobs_do_not_change_new_instances(store: TagStore) -> None:
    service = having(store, 2)
    service.backend.add("vm-0", ["cyclades:user:a"])
    service.backend.jobs([1])
    list(service.inventory.register(["vm-0"], "p", "u"))
    assert store.state("vm-0").horizon == 1


def test_other_backends_register_nothing(store: TagStore) -> None:
    class Other(MemoryBackend):
        def identity(self) -> BackendIdentity:
            return BackendIdentity("memory", "other")

    inventory = TagService(store, Other()).inventory
    with pytest.raises(WrongBackend):
        inventory.names()
    with pytest.raises(WrongBackend):
        list(inventory.register(["vm-0"], "p", "u"))
    assert store.count() == 0


def test_backend_without_a_list_is_refused() -> None:
    with pytest.raises(BackendRefused, match="cannot list its instances; register each by name"):
        TagBackend.instances(MemoryBackend())
