"""What is in the tables of tags, against what the backend has done and what writers were told.

Once every outcome has been delivered, the tables have what the backend has, and the backend was
asked for what the writers were told, neither more nor less.
"""

import collections
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from steelyard.tags import decode, model
from steelyard.tags.names import MOST

Asked = tuple[str, str, str]
"""An instance, the name of a tag, and whether it was to be added or deleted."""


@dataclasses.dataclass(frozen=True)
class Job:
    """What the backend was asked for."""

    instance: str
    kind: str
    tags: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Backend:
    """What the backend has, and its jobs in their order."""

    tags: Mapping[str, frozenset[str]]
    jobs: tuple[Job, ...]

    def asked(self) -> Iterator[Asked]:
        for job in self.jobs:
            for tag in job.tags:
                _, name = decode(tag)
                yield job.instance, name, job.kind


@dataclasses.dataclass
class Told:
    """What one writer was told, in its order."""

    done: list[Asked] = dataclasses.field(default_factory=list)
    """Of single tags alone: who replaces them is not told which are new."""

    outcomes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    errors: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """What the database has said; transactions are tried again then."""

    failures: list[str] = dataclasses.field(default_factory=list)
    longest: float = 0.0
    retries: int = 0


@dataclasses.dataclass(frozen=True)
class Tables:
    """All that is in the database."""

    instances: list[Any]
    tags: list[Any]
    operations: list[Any]
    marks: list[Any]

    @classmethod
    def read(cls, engine: sa.Engine) -> "Tables":
        tables = model.instances, model.tags, model.operations, model.marks
        with engine.connect() as connection:
            return cls(*(list(connection.execute(sa.select(table))) for table in tables))


def faults(
    tables: Tables, backend: Backend, told: list[Told], counted: frozenset[str]
) -> Iterator[str]:
    """What cannot be; of the counted instances, only single tags were added and deleted."""
    for each in told:
        yield from each.failures
    yield from _faults_of_rows(tables)
    yield from _faults_of_truth(tables, backend)
    yield from _faults_of_answers(backend, told, counted)
    yield from _faults_of_order(backend, told, counted)


def _faults_of_rows(tables: Tables) -> Iterator[str]:
    names = {row.number for row in tables.instances}
    for what in ("tags", "marks"):
        rows = getattr(tables, what)
        keys = collections.Counter((row.instance_id, row.prefix, row.name) for row in rows)
        for key, times in keys.items():
            if times > 1:
                yield f"{what}: {key} is there {times} times"
            if key[0] not in names:
                yield f"{what}: {key} is of an instance that is not there"
    owners = collections.Counter((row.instance_id, row.prefix) for row in tables.tags)
    for owner, count in owners.items():
        if count > MOST:
            yield f"{owner} has {count} tags"
    for row in tables.operations:
        yield f"the operation {row.kind} of {row.names} has not ended"
    for row in tables.tags:
        if row.status != "ACTIVE":
            yield f"the tag {row.name} of {row.instance_id} is {row.status}"


def _faults_of_truth(tables: Tables, backend: Backend) -> Iterator[str]:
    numbers = {row.number: row.name for row in tables.instances}
    here = collections.defaultdict(set)
    for row in tables.tags:
        here[numbers.get(row.instance_id)].add((row.prefix, row.name))
    for instance, tags in backend.tags.items():
        there = {decode(tag) for tag in tags}
        for _, name in sorted(there - here[instance]):
            yield f"the backend has the tag {name} of {instance}, and the tables have not"
        for _, name in sorted(here[instance] - there):
            yield f"the tables have the tag {name} of {instance}, and the backend has not"


def _faults_of_answers(
    backend: Backend, told: list[Told], counted: frozenset[str]
) -> Iterator[str]:
    asked = collections.Counter(each for each in backend.asked() if each[0] in counted)
    done = collections.Counter(each for one in told for each in one.done if each[0] in counted)
    for each in sorted(asked.keys() | done.keys()):
        if asked[each] != done[each]:
            yield f"{each} was done {done[each]} times, and asked of the backend {asked[each]} times"


def _faults_of_order(backend: Backend, told: list[Told], counted: frozenset[str]) -> Iterator[str]:
    """Of a tag that only one writer ever touches, also the order is known."""
    asked, done = collections.defaultdict(list), collections.defaultdict(list)
    for instance, name, kind in backend.asked():
        asked[instance, name].append(kind)
    for one in told:
        for instance, name, kind in one.done:
            done[instance, name].append(kind)
    names = {name for number in range(len(told)) for name in private(number)}
    for instance, name in sorted(asked.keys() | done.keys()):
        key = instance, name
        if instance in counted and name in names and asked[key] != done[key]:
            yield f"{name} of {instance} was asked to be {asked[key]}; the writer did {done[key]}"


def private(writer: int) -> list[str]:
    """The tags that only this writer touches."""
    return [f"of writer {writer}: {number}" for number in range(4)]
