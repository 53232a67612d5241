"""A process that changes tags at random and notes the answers, and the backend of all writers."""

import collections
import dataclasses
import itertools
import multiprocessing.managers
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from steelyard import errors
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import decode
from steelyard.tags.names import MOST
from steelyard.tags.service import Caller
from steelyard.tags.states.values import Kind, Outcome
from support.soaks.tag_checker import Backend, Job, Told, private

LEAST_TURNS = 25
"""Turns that a writer takes even after the end, so that slow machines write something, too."""

COUNTED = [f"counted-{number}" for number in range(2)]
"""Instances whose tags are only added and deleted one by one."""

REPLACED = [f"replaced-{number}" for number in range(2)]
INSTANCES = COUNTED + REPLACED
SHARED = [f"shared {number}" for number in range(12)]
CALLER = Caller("p", "u")

Message = tuple[int, str, str, tuple[str, ...], bool]


class SharedBackend:
    """The backend of all writers, in a separate process, where some additions fail.

    Deletions succeed: a tag that a failed deletion restores could exceed the limit of tags.
    """

    def __init__(self, seed: int) -> None:
        self._memory = MemoryBackend(patient=True)
        self._memory.adopt(dict.fromkeys(INSTANCES, ()))
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._running: dict[int, Job] = {}

    def submit(self, kind: str, instance: str, tags: Sequence[str]) -> int:
        with self._lock:
            adds = kind == "add"
            if adds and self._chance.random() < 0.02:
                raise errors.BackendRefused("not now")
            number: int = getattr(self._memory, kind)(instance, tags)
            self._jobs[number] = self._running[number] = Job(instance, kind, tuple(tags))
            if adds and self._chance.random() < 0.05:
                self._memory.fail(number)
            return number

    def jobs(self, numbers: Sequence[int]) -> dict[int, str]:
        return dict(self._memory.jobs(numbers))

    def horizon(self) -> int:
        return self._memory.horizon()

    def tags(self, instances: Sequence[str]) -> dict[str, frozenset[str]]:
        return dict(self._memory.tags(instances))

    def ended(self, most: int) -> list[Message]:
        """Run some jobs and return the outcome of each finished one, once."""
        with self._lock:
            self._memory.run(most)
            outcomes = []
            for number in list(self._running):
                status = self._memory.jobs([number])[number]
                if status is JobStatus.RUNNING:
                    break
                job = self._running.pop(number)
                succeeded = status is JobStatus.SUCCEEDED
                outcomes.append((number, job.instance, job.kind, job.tags, succeeded))
            return outcomes

    def truth(self) -> Backend:
        jobs = tuple(self._jobs[number] for number in sorted(self._jobs))
        return Backend(self._memory.tags(INSTANCES), jobs)


class Backends(multiprocessing.managers.BaseManager):
    """The manager of the process with the shared backend."""


class BackendProxy(TagBackend):
    """A tag backend that calls the shared backend through a proxy."""

    def __init__(self, shared: Any) -> None:
        self._there = shared

    def identity(self) -> BackendIdentity:
        return MemoryBackend().identity()

    def create(self, instance: str, tags: Sequence[str]) -> int:
        raise NotImplementedError

    def add(self, instance: str, tags: Sequence[str]) -> int:
        return int(self._there.submit("add", instance, tags))

    def delete(self, instance: str, tags: Sequence[str]) -> int:
        return int(self._there.submit("delete", instance, tags))

    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        found = self._there.jobs(list(numbers))
        return {number: JobStatus(status) for number, status in found.items()}

    def horizon(self) -> int:
        return int(self._there.horizon())

    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        return dict(self._there.tags(list(instances)))


def outcome(message: Message) -> Outcome:
    job, instance, kind, tags, succeeded = message
    return Outcome(job, instance, Kind(kind), frozenset(map(decode, tags)), succeeded)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The settings of all writers."""

    url: str
    address: Any
    key: bytes
    start: float
    seconds: float
    seed: int

    @property
    def over(self) -> bool:
        return time.time() >= self.start + self.seconds


def write(plan: Plan, number: int) -> Told:
    """Run a writer in this process and return the answers that it got."""
    Backends.register("shared")
    backends: Any = Backends(plan.address, plan.key)
    backends.connect()
    return _Writer(plan, number, backends.shared()).write()


class _Writer:
    """A writer whose actions are random."""

    def __init__(self, plan: Plan, number: int, shared: Any) -> None:
        self._plan = plan
        self._chance = random.Random(f"{plan.seed} {number}")
        self._backend = shared
        self._service = TagService(TagStore(plan.url), BackendProxy(shared))
        self._mine = private(number)
        self._late: list[Outcome] = []
        self._told = Told()
        self._retries = 0
        sa.event.listen(sa.Engine, "handle_error", self._note_error)

    def write(self) -> Told:
        turns: list[Callable[[], None]] = [
            self._add,
            self._delete,
            self._replace,
            self._clear,
            self._look,
            self._deliver,
        ]
        time.sleep(max(0.0, self._plan.start - time.time()))
        for number in itertools.count():
            if number >= LEAST_TURNS and self._plan.over:
                break
            (turn,) = self._chance.choices(turns, [8, 6, 1, 0.2, 2, 6])
            try:
                turn()
            except Exception:  # noqa: BLE001 - the checker reports every error
                self._told.failures.append(traceback.format_exc())
        for each in self._late:
            self._service.jobs.apply(each)
        return self._told

    def _add(self) -> None:
        server, name = self._tag()
        if self._attempt(lambda: self._service.add(CALLER, server, name)):
            self._told.done.append((server, name, "add"))

    def _delete(self) -> None:
        server, name = self._tag()

        def delete() -> bool:
            self._service.delete(CALLER, server, name)
            return True

        if self._attempt(delete):
            self._told.done.append((server, name, "delete"))

    def _replace(self) -> None:
        server = self._chance.choice(REPLACED)
        names = [f"tag {number}" for number in range(2 * MOST)]
        wanted = self._chance.sample(names, self._chance.choice([3, 30, MOST]))
        self._attempt(lambda: self._service.replace(CALLER, server, wanted))

    def _clear(self) -> None:
        server = self._chance.choice(REPLACED)
        self._attempt(lambda: self._service.clear(CALLER, server))

    def _look(self) -> None:
        there = self._service.tags(CALLER, self._chance.choice(INSTANCES))
        assert len(there) <= MOST, f"{len(there)} tags, expected at most {MOST}: {sorted(there)}"

    def _deliver(self) -> None:
        """Deliver outcomes of jobs in random order, some of them late and some twice."""
        new = [outcome(message) for message in self._backend.ended(self._chance.randint(1, 20))]
        now = self._late + new
        self._late = [each for each in new if self._chance.random() < 0.1]
        now = [each for each in now if each not in self._late]
        self._chance.shuffle(now)
        twice = [each for each in now if self._chance.random() < 0.1]
        for each in now + twice:
            self._attempt(lambda each=each: self._service.jobs.apply(each), "delivered")  # type: ignore[misc]

    def _tag(self) -> tuple[str, str]:
        return self._chance.choice(INSTANCES), self._chance.choice(self._mine + SHARED)

    def _attempt(self, change: Callable[[], Any], done: str = "done") -> Any:
        """Run the change and return its answer, or None if it was refused."""
        self._retries = 0
        begun = time.perf_counter()
        result, answer = done, None
        try:
            answer = change()
        except errors.InvalidTag:
            raise
        except (errors.NotFound, errors.Conflict, errors.BadRequest, errors.BackendRefused):
            result = "refused"
        except errors.ServiceError as error:
            self._told.failures.append(f"{type(error).__name__}: {error}")
            result = "failed"
        self._told.outcomes[result] += 1
        self._told.longest = max(self._told.longest, time.perf_counter() - begun)
        self._told.retries = max(self._told.retries, self._retries)
        return answer

    def _note_error(self, context: sa.engine.ExceptionContext) -> None:
        if isinstance(context.sqlalchemy_exception, sa.exc.OperationalError):
            self._retries += 1
            message = " ".join(str(context.original_exception).split())
            self._told.errors += collections.Counter([message[:120]])
