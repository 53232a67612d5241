"""A backend in the memory of the process, for trials and tests.

It treats tags as Ganeti does: jobs take a while and run in order, and requests for unknown
instances are refused. A job that deletes a missing tag, or adds too many tags, fails as a whole.
"""

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from oslo_config import cfg

from steelyard import errors
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend, TagJob
from steelyard.tags.states.values import Kind

_VALID = re.compile(r"[A-Za-z0-9_.+*/:@-]{1,128}")
_MOST = 4096
# The most finished jobs that are kept; earlier ones are lost.
_REMEMBERED = 10_000

Work = Callable[[], str | None]
"""A function that runs a job, and returns the reason if it failed, otherwise None."""


def _exists(instance: str) -> str:
    return f"cannot create instance {instance!r}: it exists already"


class MemoryBackend(TagBackend):
    """A backend in memory, which several threads can use.

    Jobs wait until ``run`` is called or their statuses are requested. With ``patient``, they wait
    for ``run`` only.
    """

    in_process = True

    def __init__(self, conf: cfg.ConfigOpts | None = None, *, patient: bool = False) -> None:
        self._patient = patient
        self._lock = threading.Lock()
        self._last = 0
        self._waiting: dict[int, Work] = {}
        self._over: dict[int, JobStatus] = {}
        self._failures: dict[int, str] = {}
        self._described: dict[int, TagJob] = {}
        self._tags: dict[str, set[str]] = {}

    def identity(self) -> BackendIdentity:
        return BackendIdentity("memory", "in-process")

    def create(self, instance: str, tags: Sequence[str]) -> int:
        with self._lock:
            if instance in self._tags:
                raise errors.BackendRefused(_exists(instance))
            job = TagJob(instance, Kind.CREATE, frozenset(tags))
            return self._submit(job, lambda: self._create(instance, tags))

    def add(self, instance: str, tags: Sequence[str]) -> int:
        with self._lock:
            self._check(instance)
            job = TagJob(instance, Kind.ADD, frozenset(tags))
            return self._submit(job, lambda: self._add(instance, tags))

    def delete(self, instance: str, tags: Sequence[str]) -> int:
        with self._lock:
            self._check(instance)
            job = TagJob(instance, Kind.DELETE, frozenset(tags))
            return self._submit(job, lambda: self._delete(instance, tags))

    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        if not self._patient:
            self.run()
        with self._lock:
            return {number: self._status(number) for number in numbers}

    def reasons(self, numbers: Iterable[int]) -> Mapping[int, str]:
        with self._lock:
            return {each: self._failures[each] for each in numbers if each in self._failures}

    def jobs_since(self, number: int) -> Mapping[int, JobStatus]:
        if not self._patient:
            self.run()
        with self._lock:
            return {each: self._status(each) for each in self._described if each > number}

    def tag_jobs(self, numbers: Iterable[int]) -> Mapping[int, Sequence[TagJob]]:
        with self._lock:
            return {
                number: [self._described[number]]
                for number in numbers
                if self._status(number) is JobStatus.SUCCEEDED
            }

    def horizon(self) -> int:
        with self._lock:
            return min(self._waiting, default=self._last + 1) - 1

    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        with self._lock:
            return {name: frozenset(self._tags[name]) for name in instances if name in self._tags}

    def instances(self) -> Iterable[str]:
        with self._lock:
            return list(self._tags)

    def adopt(self, there: Mapping[str, Iterable[str]], last_job: int = 0) -> None:
        with self._lock:
            self._tags |= {name: set(tags) for name, tags in there.items()}
            self._last = max(self._last, last_job)

    def remove(self, instance: str) -> None:
        """Remove the instance without a job, as if it had never existed."""
        with self._lock:
            self._tags.pop(instance, None)

    def run(self, most: int | None = None) -> None:
        """Run the waiting jobs, or the first ``most`` of them."""
        with self._lock:
            for number in list(self._waiting)[:most]:
                self._end(number, self._waiting[number]())

    def fail(self, number: int) -> None:
        """Fail a waiting job, without any effect on tags."""
        with self._lock:
            if number in self._waiting:
                self._end(number, "the job was canceled")

    def lose(self, number: int) -> None:
        """Forget a finished job, as if it had finished long ago."""
        with self._lock:
            self._forget(number)

    def _submit(self, job: TagJob, work: Work) -> int:
        self._last += 1
        self._described[self._last] = job
        self._waiting[self._last] = work
        return self._last

    def _end(self, number: int, failure: str | None) -> None:
        del self._waiting[number]
        self._over[number] = JobStatus.SUCCEEDED if failure is None else JobStatus.FAILED
        if failure is not None:
            self._failures[number] = failure
        if len(self._over) > _REMEMBERED:
            self._forget(next(iter(self._over)))

    def _forget(self, number: int) -> None:
        if self._over.pop(number, None) is not None:
            del self._described[number]
            self._failures.pop(number, None)

    def _status(self, number: int) -> JobStatus:
        if number in self._waiting:
            return JobStatus.RUNNING
        return self._over.get(number, JobStatus.LOST)

    def _check(self, instance: str) -> None:
        if instance not in self._tags:
            raise errors.BackendRefused(f"no instance {instance!r}")

    def _create(self, instance: str, tags: Sequence[str]) -> str | None:
        if instance in self._tags:
            return _exists(instance)
        self._tags[instance] = set()
        failure = self._add(instance, tags)
        if failure is not None:
            del self._tags[instance]
        return failure

    def _add(self, instance: str, tags: Sequence[str]) -> str | None:
        there = self._tags[instance] | set(tags)
        if len(there) > _MOST:
            return f"too many tags: an instance has at most {_MOST}, and would have {len(there)}"
        invalid = [tag for tag in tags if not _VALID.fullmatch(tag)]
        if invalid:
            return f"invalid tag {invalid[0]!r}: expected 1 to 128 of A-Z, a-z, 0-9 and _.+*/:@-"
        self._tags[instance] = there
        return None

    def _delete(self, instance: str, tags: Sequence[str]) -> str | None:
        there = self._tags[instance]
        missing = sorted(set(tags) - there)
        if missing:
            return f"no tag {missing[0]!r}"
        self._tags[instance] = there - set(tags)
        return None
