"""The check of the tables of consumers against the notes of their writers.

* All members of a team have the same amount, which equals the generation. A write adds 1 to it or
  removes the team, so the sum shows a lost update.
* Accounts are never removed. Writes move amounts between them, so their sum is constant.
* Strays are deleted whatever their generation.
* A receipt is a consumer that is created in the same write as changes of others, and proves that
  they were committed.
"""

import collections
import dataclasses
import itertools
import json
import pathlib
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import sqlalchemy as sa

from steelyard.consumers import model

BANK, STRAY, RECEIPT = "bank", "stray", "receipt"
BALANCE = 1000
RESOURCES = ("VCPU", "MEMORY_MB")


def named(*parts: object) -> str:
    """Return the UUID for this name; sorted UUIDs mix all kinds of consumers."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, " ".join(map(str, parts))))


ACCOUNTS = [named(BANK, number) for number in range(6)]
STRAYS = [named(STRAY, number) for number in range(3)]
TEAMS = {
    f"team{number}": [named("team", number, member) for member in range(size)]
    for number, size in enumerate([1, 1, 1, 1, 3, 3, 3])
}
MEMBERS = list(itertools.chain(*TEAMS.values()))

Changes = dict[str, tuple[int, int]]
"""The increments of amount and generation by consumer."""


@dataclasses.dataclass(frozen=True)
class Attempt:
    """A writer's note of one write, which is in doubt until its outcome is noted."""

    kinds: list[str]
    changes: Changes
    receipt: str | None = None
    outcome: str = "in doubt"
    seconds: float = 0.0
    retries: int = 0

    def committed(self, there: set[str]) -> bool | None:
        """Return whether the write is in tables with these consumers, None if unknown."""
        if self.outcome != "in doubt":
            return self.outcome == "done"
        return self.receipt in there if self.receipt else None


@dataclasses.dataclass
class Story:
    """The notes of all writers."""

    attempts: list[Attempt] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)
    """Messages of database errors, after which transactions are retried."""
    failures: list[str] = dataclasses.field(default_factory=list)

    @classmethod
    def read(cls, directory: pathlib.Path) -> "Story":
        story = cls()
        for path in directory.iterdir():
            story.add(path.read_text().splitlines())
        return story

    def add(self, lines: Iterable[str]) -> None:
        """Add the notes of one writer, in order."""
        for line in lines:
            match json.loads(line):
                case {"attempt": fields}:
                    self.attempts.append(Attempt(**fields))
                case {"failed": message}:
                    self.failures.append(message)
                case {"error": message}:
                    self.errors.append(message)
                case result:
                    self.attempts[-1] = dataclasses.replace(self.attempts[-1], **result)

    def outcomes(self) -> collections.Counter[str]:
        return collections.Counter(attempt.outcome for attempt in self.attempts)


@dataclasses.dataclass(frozen=True)
class Held:
    """A consumer's amount of each resource, and its generation; 0 if it is missing."""

    amount: int = 0
    generation: int = 0


@dataclasses.dataclass(frozen=True)
class Tables:
    """The rows of all tables."""

    types: list[Any]
    consumers: list[Any]
    allocations: list[Any]

    @classmethod
    def read(cls, engine: sa.Engine) -> "Tables":
        tables = model.consumer_types, model.consumers, model.allocations
        with engine.connect() as connection:
            return cls(*(list(connection.execute(sa.select(table))) for table in tables))

    def held(self) -> dict[str, Held]:
        """Return the amounts of the consumers that have the same amount of each resource."""
        amounts = collections.defaultdict(list)
        for row in self.allocations:
            amounts[row.consumer_id].append((row.resource_class, row.used))
        return {
            row.uuid: Held(amounts[row.id][0][1], row.generation)
            for row in self.consumers
            if sorted(name for name, _ in amounts[row.id]) == sorted(RESOURCES)
            and len({used for _, used in amounts[row.id]}) == 1
        }


def faults(tables: Tables, notes: Story) -> Iterator[str]:
    """Yield each contradiction between the tables and the notes."""
    there = {row.uuid for row in tables.consumers}
    held = collections.defaultdict(Held, tables.held())
    yield from notes.failures
    yield from _duplicates(tables)
    yield from _orphans(tables)
    yield from _faults_of_types({row.name for row in tables.types}, notes, there)
    yield from _faults_of_receipts(notes, there)
    yield from _faults_of_groups(held)
    yield from _faults_of_sums(held, notes, there)


def _duplicates(tables: Tables) -> Iterator[str]:
    values: dict[str, list[Any]] = {
        "type": [row.name for row in tables.types],
        "consumer": [row.uuid for row in tables.consumers],
        "allocation": [
            (row.consumer_id, row.resource_provider, row.resource_class)
            for row in tables.allocations
        ],
    }
    for what, found in values.items():
        for value, times in collections.Counter(found).items():
            if times > 1:
                yield f"{what} {value}: {times} rows"


def _orphans(tables: Tables) -> Iterator[str]:
    types = {row.id for row in tables.types}
    consumers = {row.id for row in tables.consumers}
    whole = tables.held()
    for row in tables.allocations:
        if row.consumer_id not in consumers:
            yield f"allocation {row.id}: consumer missing"
    for row in tables.consumers:
        if row.consumer_type_id not in types:
            yield f"consumer {row.uuid}: type missing"
        if row.uuid not in whole:
            yield f"consumer {row.uuid}: amounts of its resources differ"


def _faults_of_types(types: set[str], notes: Story, there: set[str]) -> Iterator[str]:
    certain, possible = {"UNKNOWN"}, {"UNKNOWN"}
    for attempt in notes.attempts:
        done = attempt.committed(there)
        if done:
            certain.update(attempt.kinds)
        if done is not False:
            possible.update(attempt.kinds)
    for name in sorted(certain - types):
        yield f"type {name}: used, but missing"
    for name in sorted(types - possible):
        yield f"type {name}: present, but no completed write has used it"


def _faults_of_receipts(notes: Story, there: set[str]) -> Iterator[str]:
    known = {*ACCOUNTS, *STRAYS, *MEMBERS}
    for attempt in notes.attempts:
        if attempt.receipt:
            known.add(attempt.receipt)
            if (attempt.receipt in there) != attempt.committed(there):
                state = "present" if attempt.receipt in there else "missing"
                outcome = f"outcome of its write: {attempt.outcome}"
                yield f"receipt {attempt.receipt}: {state}; {outcome}"
    for stranger in sorted(there - known):
        yield f"consumer {stranger}: present, but never written"


def _faults_of_groups(held: dict[str, Held]) -> Iterator[str]:
    for team, members in TEAMS.items():
        if len({held[member] for member in members}) > 1:
            yield f"{team}: partly written: {[held[member] for member in members]}"
    for consumer in STRAYS + MEMBERS:
        if held[consumer].amount != held[consumer].generation:
            yield f"consumer {consumer}: lost update: {held[consumer]}"
    total = sum(held[account].amount for account in ACCOUNTS)
    if total != BALANCE * len(ACCOUNTS):
        yield f"sum of the accounts: {total}, expected {BALANCE * len(ACCOUNTS)}"


def _faults_of_sums(held: dict[str, Held], notes: Story, there: set[str]) -> Iterator[str]:
    for consumer, possible in _sums(notes, there).items():
        if held[consumer] not in possible:
            expected = " or ".join(sorted(map(str, possible)))
            yield f"consumer {consumer}: {held[consumer]}, expected {expected} after its writes"


def _sums(notes: Story, there: set[str]) -> dict[str, set[Held]]:
    """Return the possible amounts by consumer; a write in doubt allows both results."""
    sums = {account: {Held(BALANCE, 1)} for account in ACCOUNTS}
    sums |= {member: {Held()} for member in MEMBERS}
    for attempt in notes.attempts:
        done = attempt.committed(there)
        for consumer, (amount, generation) in attempt.changes.items() if done is not False else ():
            before = sums[consumer]
            after = {Held(was.amount + amount, was.generation + generation) for was in before}
            sums[consumer] = after if done else before | after
    return sums
