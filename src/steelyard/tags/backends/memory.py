"""A backend that is only here: for trying out, and for tests.

It does what Ganeti does, as far as tags go: jobs take a while and run in order, an unknown instance
is refused, a deletion of what is not there fails as a whole, and so does more than there is room
for.
"""

import dataclasses
import itertools
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from oslo_config import cfg

from steelyard import errors
from steelyard.tags.backends.base import JobStatus, TagBackend

_VALID = re.compile(r"[A-Za-z0-9_.+*/:@-]{1,128}")
_MOST = 4096

Work = Callable[[], bool]


@dataclasses.dataclass
class _Job:
    work: Work
    status: JobStatus = JobStatus.RUNNING


class MemoryBackend(TagBackend):
    """Instances and their tags. Jobs wait until ``run`` is called, or until they are asked about.

    ``patient`` jobs wait for ``run`` alone.
    """

    def __init__(self, conf: cfg.ConfigOpts | None = None, *, patient: bool = False) -> None:
        self._patient = patient
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._jobs: dict[int, _Job] = {}
        self._tags: dict[str, set[str]] = {}

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

    def job(self, number: int) -> JobStatus:
        if not self._patient:
            self.run()
        with self._lock:
            found = self._jobs.get(number)
            return JobStatus.LOST if found is None else found.status

    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        with self._lock:
            return {name: frozenset(self._tags[name]) for name in instances if name in self._tags}

    def adopt(self, there: Mapping[str, Iterable[str]], last_job: int = 0) -> None:
        """Has these instances with these tags from now on, as if they had always been there.

        ``last_job`` is the number that its jobs come after.
        """
        with self._lock:
            self._tags |= {name: set(tags) for name, tags in there.items()}
            self._numbers = itertools.count(max(next(self._numbers), last_job + 1))

    def run(self, most: int | None = None) -> None:
        """Does the jobs that wait, or the first few of them."""
        with self._lock:
            waiting = [job for job in self._jobs.values() if job.status is JobStatus.RUNNING]
            for job in waiting[:most]:
                job.status = JobStatus.SUCCEEDED if job.work() else JobStatus.FAILED

    def fail(self, number: int) -> None:
        """Has a job that waits end without having done anything."""
        with self._lock:
            job = self._jobs[number]
            if job.status is JobStatus.RUNNING:
                job.status = JobStatus.FAILED

    def _submit(self, work: Work) -> int:
        number = next(self._numbers)
        self._jobs[number] = _Job(work)
        return number

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
