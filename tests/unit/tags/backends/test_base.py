"""Defaults of the contract of tag backends."""

from typing import Any

from steelyard.tags.backends.base import TagBackend
from steelyard.tags.backends.memory import MemoryBackend


def backend(**tags: list[str]) -> MemoryBackend:
    found = MemoryBackend(patient=True)
    found.adopt(tags)
    return found


def test_batches_has_one_batch_by_default() -> None:
    tags: Any = [f"a{number}" for number in range(4096)]
    assert backend().batches("vm", tags) == [tags]


def test_reasons_of_failed_jobs_are_unknown_by_default() -> None:
    assert TagBackend.reasons(backend(), [1]) == {}
