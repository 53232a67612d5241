"""The state of one instance's tags as a value, with its parts and its changes."""

import dataclasses
import enum
from collections.abc import Mapping

from steelyard.tags.codec import Tag


class Status(enum.StrEnum):
    """The status of a tag."""

    PENDADD = "PENDADD"
    """An operation that adds the tag is pending."""

    ACTIVE = "ACTIVE"
    """The backend has the tag."""


class Kind(enum.StrEnum):
    """The kind of an operation or a job."""

    ADD = "add"
    DELETE = "delete"
    CREATE = "create"
    """The creation of an instance with its tags."""

    REMOVE = "remove"
    """The removal of an instance with all its tags. The service itself never submits one."""

    @property
    def adds(self) -> bool:
        return self in (Kind.ADD, Kind.CREATE)


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """A server, with its name at the backend."""

    id: str
    name: str
    project: str
    user: str


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """A pending change of tags.

    ``job`` is the number of its job at the backend; None until it is recorded. ``begun`` is in
    seconds since the epoch.
    """

    id: str
    kind: Kind
    prefix: str
    """The prefix of the owner's tags, also if there are no tags."""

    tags: tuple[Tag, ...]
    begun: float
    job: int | None = None
    caller: str | None = None
    """The id of the user who requested it, or ``operator``; None if unknown."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tag.name for tag in self.tags)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a job for the tags of one instance."""

    job: int
    instance: str
    kind: Kind
    tags: frozenset[Tag]
    succeeded: bool
    cluster: str | None = None
    """The name of the backend that ran the job, if the notification gives it."""
    complete: bool = False
    """Whether this is all that the job did to the tags, and not one step of several."""
    reason: str = dataclasses.field(default="", compare=False)
    """Why the job failed, if the backend says; ignored when outcomes are compared."""


@dataclasses.dataclass(frozen=True, slots=True)
class TagMark:
    """The last job known to have succeeded for a tag, and whether the tag existed after it."""

    job: int
    there: bool


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """Everything that is known about the tags of one instance."""

    tags: Mapping[Tag, Status] = dataclasses.field(default_factory=dict)
    operations: tuple[Operation, ...] = ()
    marks: Mapping[Tag, TagMark] = dataclasses.field(default_factory=dict)
    """The last known job of each tag, kept after the tag is deleted."""

    horizon: int = 0
    """All jobs up to this number are finished, and this state includes their results."""

    def of(self, prefix: str) -> dict[str, Status]:
        """Return the tags of one owner with their statuses, sorted by name."""
        mine = ((name, status) for (its, name), status in self.tags.items() if its == prefix)
        return dict(sorted(mine))

    def is_news(self, job: int, key: Tag) -> bool:
        """Return whether the job is later than everything known about the tag."""
        return job > self.horizon and (key not in self.marks or job > self.marks[key].job)

    def is_completed_by(self, outcome: Outcome, key: Tag) -> bool:
        """Return whether the outcome is complete, and its job is the tag's last known one."""
        seen = self.marks.get(key)
        return (
            outcome.complete
            and outcome.job > self.horizon
            and seen is not None
            and seen.job == outcome.job
        )


@dataclasses.dataclass(frozen=True, slots=True)
class StateChange:
    """A change of an instance's state."""

    put: Mapping[Tag, Status] = dataclasses.field(default_factory=dict)
    removed: frozenset[Tag] = frozenset()
    begun: tuple[Operation, ...] = ()
    ended: frozenset[str] = frozenset()
    """The ids of the operations that have finished."""

    marked: Mapping[Tag, TagMark] = dataclasses.field(default_factory=dict)
    unmarked: frozenset[Tag] = frozenset()
    horizon: int | None = None
    failures: Mapping[Tag, str] = dataclasses.field(default_factory=dict)
    """The reasons of failed additions. They are told for a while, and are no part of the state."""

    forgotten: bool = False
    """Whether the instance itself is deleted, because it was never created."""

    def applied(self, state: State) -> State:
        """Return the state after the change."""
        tags = {key: status for key, status in state.tags.items() if key not in self.removed}
        left = [each for each in state.operations if each.id not in self.ended]
        marks = {key: mark for key, mark in state.marks.items() if key not in self.unmarked}
        return State(
            {**tags, **self.put},
            (*left, *self.begun),
            {**marks, **self.marked},
            state.horizon if self.horizon is None else self.horizon,
        )
