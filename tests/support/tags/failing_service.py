"""A tag service whose store and backend fail on demand, at each step of a request."""

import contextlib
import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from steelyard import errors
from steelyard.tags import TagService, TagStore, decode, encode
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.database.rows import Snapshot
from steelyard.tags.jobs.tracking import JobTracker
from steelyard.tags.states.values import Instance, Kind, Outcome, State, StateChange


class Crash(BaseException):
    """The crash of the process."""


class Fault(enum.Enum):
    """A failure of one submission, or an event between its steps."""

    REFUSED = enum.auto()
    REFUSED_AND_UNDO_FAILS = enum.auto()
    REFUSED_AND_CRASHED = enum.auto()
    CRASH_AFTER_UNDO = enum.auto()
    UNKNOWN = enum.auto()
    UNKNOWN_AND_CRASHED = enum.auto()
    UNKNOWN_BUT_SUBMITTED = enum.auto()
    ERROR_BUT_SUBMITTED = enum.auto()
    CRASH_BEFORE_SUBMIT = enum.auto()
    CRASH_AFTER_SUBMIT = enum.auto()
    NOT_RECORDED = enum.auto()
    CRASH_AFTER_RECORD = enum.auto()
    CONCURRENT_CALLS_BEFORE = enum.auto()
    OUTCOME_BEFORE_RECORD = enum.auto()


# After these, the recorded operations stay pending without a job.
STOPPED = {
    Fault.REFUSED_AND_UNDO_FAILS,
    Fault.REFUSED_AND_CRASHED,
    Fault.CRASH_AFTER_UNDO,
    Fault.UNKNOWN_AND_CRASHED,
    Fault.CRASH_BEFORE_SUBMIT,
    Fault.CRASH_AFTER_SUBMIT,
    Fault.CRASH_AFTER_RECORD,
}
# After these, only the one operation stays pending without a job.
UNSURE = {
    Fault.UNKNOWN,
    Fault.UNKNOWN_BUT_SUBMITTED,
    Fault.ERROR_BUT_SUBMITTED,
    Fault.NOT_RECORDED,
}
BEFORE: Mapping[Fault | None, BaseException] = {
    Fault.REFUSED: errors.BackendRefused("no"),
    Fault.REFUSED_AND_UNDO_FAILS: errors.BackendRefused("no"),
    Fault.REFUSED_AND_CRASHED: errors.BackendRefused("no"),
    Fault.CRASH_AFTER_UNDO: errors.BackendRefused("no"),
    Fault.UNKNOWN: errors.OutcomeUnknown("no answer"),
    Fault.UNKNOWN_AND_CRASHED: errors.OutcomeUnknown("no answer"),
    Fault.CRASH_BEFORE_SUBMIT: Crash(),
}
AFTER: Mapping[Fault | None, BaseException] = {
    Fault.UNKNOWN_BUT_SUBMITTED: errors.OutcomeUnknown("no answer"),
    Fault.ERROR_BUT_SUBMITTED: RuntimeError("a bug"),
    Fault.CRASH_AFTER_SUBMIT: Crash(),
}
UNDOING: Mapping[Fault | None, BaseException] = {
    Fault.REFUSED_AND_UNDO_FAILS: errors.ServiceError("no connection to the database"),
    Fault.REFUSED_AND_CRASHED: Crash(),
    Fault.UNKNOWN_AND_CRASHED: Crash(),
}
# After undoing one operation; the later ones are not undone.
UNDONE: Mapping[Fault | None, BaseException] = {Fault.CRASH_AFTER_UNDO: Crash()}


@dataclasses.dataclass
class Faults:
    """The faults of the next submissions, and that of the current one."""

    to_come: list[Fault | None] = dataclasses.field(default_factory=list)
    now: Fault | None = None
    happened: list[Fault | None] = dataclasses.field(default_factory=list)

    def next(self) -> None:
        self.now = self.to_come.pop(0) if self.to_come else None
        self.happened.append(self.now)


class Backend(TagBackend):
    """A backend in memory that fails on demand, and records the outcomes of its jobs."""

    def __init__(self, faults: Faults) -> None:
        self.memory = MemoryBackend(patient=True)
        self.numbered: dict[int, Outcome] = {}
        """The outcome of each job, if it succeeds."""
        self.others: Callable[[], None]
        self.tell: Callable[[], None]
        self.last_read: Mapping[str, frozenset[str]] = {}
        self.read_up_to = 0
        """The tags and the horizon that were read last."""
        self.others_after_reading = False
        self.working = False
        """Whether each query runs a job first."""
        self._ended: dict[int, Outcome] = {}
        self._faults = faults

    def identity(self) -> BackendIdentity:
        return self.memory.identity()

    def create(self, instance: str, tags: Sequence[str]) -> int:
        return self._asked(Kind.CREATE, instance, tags)

    def add(self, instance: str, tags: Sequence[str]) -> int:
        assert tags
        return self._asked(Kind.ADD, instance, tags)

    def delete(self, instance: str, tags: Sequence[str]) -> int:
        assert tags
        return self._asked(Kind.DELETE, instance, tags)

    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        self._work()
        return self.memory.jobs(numbers)

    def horizon(self) -> int:
        self._work()
        self.read_up_to = self.memory.horizon()
        return self.read_up_to

    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        self._work()
        found, up_to = self.memory.tags(instances), self.read_up_to
        if self.others_after_reading:
            self.others()  # these may read, too
        self.last_read, self.read_up_to = found, up_to
        return found

    def batches(self, instance: str, tags: Sequence[str]) -> list[Sequence[str]]:
        return [tags[start : start + 20] for start in range(0, len(tags), 20)]

    def by_hand(self, kind: Kind, instance: str, tags: Sequence[str]) -> int:
        """Submit a job to the backend itself, not through the service."""
        keys = set()
        for tag in tags:
            with contextlib.suppress(errors.InvalidTag):
                keys.add(decode(tag))
        number = getattr(self.memory, kind.value)(instance, tags)
        self.numbered[number] = Outcome(number, instance, kind, frozenset(keys), succeeded=True)
        return int(number)

    def over(self) -> dict[int, Outcome]:
        """Return the outcomes of the finished jobs."""
        for number, status in self.jobs(self.numbered).items():
            if status in (JobStatus.SUCCEEDED, JobStatus.FAILED):
                succeeded = status is JobStatus.SUCCEEDED
                self._ended[number] = dataclasses.replace(
                    self.numbered[number], succeeded=succeeded
                )
        return self._ended

    def lose(self, number: int) -> None:
        """Forget a finished job, but keep its outcome."""
        self.over()
        self.memory.lose(number)

    def _work(self) -> None:
        if self.working:
            self.memory.run(1)

    def _asked(self, kind: Kind, instance: str, tags: Sequence[str]) -> int:
        for tag in tags:
            prefix, name = decode(tag)
            assert encode(name, prefix) == tag
            assert tag.isascii()
        self._faults.next()
        fault = self._faults.now
        if fault is Fault.CONCURRENT_CALLS_BEFORE:
            self.others()
        if fault in BEFORE:
            raise BEFORE[fault]
        number = self.by_hand(kind, instance, tags)
        if fault in AFTER:
            raise AFTER[fault]
        if fault is Fault.OUTCOME_BEFORE_RECORD:
            self.others()
            self.tell()
        return number


class Store(TagStore):
    """A store that fails on demand, and passes each transaction through ``watch``."""

    def __init__(self, engine: sa.Engine, faults: Faults) -> None:
        super().__init__(engine)
        self.watch: Callable[..., contextlib.AbstractContextManager[None]]
        self.adopted: Callable[[Sequence[Instance]], None]
        self.applying = False
        self._faults = faults

    def register(
        self, instance: Instance, change: StateChange | None = None, most: int | None = None
    ) -> None:
        with self.watch(instance.id):
            super().register(instance, change, most)

    def change(
        self,
        instance: str,
        decide: Callable[[State], tuple[StateChange, Any]],
        being: Instance | None = None,
    ) -> Any:
        self._fail(UNDOING)
        with self.watch(instance, by_a_call=not self.applying):
            answer = super().change(instance, decide, being)
        self._fail(UNDONE)
        return answer

    def change_named(self, name: str, decide: Callable[[State], tuple[StateChange, Any]]) -> Any:
        with self.watch(name.removeprefix("vm-"), by_a_call=False):
            return super().change_named(name, decide)

    def change_unchanged(self, changes: Sequence[tuple[Snapshot, StateChange]]) -> set[str]:
        with contextlib.ExitStack() as stack:
            for snapshot, _ in changes:
                watching = self.watch(snapshot.instance.id, by_a_call=False, alone=False)
                stack.enter_context(watching)
            missed = super().change_unchanged(changes)
            self.adopted(
                [snapshot.instance for snapshot, _ in changes if snapshot.instance.id not in missed]
            )
        return missed

    def record_job(self, operation: str, job: int) -> None:
        if self._faults.now is Fault.NOT_RECORDED:
            raise errors.ServiceError("no connection to the database")
        super().record_job(operation, job)
        if self._faults.now is Fault.CRASH_AFTER_RECORD:
            raise Crash

    def _fail(self, how: Mapping[Fault | None, BaseException]) -> None:
        failure = how.get(self._faults.now)
        if failure is not None:
            raise failure


class Tracker(JobTracker):
    """A tracker that passes each outcome to ``note`` before applying it."""

    note: Callable[[Outcome], None]

    def apply(self, outcome: Outcome, being: Instance | None = None) -> None:
        self.note(outcome)
        assert isinstance(self.store, Store)
        self.store.applying = True
        try:
            super().apply(outcome, being)
        finally:
            self.store.applying = False


class Service(TagService):
    """A service that does not retry to record jobs."""

    _record_for = 0.0
