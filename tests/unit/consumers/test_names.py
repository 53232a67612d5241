"""Names of consumer types, and names that resemble another."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from steelyard.consumers import ConsumerType
from steelyard.consumers.names import near_misses
from steelyard.errors import InvalidConsumerType
from steelyard.text.spelling import near_miss


@pytest.mark.parametrize("name", ["INSTANCE", "A", "_", "9", "INTANCE", "UNKNOWN", "A" * 255])
def test_consumer_type_accepts_name(name: str) -> None:
    assert str(ConsumerType(name)) == name
    assert ConsumerType(name) == ConsumerType(name)


@pytest.mark.parametrize(
    "name", ["", "instance", "all", "unknown", "A-B", "A B", "A\n", "É", "A" * 256, None, 5]
)
def test_consumer_type_rejects_malformed_name(name: Any) -> None:
    with pytest.raises(InvalidConsumerType) as caught:
        ConsumerType(name)
    assert f"invalid consumer type {name!r:.300}: expected 1 to 255 characters" in str(caught.value)
    assert caught.value.status == 400


def all_near_misses(counts: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the near misses by comparing all pairs of names."""
    found = {
        name: sorted(
            (
                other
                for other in counts
                if (-counts[other], other) < (-counts[name], name)
                and abs(len(other) - len(name)) <= 3
                and near_miss(name, other)
            ),
            key=lambda other: (-counts[other], other),
        )
        for name in counts
    }
    return {name: near for name, near in found.items() if near}


@pytest.mark.parametrize("seed", range(5))
def test_near_misses_equal_those_of_all_pairs(seed: int) -> None:
    generator = random.Random(seed)
    counts = {
        "".join(generator.choices("AB_", k=generator.randint(1, 20))): generator.randint(0, 5)
        for _ in range(100)
    }
    assert near_misses(counts) == all_near_misses(counts)
    assert near_misses(counts)


def test_near_misses_make_linearly_many_comparisons(monkeypatch: Any) -> None:
    compared = []

    def compare(name: str, other: str) -> bool:
        compared.append((name, other))
        return False

    monkeypatch.setattr("steelyard.consumers.names.near_miss", compare)
    near_misses({f"TYPE_{number:0{digits}}": 1 for number in range(999) for digits in (4, 5)})
    assert 999 < len(compared) <= 2 * 999 * 100


def test_near_misses_find_typo_among_many_names() -> None:
    rare = {f"{number:04}_CUSTOM": 1 for number in range(2000)}
    near = near_misses({**rare, "INSTANCE_OF": 40, "INSTANCE_FO": 1, "MIGRATION": 2})
    assert near["INSTANCE_FO"] == ["INSTANCE_OF"]


def test_unknown_is_never_a_typo() -> None:
    assert near_misses({"UNKNOWN": 0, "UNKNOW": 3}) == {"UNKNOW": ["UNKNOWN"]}
