"""What is in the tables of consumers, against what their writers have noted.

* A team has the same amount everywhere, which is also its generation. Everybody adds 1 to it, or
  removes all of it: an update that is lost is missing from the sum.
* Accounts are never removed, and what one gives others get: their sum stays.
* Strays are removed whatever they are.
* A receipt is a consumer that is created together with writes of others, and says that those were
  done.
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
    """The UUID of what is called this; in the order of UUIDs, all kinds are mixed."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, " ".join(map(str, parts))))


ACCOUNTS = [named(BANK, number) for number in range(6)]
STRAYS = [named(STRAY, number) for number in range(3)]
TEAMS = {
    f"team{number}": [named("team", number, member) for member in range(size)]
    for number, size in enumerate([1, 1, 1, 1, 3, 3, 3])
}
MEMBERS = list(itertools.chain(*TEAMS.values()))

Changes = dict[str, tuple[int, int]]
"""What is added to the amount and the generation of consumers."""


@dataclasses.dataclass(frozen=True)
class Attempt:
    """What a writer has noted of one write; it is in doubt until something has become of it."""

    kinds: list[str]
    changes: Changes
    receipt: str | None = None
    outcome: str = "in doubt"
    seconds: float = 0.0
    retries: int = 0

    def committed(self, there: set[str]) -> bool | None:
        """Whether it is in the tables, of which these consumers are; None if nobody can say."""
        if self.outcome != "in doubt":
            return self.outcome == "done"
        return self.receipt in there if self.receipt else None


@dataclasses.dataclass
class Story:
    """The notes of all writers."""

    attempts: list[Attempt] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)
    """What the database has said; transactions are tried again then."""
    failures: list[str] = dataclasses.field(default_factory=list)

    @classmethod
    def read(cls, directory: pathlib.Path) -> "Story":
        told = cls()
        for path in directory.iterdir():
            told.add(path.read_text().splitlines())
        return told

    def add(self, lines: Iterable[str]) -> None:
        """The notes of one writer, in order."""
        for line in lines:
            match json.loads(line):
                case {"attempt": said}:
                    self.attempts.append(Attempt(**said))
                case {"failed": said}:
                    self.failures.append(said)
                case {"error": said}:
                    self.errors.append(said)
                case became:
                    self.attempts[-1] = dataclasses.replace(self.attempts[-1], **became)

    def outcomes(self) -> collections.Counter[str]:
        return collections.Counter(attempt.outcome for attempt in self.attempts)


@dataclasses.dataclass(frozen=True)
class Held:
    """What a consumer has, of each resource; nothing while it is not there."""

    amount: int = 0
    generation: int = 0


@dataclasses.dataclass(frozen=True)
class Tables:
    """All that is in the database."""

    types: list[Any]
    consumers: list[Any]
    allocations: list[Any]

    @classmethod
    def read(cls, engine: sa.Engine) -> "Tables":
        tables = model.consumer_types, model.consumers, model.allocations
        with engine.connect() as connection:
            return cls(*(list(connection.execute(sa.select(table))) for table in tables))

    def held(self) -> dict[str, Held]:
        """What those consumers have that are whole."""
        amounts = collections.defaultdict(list)
        for row in self.allocations:
            amounts[row.consumer_id].append((row.resource_class, row.used))
        return {
            row.uuid: Held(amounts[row.id][0][1], row.generation)
            for row in self.consumers
            if sorted(name for name, _ in amounts[row.id]) == sorted(RESOURCES)
            and len({used for _, used in amounts[row.id]}) == 1
        }


def faults(tables: Tables, told: Story) -> Iterator[str]:
    """What is in the tables and cannot be, after what has been noted, and what is not."""
    there = {row.uuid for row in tables.consumers}
    held = collections.defaultdict(Held, tables.held())
    yield from told.failures
    yield from _duplicates(tables)
    yield from _orphans(tables)
    yield from _faults_of_types({row.name for row in tables.types}, told, there)
    yield from _faults_of_receipts(told, there)
    yield from _faults_of_groups(held)
    yield from _faults_of_sums(held, told, there)


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
                yield f"{what} {value} is there {times} times"


def _orphans(tables: Tables) -> Iterator[str]:
    types = {row.id for row in tables.types}
    consumers = {row.id for row in tables.consumers}
    whole = tables.held()
    for row in tables.allocations:
        if row.consumer_id not in consumers:
            yield f"allocation {row.id} is of a consumer that is not there"
    for row in tables.consumers:
        if row.consumer_type_id not in types:
            yield f"consumer {row.uuid} is of a type that is not there"
        if row.uuid not in whole:
            yield f"consumer {row.uuid} has not the same of each resource"


def _faults_of_types(types: set[str], told: Story, there: set[str]) -> Iterator[str]:
    certain, possible = {"UNKNOWN"}, {"UNKNOWN"}
    for attempt in told.attempts:
        done = attempt.committed(there)
        if done:
            certain.update(attempt.kinds)
        if done is not False:
            possible.update(attempt.kinds)
    for name in sorted(certain - types):
        yield f"type {name} has been used, and is not there"
    for name in sorted(types - possible):
        yield f"type {name} is there, and no write that was done has used it"


def _faults_of_receipts(told: Story, there: set[str]) -> Iterator[str]:
    known = {*ACCOUNTS, *STRAYS, *MEMBERS}
    for attempt in told.attempts:
        if attempt.receipt:
            known.add(attempt.receipt)
            if (attempt.receipt in there) != attempt.committed(there):
                is_or_not = "is" if attempt.receipt in there else "is not"
                yield f"receipt {attempt.receipt} {is_or_not} there; the write: {attempt.outcome}"
    for stranger in sorted(there - known):
        yield f"consumer {stranger} is there, and nobody has written it"


def _faults_of_groups(held: dict[str, Held]) -> Iterator[str]:
    for team, members in TEAMS.items():
        if len({held[member] for member in members}) > 1:
            yield f"{team} has been written in part: {[held[member] for member in members]}"
    for consumer in STRAYS + MEMBERS:
        if held[consumer].amount != held[consumer].generation:
            yield f"consumer {consumer} has lost an update: {held[consumer]}"
    total = sum(held[account].amount for account in ACCOUNTS)
    if total != BALANCE * len(ACCOUNTS):
        yield f"the accounts have {total} together, not {BALANCE * len(ACCOUNTS)}"


def _faults_of_sums(held: dict[str, Held], told: Story, there: set[str]) -> Iterator[str]:
    for consumer, possible in _sums(told, there).items():
        if held[consumer] not in possible:
            follows = " or ".join(sorted(map(str, possible)))
            yield f"consumer {consumer} has {held[consumer]}; from its writes follows {follows}"


def _sums(told: Story, there: set[str]) -> dict[str, set[Held]]:
    """What may be in the tables, as what is in doubt has been done or has not."""
    sums = {account: {Held(BALANCE, 1)} for account in ACCOUNTS}
    sums |= {member: {Held()} for member in MEMBERS}
    for attempt in told.attempts:
        done = attempt.committed(there)
        for consumer, (amount, generation) in attempt.changes.items() if done is not False else ():
            before = sums[consumer]
            after = {Held(was.amount + amount, was.generation + generation) for was in before}
            sums[consumer] = after if done else before | after
    return sums
