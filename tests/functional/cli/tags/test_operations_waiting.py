"""``steelyard tags add --wait`` while jobs fail or take long."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.tags import Instance, TagService
from steelyard.tags.backends.memory import MemoryBackend
from support.tags.served_api import served, tag_service, trusting

pytestmark = pytest.mark.usefixtures("closed_databases")

SERVER = "3d4c9b1e"


@pytest.fixture
def service(tmp_path: Any) -> TagService:
    """Return a service whose backend runs jobs on demand."""
    backend = MemoryBackend(patient=True)
    backend.adopt({"i-1": []})
    made = TagService(tag_service(tmp_path).store, backend)
    made.register(Instance(SERVER, "i-1", "p", "u"))
    return made


@pytest.fixture
def add(steelyard: Any, service: TagService) -> Iterator[Any]:
    """Yield a function that adds tags over HTTP and waits."""
    with served(trusting(service)) as url:
        way = ("--wait", "--endpoint", url, "--project", "p", "--user", "u")
        yield lambda *argv: steelyard("tags", "add", SERVER, *argv, *way)


def test_failed_job_is_reported_with_the_reason_of_the_backend(
    service: TagService, add: Any
) -> None:
    backend = service.backend
    assert isinstance(backend, MemoryBackend)

    def finish() -> None:
        while not stopped.wait(0.02):
            if [each.job for _, each in service.store.pending()] == [1, 2]:
                break
        backend.run(1)
        backend.fail(2)
        service.jobs.poll()

    stopped = threading.Event()
    thread = threading.Thread(target=finish)
    thread.start()
    try:
        status, out, err = add("good", "bad")
    finally:
        stopped.set()
        thread.join()
    assert status == 1
    assert "| good | active |" in out
    assert "| bad  | failed |" in out
    assert err == "steelyard: no tag 'bad': the backend could not add it: the job was canceled\n"


def test_tag_that_stays_pending_is_reported(add: Any) -> None:
    status, out, err = add("slow", "slower", "--timeout", "0.1")
    assert status == 1
    assert "| slower | pending |" in out
    assert err.splitlines() == [
        f"steelyard: tag '{tag}' is still PENDADD after 0.1 s; see whether 'steelyard tags watch' "
        "runs"
        for tag in ("slow", "slower")
    ]


def test_rejected_tag_is_reported_without_waiting(add: Any) -> None:
    status, _, err = add("a/b")
    assert (status, "invalid tag 'a/b'" in err) == (2, True)
    status, _, err = add("a", "--timeout", "nan")
    assert (status, "invalid --timeout 'nan'" in err) == (2, True)
