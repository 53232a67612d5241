"""What consumers use, as answers have it: amounts by name, with the number of consumers."""

from collections.abc import Iterable
from typing import Any

COUNT = "consumer_count"


def added(groups: Iterable[dict[str, int]]) -> dict[str, int]:
    """The groups as one."""
    total: dict[str, int] = {}
    for group in groups:
        for name, amount in group.items():
            total[name] = total.get(name, 0) + amount
    return total


def count_of(answer: dict[str, Any]) -> int:
    """How many consumers the answer is about."""
    return sum(group[COUNT] for group in answer["usages"].values())
