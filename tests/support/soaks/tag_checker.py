"""The check of the tables of tags against the backend and the notes of the writers.

Once all outcomes are delivered, the tables equal the backend, and the backend was asked for exactly
the changes that the writers were told of.
"""

import collections
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from steelyard.tags import decode
from steelyard.tags.database import model
from steelyard.tags.names import MOST

Asked = tuple[str, str, str]
"""An instance, the name of a tag, and the kind of the change."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A job that was submitted to the backend."""

    instance: str
    kind: str
    tags: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Backend:
    """The tags in the backend, and its jobs in order."""

    tags: Mapping[str, frozenset[str]]
    jobs: tuple[Job, ...]

    def asked(self) -> Iterator[Asked]:
        for job in self.jobs:
            for tag in job.tags:
                _, name = decode(tag)
                yield job.instance, name, job.kind


@dataclasses.dataclass
class Told:
    """The answers that one writer got, in order."""

    done: list[Asked] = dataclasses.field(default_factory=list)
    """Changes of single tags only: the answer to a replacement does not list the new ones."""

    outcomes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    errors: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """Messages of database errors, after which transactions are retried."""

    failures: list[str] = dataclasses.field(default_factory=list)
    longest: float = 0.0
    retries: int = 0


@dataclasses.dataclass(frozen=True)
class Tables:
    """The rows of all tables."""

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
    """Yield each contradiction between the tables, the backend and the answers.

    Of the counted instances, only single tags were added and deleted.
    """
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
                yield f"{what}: {times} rows of {key}"
            if key[0] not in names:
                yield f"{what}: instance of {key} missing"
    owners = collections.Counter((row.instance_id, row.prefix) for row in tables.tags)
    for owner, count in owners.items():
        if count > MOST:
            yield f"{owner} has {count} tags"
    for row in tables.operations:
        yield f"operation {row.kind} of {row.names}: still pending"
    for row in tables.tags:
        if row.status != "ACTIVE":
            yield f"tag {row.name} of {row.instance_id}: status {row.status}"


def _faults_of_truth(tables: Tables, backend: Backend) -> Iterator[str]:
    numbers = {row.number: row.name for row in tables.instances}
    here = collections.defaultdict(set)
    for row in tables.tags:
        here[numbers.get(row.instance_id)].add((row.prefix, row.name))
    for instance, tags in backend.tags.items():
        there = {decode(tag) for tag in tags}
        for _, name in sorted(there - here[instance]):
            yield f"tag {name} of {instance}: in the backend, but not in the tables"
        for _, name in sorted(here[instance] - there):
            yield f"tag {name} of {instance}: in the tables, but not in the backend"


def _faults_of_answers(
    backend: Backend, told: list[Told], counted: frozenset[str]
) -> Iterator[str]:
    asked = collections.Counter(each for each in backend.asked() if each[0] in counted)
    done = collections.Counter(each for one in told for each in one.done if each[0] in counted)
    for each in sorted(asked.keys() | done.keys()):
        if asked[each] != done[each]:
            yield f"{each}: answered {done[each]} times, submitted {asked[each]} times"


def _faults_of_order(backend: Backend, told: list[Told], counted: frozenset[str]) -> Iterator[str]:
    """Yield each difference in the order of changes of a tag that only one writer touches."""
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
            yield f"{name} of {instance}: submitted {asked[key]}, answered {done[key]}"


def private(writer: int) -> list[str]:
    """Return the tags that only this writer touches."""
    return [f"of writer {writer}: {number}" for number in range(4)]
