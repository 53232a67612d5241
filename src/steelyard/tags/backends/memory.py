"""A backend that is only here: for trying out, and for tests.

It does what Ganeti does, as far as tags go: jobs take a while and run in order, an unknown instance
is refused, a deletion of what is not there fails as a whole, and so does more than there is room
for.
"""

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from oslo_config import cfg

from steelyard import errors
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend

_VALID = re.compile(r"[A-Za-z0-9_.+*/:@-]{1,128}")
_MOST = 4096
# Jobs that are over; of those before them it knows nothing more.
_REMEMBERED = 10_000

Work = Callable[[], bool]


class MemoryBackend(TagBackend):
    """Instances and their tags. Jobs wait until ``run`` is called, or until they are asked about.

    ``patient`` jobs wait for ``run`` alone.
    """

    def __init__(self, conf: cfg.ConfigOpts | None = None, *, patient: bool = False) -> None:
        self._patient = patient
        self._lock = threading.Lock()
        self._last = 0
        self._waiting: dict[int, Work] = {}
        self._over: dict[int, JobStatus] = {}
        self._tags: dict[str, set[str]] = {}

    def identity(self) -> BackendIdentity:
        return BackendIdentity("memory", "in-process")

    def create(self, instance: str, tags: Sequence[str]) -> int:
        with self._lock:
            if instance in self._tags:
                raise errors.BackendRefused(f"there is already an instance {instance!r}")
            return self._submit(lambda: self._create(instance, tags))

    def add(self, instance: str, tags: Sequence[str]) -> int:
        with self._lock:
            self._check(instance)
            return self._submit(lambda: self._add(instance, tags))

    def delete(self, instance: str, tags: Sequence[str]) -> int:
        with self._lock:
            self._check(instance)
            return self._submit(lambda: self._delete(instance, tags))

    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        if not self._patient:
            self.run()
        with self._lock:
            return {number: self._status(number) for number in numbers}

    def horizon(self) -> int:
        with self._lock:
            return min(self._waiting, default=self._last + 1) - 1

    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        with self._lock:
            return {name: frozenset(self._tags[name]) for name in instances if name in self._tags}

    def adopt(self, there: Mapping[str, Iterable[str]], last_job: int = 0) -> None:
        """Has these instances with these tags from now on, as if they had always been there.

        ``last_job`` is the number that its jobs come after.
        """
        with self._lock:
            self._tags |= {name: set(tags) for name, tags in there.items()}
            self._last = max(self._last, last_job)

    def remove(self, instance: str) -> None:
        """Has the instance no longer, as if it had never been there."""
        with self._lock:
            self._tags.pop(instance, None)

    def run(self, most: int | None = None) -> None:
        """Does the jobs that wait, or the first few of them."""
        with self._lock:
            for number in list(self._waiting)[:most]:
                done = self._waiting[number]()
                self._end(number, JobStatus.SUCCEEDED if done else JobStatus.FAILED)

    def fail(self, number: int) -> None:
        """Has a job that waits end without having done anything."""
        with self._lock:
            if number in self._waiting:
                self._end(number, JobStatus.FAILED)

    def lose(self, number: int) -> None:
        """Knows nothing more of a job that is over, as if that had been long ago."""
        with self._lock:
            self._over.pop(number, None)

    def _submit(self, work: Work) -> int:
        self._last += 1
        self._waiting[self._last] = work
        return self._last

    def _end(self, number: int, status: JobStatus) -> None:
        del self._waiting[number]
        self._over[number] = status
        if len(self._over) > _REMEMBERED:
            del self._over[next(iter(self._over))]

    def _status(self, number: int) -> JobStatus:
        if number in self._waiting:
            return JobStatus.RUNNING
        return self._over.get(number, JobStatus.LOST)

    def _check(self, instance: str) -> None:
        if instance not in self._tags:
            raise errors.BackendRefused(f"there is no instance {instance!r}")

    def _create(self, instance: str, tags: Sequence[str]) -> bool:
        if instance in self._tags:
            return False
        self._tags[instance] = set()
        if not self._add(instance, tags):
            del self._tags[instance]
        return instance in self._tags

    def _add(self, instance: str, tags: Sequence[str]) -> bool:
        there = self._tags[instance] | set(tags)
        if len(there) > _MOST or not all(map(_VALID.fullmatch, tags)):
            return False
        self._tags[instance] = there
        return True

    def _delete(self, instance: str, tags: Sequence[str]) -> bool:
        there = self._tags[instance]
        if not there.issuperset(tags):
            return False
        self._tags[instance] = there - set(tags)
        return True
