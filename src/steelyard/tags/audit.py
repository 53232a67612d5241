"""The audit log of tags: one line at info level for each change and each failed job.

A line is written after its change is committed, by the process that committed it. An outcome that
arrives again changes nothing, and is not logged again.
"""

import dataclasses
import enum
import json
import logging
import weakref
from collections.abc import Iterable, Iterator, Mapping

from steelyard.tags.states.values import Instance, Kind, Operation, State, StateChange
from steelyard.text.escapes import escaped

LOG = logging.getLogger("steelyard.tags.audit")

OPERATOR = "operator"
"""The caller in lines about operator commands."""

_NONE = "-"
_LONGEST_REASON = 500


class Event(enum.StrEnum):
    """The event that a line is about."""

    SUBMITTED = "submitted"
    """The backend accepted the job."""

    UNANSWERED = "unanswered"
    """The backend did not answer: the operation stays pending."""

    REFUSED = "refused"
    """The backend refused the job: the operation was undone."""

    FAILED = "failed"
    """A job failed or was lost: the operation was undone."""

    DROPPED = "dropped"
    """An operator dropped a pending operation: reconciliation shows whether it was applied."""

    ADOPTED = "adopted"
    """A change that was made at the backend, not by the service, was recorded."""

    REGISTERED = "registered"
    FORGOTTEN = "forgotten"


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One line of the audit log."""

    event: Event
    instance: Instance
    operation: str | None = None
    caller: str | None = None
    prefix: str | None = None
    tags: tuple[str, ...] = ()
    job: int | None = None
    reason: str | None = None

    def __str__(self) -> str:
        reason = None if self.reason is None else self.reason[:_LONGEST_REASON]
        return (
            f"event={self.event} operation={self.operation or _NONE} caller={_text(self.caller)} "
            f"project={_text(self.instance.project)} server={_text(self.instance.id)} "
            f"instance={_text(self.instance.name)} prefix={_text(self.prefix)} "
            f"tags=[{','.join(map(_text, self.tags))}] "
            f"job={_NONE if self.job is None else self.job} reason={_text(reason)}"
        )


class Observer:
    """An observer of the audit log, for example for metrics."""

    def noted(self, entry: Entry) -> None:
        """Receive an entry, whatever the level of the log is."""


class _Observers:
    """The observers that still exist; each one ends with its application."""

    def __init__(self) -> None:
        self._all: tuple[weakref.ref[Observer], ...] = ()

    def add(self, observer: Observer) -> None:
        there = (each for each in self._all if each() is not None)
        self._all = (*there, weakref.ref(observer))

    def __iter__(self) -> Iterator[Observer]:
        return (observer for each in self._all if (observer := each()) is not None)


_observers = _Observers()


def observe(observer: Observer) -> None:
    """Pass each later entry of this process to the observer, for as long as it is referenced."""
    _observers.add(observer)


def write(entries: Iterable[Entry]) -> None:
    """Log the entries, one line each."""
    for entry in entries:
        LOG.info("%s", entry)
        for observer in _observers:
            observer.noted(entry)


def of_operation(
    event: Event,
    instance: Instance,
    operation: Operation,
    job: int | None = None,
    reason: str | None = None,
) -> Entry:
    """Return the entry about an operation."""
    return Entry(
        event,
        instance,
        operation.kind.value,
        operation.caller,
        operation.prefix,
        operation.names,
        operation.job if job is None else job,
        reason,
    )


def of_change(
    instance: Instance,
    state: State,
    change: StateChange,
    failed: Mapping[str, str],
    job: int | None = None,
) -> list[Entry]:
    """Return the entries about a change that was applied to the instance's state.

    ``failed`` has the reasons of the finished operations that failed, by their ids. ``job`` is the
    job whose outcome made the change; None if reconciliation made it.
    """
    ended = [each for each in state.operations if each.id in change.ended]
    undone = [each for each in ended if each.id in failed]
    entries = [
        of_operation(Event.FAILED, instance, each, each.job or job, failed[each.id])
        for each in undone
    ]
    if change.forgotten:
        created = all(each.kind is not Kind.CREATE for each in ended)
        missing = "the backend does not have the instance"
        gone = Entry(Event.FORGOTTEN, instance, caller=OPERATOR, reason=missing)
        return [*entries, gone] if created else entries
    after = change.applied(state)
    expected = dict.fromkeys(state.tags, True)
    for each in ended:
        if each.id not in failed:
            expected |= dict.fromkeys(each.tags, each.kind.adds)
    # Tags with pending operations are logged when these finish.
    explained = {key for each in (*undone, *after.operations) for key in each.tags}
    changed: dict[tuple[str, Kind], list[str]] = {}
    for key in sorted({*expected, *after.tags}.difference(explained)):
        there = key in after.tags
        if there != expected.get(key, False):
            prefix, name = key
            changed.setdefault((prefix, Kind.ADD if there else Kind.DELETE), []).append(name)
    reason = "reconciliation" if job is None else None
    return entries + [
        Entry(Event.ADOPTED, instance, kind.value, None, prefix, tuple(names), job, reason)
        for (prefix, kind), names in changed.items()
    ]


def contradicted(operation: Operation, state: State) -> bool:
    """Return whether the tags in the state show that the operation was not applied."""
    return any((key in state.tags) != operation.kind.adds for key in operation.tags)


def _text(value: str | None) -> str:
    """Return the text as a JSON string in ASCII, which is unambiguous; ``-`` for None."""
    return _NONE if value is None else escaped(json.dumps(value))
