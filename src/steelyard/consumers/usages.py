"""Usages as in response bodies: amounts by resource class, with the number of consumers."""

from collections.abc import Iterable
from typing import Any

COUNT = "consumer_count"


def added(groups: Iterable[dict[str, int]]) -> dict[str, int]:
    """Return the sum of the groups, name by name."""
    total: dict[str, int] = {}
    for group in groups:
        for name, amount in group.items():
            total[name] = total.get(name, 0) + amount
    return total


def count_of(answer: dict[str, Any]) -> int:
    """Return the number of consumers in the response to a usages query."""
    return sum(group[COUNT] for group in answer["usages"].values())
