"""A backend in memory whose jobs can be archived, and a watch that runs on demand."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from steelyard import errors
from steelyard.tags import TagService
from steelyard.tags.backends.base import JobStatus
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.jobs.watch import Watch

KEPT = 86400.0
S1, S2 = "s1.example.org", "s2.example.org"


class Clock:
    """A clock that tests set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Archiving(MemoryBackend):
    """A backend that archives jobs on demand: it lists them no longer, but still knows them."""

    def __init__(self) -> None:
        super().__init__(patient=True)
        self.archived: set[int] = set()
        self.asked: list[list[int]] = []

    def jobs_since(self, number: int) -> Mapping[int, JobStatus]:
        found = super().jobs_since(number)
        return {each: found[each] for each in found.keys() - self.archived}

    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        self.asked.append(list(numbers))
        return super().jobs(self.asked[-1])


def watching(service: TagService, **more: Any) -> Watch:
    watch = Watch(service.jobs, KEPT, **more)
    watch.look()
    return watch


def done(backend: MemoryBackend, job: int) -> int:
    backend.run()
    return job


def failing(times: int, then: Callable[..., None] | None = None) -> Callable[..., None]:
    """Return a function that fails like a database so many times, then calls ``then``."""
    left = iter(range(times))

    def fail(*arguments: object) -> None:
        if next(left, None) is not None:
            raise errors.ServiceError("database error: the server is restarting")
        assert then is not None
        then(*arguments)

    return fail
