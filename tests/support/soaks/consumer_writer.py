"""A process that writes consumers at random and notes each write."""

import collections
import dataclasses
import itertools
import json
import os
import pathlib
import random
import time
import traceback
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.errors import ConcurrentUpdate, NotFound, ServiceError
from support.soaks.consumer_checker import (
    ACCOUNTS,
    BALANCE,
    BANK,
    RECEIPT,
    RESOURCES,
    STRAY,
    STRAYS,
    TEAMS,
    Changes,
    Held,
    named,
)

LEAST_TURNS = 10
"""Turns that a writer takes even after the end, so that slow machines write something, too."""

NEW_TYPES = 10
"""New consumer types per second."""

PROVIDERS = [named("provider", number) for number in range(3)]
COUNTERS = [team for team, members in TEAMS.items() if len(members) == 1]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The settings of all writers."""

    url: str
    given: bool
    """Whether the store gets an engine instead of a URL."""

    notes: pathlib.Path
    start: float
    seconds: float
    seed: int

    @property
    def over(self) -> bool:
        return time.time() >= self.start + self.seconds

    def newest_type(self) -> int:
        """Return the number of the newest type, equal for all writers at the same time."""
        return int((time.time() - self.start) * NEW_TYPES)


def write(plan: Plan, number: int) -> None:
    """Run a writer in this process."""
    _Writer(plan, number).write()


def body(project: str, amount: int, generation: int, kind: str) -> dict[str, Any]:
    """Return a write of the amount of each resource, on providers that depend on the amount."""
    return {
        "allocations": {
            PROVIDERS[(amount + shift) % len(PROVIDERS)]: {"resources": {name: amount}}
            for shift, name in enumerate(RESOURCES)
            if amount
        },
        "project_id": project,
        "user_id": "soak",
        "consumer_generation": generation or None,
        "consumer_type": kind,
    }


def held(answer: dict[str, Any]) -> Held:
    """Return the consumer's amount in the answer; assert that all resources have the same."""
    found = [provider["resources"] for provider in answer["allocations"].values()]
    if not found:
        return Held()
    amounts = {name: amount for resources in found for name, amount in resources.items()}
    assert sum(map(len, found)) == len(amounts) == len(RESOURCES), answer
    assert len(set(amounts.values())) == 1, answer
    return Held(amounts[RESOURCES[0]], answer["consumer_generation"])


def check_usages(project: str, answer: dict[str, Any]) -> None:
    """Assert that the usages are those after some complete write."""
    used = answer["usages"]
    sums: collections.Counter[str] = collections.Counter()
    for group in used.values():
        sums.update(group)
    amounts = {sums[name] for name in RESOURCES}
    if project == BANK:
        assert sums["consumer_count"] == len(ACCOUNTS), used
        assert amounts == {BALANCE * len(ACCOUNTS)}, used
    else:
        size = len(TEAMS[project])
        assert len(used) <= 1, used
        assert sums["consumer_count"] in {0, size}, used
        assert len(amounts) == 1, used
        assert amounts.pop() % size == 0, used


class _Notes:
    """A file of notes that survives a kill at any time."""

    def __init__(self, path: pathlib.Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, **note: object) -> None:
        os.write(self._file, json.dumps(note).encode() + b"\n")


class _Writer:
    """A writer whose actions are random, but reproducible from the seed and the answers."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan = plan
        self._number = number
        self._chance = random.Random(f"{plan.seed} {number}")
        self._notes = _Notes(plan.notes / str(number))
        self._store = ConsumerStore(sa.create_engine(plan.url) if plan.given else plan.url)
        self._receipts = itertools.count(1)
        self._retries = 0
        sa.event.listen(sa.Engine, "handle_error", self._note_error)

    def write(self) -> None:
        turns: list[Callable[[], None]] = [self._count, self._several, self._stray, self._look]
        for number in itertools.count():
            if number >= LEAST_TURNS and self._plan.over:
                break
            (turn,) = self._chance.choices(turns, [4, 5, 1, 2])
            try:
                turn()
            except Exception:  # noqa: BLE001 - the checker reports every error
                self._notes.add(failed=traceback.format_exc())

    def _count(self) -> None:
        """Increment a single consumer."""
        bodies, changes = self._step(self._chance.choice(COUNTERS))
        ((consumer, write),) = bodies.items()
        self._attempt(bodies, changes, lambda: self._store.put_allocations(consumer, write))

    def _several(self) -> None:
        """Write teams and accounts in one request, in random order."""
        parts = [self._step(team) for team in self._chance.sample(list(TEAMS), 2)]
        parts.append(self._transfer())
        bodies: dict[str, Any] = {}
        changes: Changes = {}
        for more, changing in self._chance.sample(parts, self._chance.randint(1, 3)):
            bodies |= more
            changes |= changing
        receipt = None
        if self._chance.random() < 0.8:
            number = next(self._receipts)
            receipt = named(RECEIPT, self._number, number)
            bodies[receipt] = body(RECEIPT, number, 0, self._type())
        shuffled = dict(self._chance.sample(list(bodies.items()), len(bodies)))
        self._attempt(bodies, changes, lambda: self._store.post_allocations(shuffled), receipt)

    def _stray(self) -> None:
        stray = self._chance.choice(STRAYS)
        found = self._held(stray)
        if found.amount and self._chance.random() < 0.5:
            self._attempt({}, {}, lambda: self._store.delete_allocations(stray))
        else:
            write = body(STRAY, found.amount + 1, found.generation, self._type())
            self._attempt({stray: write}, {}, lambda: self._store.put_allocations(stray, write))

    def _look(self) -> None:
        project = self._chance.choice([BANK, *TEAMS])
        check_usages(project, self._store.usages(project))

    def _step(self, team: str) -> tuple[dict[str, Any], Changes]:
        """Return writes and changes that increment all members of a team or remove them."""
        one, kind = int(self._chance.random() < 0.85), self._type()
        bodies, changes = {}, {}
        for member in TEAMS[team]:
            found = self._held(member)
            amount, generation = (found.amount + 1) * one, (found.generation + 1) * one
            bodies[member] = body(team, amount, found.generation, kind)
            changes[member] = (amount - found.amount, generation - found.generation)
        return bodies, changes

    def _transfer(self) -> tuple[dict[str, Any], Changes]:
        """Return writes and changes that move amounts between accounts; none becomes empty."""
        names = self._chance.sample(ACCOUNTS, self._chance.randint(2, 4))
        found = [self._held(name) for name in names]
        amounts = [self._chance.randint(1, 3) for _ in names[1:]]
        if found[0].amount <= sum(amounts):
            amounts = [0 for _ in amounts]
        bodies, changes = {}, {}
        for name, has, gets in zip(names, found, [-sum(amounts), *amounts], strict=True):
            bodies[name] = body(BANK, has.amount + gets, has.generation, self._type())
            changes[name] = (gets, 1)
        return bodies, changes

    def _type(self) -> str:
        """Return one of the newest types, which others create at the same time, or any type."""
        newest = self._plan.newest_type()
        first = max(0, newest - 2) if self._chance.random() < 0.7 else 0
        return f"TYPE_{self._chance.randint(first, newest)}"

    def _held(self, consumer: str) -> Held:
        return held(self._store.get_allocations(consumer))

    def _attempt(
        self,
        bodies: dict[str, Any],
        changes: Changes,
        write: Callable[[], None],
        receipt: str | None = None,
    ) -> None:
        # A write without allocations removes the consumer, and creates no type.
        kinds = sorted({each["consumer_type"] for each in bodies.values() if each["allocations"]})
        self._notes.add(attempt={"kinds": kinds, "changes": changes, "receipt": receipt})
        self._retries = 0
        start = time.perf_counter()
        result = outcome(write)
        seconds = time.perf_counter() - start
        self._notes.add(outcome=result, seconds=seconds, retries=self._retries)

    def _note_error(self, context: sa.engine.ExceptionContext) -> None:
        if isinstance(context.sqlalchemy_exception, sa.exc.OperationalError):
            self._retries += 1
            self._notes.add(error=" ".join(str(context.original_exception).split()))


def outcome(write: Callable[[], None]) -> str:
    """Return the outcome of the write; raise any unexpected error."""
    try:
        write()
    except (ConcurrentUpdate, NotFound):
        return "refused"
    except ServiceError as error:
        if "aborted the transaction" not in str(error):
            raise
        return "given up"
    return "done"
