"""A quick test of whether providers have room for several demands of one resource class."""

import collections
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

SplitDemand = tuple[int, Sequence[str]]
"""An amount, and the UUIDs of the providers that it may come from."""


def suffices(demands: Sequence[SplitDemand], room: Mapping[str, int]) -> bool:
    """Return whether the room at the providers suffices for all demands.

    ``room`` has the free amount at each provider. The answer is exact if all amounts are equal.
    Otherwise it is optimistic: a demand may be split among providers, but only in multiples of the
    greatest common divisor of the amounts.
    """
    if not demands:
        return True
    unit = math.gcd(*(amount for amount, _ in demands))
    left = {provider: amount // unit for provider, amount in room.items()}
    # A maximum flow from demands to providers, with augmenting paths.
    given: dict[str, dict[int, int]] = collections.defaultdict(dict)
    for index, (amount, _) in enumerate(demands):
        missing = amount // unit
        while missing:
            path = _path(index, demands, left, given)
            if path is None:
                return False
            # Along the path, each demand moves its part from one provider to the one before it.
            moved = [given[origin][each] for (each, _), (_, origin) in itertools.pairwise(path)]
            part = min([missing, left[path[0][1]], *moved])
            left[path[0][1]] -= part
            missing -= part
            for place, (each, provider) in enumerate(path):
                given[provider][each] = given[provider].get(each, 0) + part
                if place + 1 < len(path):
                    given[path[place + 1][1]][each] -= part
    return True


def _path(
    start: int,
    demands: Sequence[SplitDemand],
    left: Mapping[str, int],
    given: Mapping[str, Mapping[int, int]],
) -> list[tuple[int, str]] | None:
    """Return the steps from a provider with room back to the demand; None if there are none.

    In each step, the demand may take from the provider. If it takes from the provider of the next
    step now, it makes room there.
    """
    reached: dict[str, int] = {}  # providers, each with the demand that led to it
    moving: dict[int, str] = {}  # demands, each with the provider that it would leave
    queue = collections.deque([start])
    while queue:
        demand = queue.popleft()
        for provider in demands[demand][1]:
            if provider in reached:
                continue
            reached[provider] = demand
            if left[provider]:
                return list(_back(provider, start, reached, moving))
            for other, amount in given[provider].items():
                if amount and other != start and other not in moving:
                    moving[other] = provider
                    queue.append(other)
    return None


def _back(
    provider: str, start: int, reached: Mapping[str, int], moving: Mapping[int, str]
) -> Iterator[tuple[int, str]]:
    """Yield the steps from the provider back to the demand at the start."""
    yield reached[provider], provider
    while reached[provider] != start:
        provider = moving[reached[provider]]
        yield reached[provider], provider
