"""A process that writes consumers at random, and notes what it does."""

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
from services.consumer_checker import (
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

from steelyard.consumers import ConsumerStore
from steelyard.errors import Conflict, NotFound, ServiceError

NEW_TYPES = 10
"""How many there are each second."""

PROVIDERS = [named("provider", number) for number in range(3)]
COUNTERS = [team for team, members in TEAMS.items() if len(members) == 1]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What all of the writers know."""

    url: str
    given: bool
    """Whether a store is given an engine of the writer's own, and no URL."""

    notes: pathlib.Path
    start: float
    seconds: float
    seed: int

    @property
    def over(self) -> bool:
        return time.time() >= self.start + self.seconds

    def newest_type(self) -> int:
        """The same for everybody at the same moment."""
        return int((time.time() - self.start) * NEW_TYPES)


def write(plan: Plan, number: int) -> None:
    """What the process does."""
    _Writer(plan, number).write()


def body(project: str, amount: int, generation: int, kind: str) -> dict[str, Any]:
    """A write of the amount of each resource, from providers that change with it."""
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
    """What a consumer has, as an answer says it; one that is not whole is not accepted."""
    found = [provider["resources"] for provider in answer["allocations"].values()]
    if not found:
        return Held()
    amounts = {name: amount for resources in found for name, amount in resources.items()}
    assert sum(map(len, found)) == len(amounts) == len(RESOURCES), answer
    assert len(set(amounts.values())) == 1, answer
    return Held(amounts[RESOURCES[0]], answer["consumer_generation"])


def check_usages(project: str, answer: dict[str, Any]) -> None:
    """What is used at one moment is what may be there after a write."""
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
    """A file that has all that was noted, whenever the process may be killed."""

    def __init__(self, path: pathlib.Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, **said: object) -> None:
        os.write(self._file, json.dumps(said).encode() + b"\n")


class _Writer:
    """What it does is up to chance, and the same with the same seed and the same answers."""

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
        while not self._plan.over:
            (turn,) = self._chance.choices(turns, [4, 5, 1, 2])
            try:
                turn()
            except Exception:  # noqa: BLE001 - whatever it is, it is told, and judged in the end
                self._notes.add(failed=traceback.format_exc())

    def _count(self) -> None:
        """One more, by a write of a single consumer."""
        bodies, changes = self._step(self._chance.choice(COUNTERS))
        ((consumer, said),) = bodies.items()
        self._attempt(bodies, changes, lambda: self._store.put_allocations(consumer, said))

    def _several(self) -> None:
        """Teams and accounts in one write, in any order."""
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
            said = body(STRAY, found.amount + 1, found.generation, self._type())
            self._attempt({stray: said}, {}, lambda: self._store.put_allocations(stray, said))

    def _look(self) -> None:
        project = self._chance.choice([BANK, *TEAMS])
        check_usages(project, self._store.usages(project))

    def _step(self, team: str) -> tuple[dict[str, Any], Changes]:
        """One more for each of a team, or nothing for any of it."""
        one, kind = int(self._chance.random() < 0.85), self._type()
        bodies, changes = {}, {}
        for member in TEAMS[team]:
            found = self._held(member)
            amount, generation = (found.amount + 1) * one, (found.generation + 1) * one
            bodies[member] = body(team, amount, found.generation, kind)
            changes[member] = (amount - found.amount, generation - found.generation)
        return bodies, changes

    def _transfer(self) -> tuple[dict[str, Any], Changes]:
        """From one account to others; nobody gives away all that it has."""
        names = self._chance.sample(ACCOUNTS, self._chance.randint(2, 4))
        found = [self._held(name) for name in names]
        gifts = [self._chance.randint(1, 3) for _ in names[1:]]
        if found[0].amount <= sum(gifts):
            gifts = [0 for _ in gifts]
        bodies, changes = {}, {}
        for name, has, gets in zip(names, found, [-sum(gifts), *gifts], strict=True):
            bodies[name] = body(BANK, has.amount + gets, has.generation, self._type())
            changes[name] = (gets, 1)
        return bodies, changes

    def _type(self) -> str:
        """One of the newest, which others are creating just now, or any."""
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
        kinds = sorted({said["consumer_type"] for said in bodies.values()})
        self._notes.add(attempt={"kinds": kinds, "changes": changes, "receipt": receipt})
        self._retries = 0
        start = time.perf_counter()
        became = outcome(write)
        seconds = time.perf_counter() - start
        self._notes.add(outcome=became, seconds=seconds, retries=self._retries)

    def _note_error(self, context: sa.engine.ExceptionContext) -> None:
        if isinstance(context.sqlalchemy_exception, sa.exc.OperationalError):
            self._retries += 1
            self._notes.add(error=" ".join(str(context.original_exception).split()))


def outcome(write: Callable[[], None]) -> str:
    """What has become of a write; any other error is a failure."""
    try:
        write()
    except (Conflict, NotFound):
        return "refused"
    except ServiceError as error:
        if "has given up the transaction" not in str(error):
            raise
        return "given up"
    return "done"
