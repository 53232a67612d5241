"""Generated resource providers in trees, and requests that they may serve.

Both come from a seed. Drawn part by part, most requests would ask for too much or for too little.
"""

import random
import uuid
from collections.abc import Callable
from typing import TypeVar

from hypothesis import strategies as st

from steelyard.errors import InvalidTrait
from steelyard.traits import (
    CandidatesRequest,
    Inventory,
    ProvidersRequest,
    RequestGroup,
    ResourceProvider,
    TraitQuery,
)
from steelyard.traits.trees import SHARES

T = TypeVar("T")

TRAITS = ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]
CLASSES = ["VCPU", "MEMORY_MB", "SRIOV_NET_VF"]
AGGREGATES = [str(uuid.UUID(int=number, version=4)) for number in range(1, 4)]
PROVIDERS = [str(uuid.UUID(int=number, version=4)) for number in range(101, 121)]
SUFFIXES = ["1", "2", "_NET"]


def _seeded(make: Callable[[random.Random], T]) -> st.SearchStrategy[T]:
    return st.integers(0, 2**64 - 1).map(lambda seed: make(random.Random(seed)))


def _inventory(chance: random.Random) -> Inventory:
    if chance.random() < 0.7:
        return Inventory(chance.randint(4, 9), chance.randint(0, 2))
    return Inventory(
        total=chance.randint(1, 8),
        used=chance.randint(0, 3),
        reserved=chance.randint(0, 1),
        min_unit=chance.choice([1, 1, 2]),
        max_unit=chance.choice([8, 8, 2, 3]),
        step_size=chance.choice([1, 1, 2]),
        allocation_ratio=chance.choice([1.0, 0.5, 1.5, 16.0]),
    )


def _forest(chance: random.Random, share: float) -> list[ResourceProvider]:
    found: list[ResourceProvider] = []
    for _ in range(chance.randint(1, 3)):
        tree: list[str] = []
        for _ in range(chance.choice([1, 2, 3, 4])):
            number = len(found)
            traits = {name for name in TRAITS if chance.random() < 0.4}
            # Placement often answers 500 if a provider below a root shares.
            if not tree and chance.random() < share:
                traits.add(SHARES)
            found.append(
                ResourceProvider(
                    PROVIDERS[number],
                    f"p{number}",
                    chance.choice(tree) if tree else None,
                    {name: _inventory(chance) for name in CLASSES if chance.random() < 0.8},
                    frozenset(traits),
                    frozenset(each for each in AGGREGATES if chance.random() < 0.4),
                )
            )
            tree.append(PROVIDERS[number])
    return found


def _query(chance: random.Random, *, any_of: bool) -> TraitQuery:
    if chance.random() < 0.65:
        return TraitQuery()
    groups = [frozenset(chance.sample(TRAITS, 2))] if any_of and chance.random() < 0.3 else []
    required = [name for name in TRAITS if chance.random() < 0.25]
    forbidden = [name for name in TRAITS if chance.random() < 0.2]
    try:
        return TraitQuery(frozenset(required), frozenset(forbidden), frozenset(groups))
    except InvalidTrait:
        return TraitQuery(frozenset(required))


def _group(chance: random.Random, classes: int) -> RequestGroup:
    """Return a group with this number of resource classes, and now and then with aggregates."""
    some = [frozenset(chance.sample(AGGREGATES, chance.randint(1, 2))) for _ in range(2)]
    return RequestGroup(
        {name: chance.choice([1, 2, 2, 3]) for name in chance.sample(CLASSES, classes)},
        _query(chance, any_of=True),
        frozenset(some[: chance.randint(1, 2)]) if chance.random() < 0.2 else frozenset(),
        some[0] if chance.random() < 0.15 else frozenset(),
        chance.choice(PROVIDERS[:4]) if chance.random() < 0.07 else None,
    )


def _candidates_request(chance: random.Random) -> CandidatesRequest:
    named = chance.sample(SUFFIXES, chance.choice([0, 1, 2, 2, 3]))
    groups = {suffix: _group(chance, chance.randint(1, 2)) for suffix in named}
    if not named or chance.random() < 0.6:
        groups[""] = _group(chance, chance.randint(1, 3))
    together = frozenset(chance.sample(named, 2)) if len(named) > 1 else frozenset()
    if chance.random() < 0.5:
        together = frozenset()
    elif together and chance.random() < 0.4:
        without = _group(chance, 0)
        groups[min(together)] = without if without.params() else groups[min(together)]
    policy: str | None = chance.choice(["none", "none", "isolate"])
    if "" in groups and any(
        groups[suffix].resources.keys() & groups[""].resources.keys() for suffix in named
    ):
        policy = "none"
    elif len(named) < 2:
        policy = chance.choice([None, policy])
    return CandidatesRequest(
        groups,
        policy,
        chance.choice([None, None, 1, 3]),
        _query(chance, any_of=False) if chance.random() < 0.2 else TraitQuery(),
        frozenset([together] if together else []),
    )


def _providers_request(chance: random.Random) -> ProvidersRequest:
    return ProvidersRequest(
        _group(chance, chance.choice([0, 1, 1, 2])),
        "p1" if chance.random() < 0.1 else None,
        PROVIDERS[0] if chance.random() < 0.1 else None,
    )


forests = _seeded(lambda chance: _forest(chance, 0.0))
sharing_forests = _seeded(lambda chance: _forest(chance, 0.5))
candidates_requests = _seeded(_candidates_request)
"""Requests that Placement answers as documented.

It counts amounts twice if the group without a suffix and another one request the same class, unless
``group_policy`` is ``none``.
"""
providers_requests = _seeded(_providers_request)
