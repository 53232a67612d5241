"""Laws of the test for room: exact for equal amounts, and optimistic for others."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from steelyard.traits import supply

PROVIDERS = "abc"
rooms = st.fixed_dictionaries({provider: st.integers(0, 7) for provider in PROVIDERS})
options = st.lists(st.sampled_from(PROVIDERS), max_size=3, unique=True)
amounts = st.integers(1, 4)


def fits(demands: list[supply.SplitDemand], room: dict[str, int]) -> bool:
    """Return whether each demand can be taken from one of its providers, by trying all choices."""
    for chosen in itertools.product(*(providers for _, providers in demands)):
        taken = dict.fromkeys(PROVIDERS, 0)
        for (amount, _), provider in zip(demands, chosen, strict=True):
            taken[provider] += amount
        if all(taken[provider] <= room[provider] for provider in PROVIDERS):
            return True
    return False


@given(amounts, st.lists(options, max_size=5), rooms)
def test_equal_demands_suffice_if_and_only_if_they_fit(
    amount: int, several: list[list[str]], room: dict[str, int]
) -> None:
    demands: list[supply.SplitDemand] = [(amount, providers) for providers in several]
    assert supply.suffices(demands, room) is fits(demands, room)


@given(st.lists(st.tuples(amounts, options), max_size=5), rooms)
def test_demands_that_fit_suffice(demands: list[supply.SplitDemand], room: dict[str, int]) -> None:
    assert supply.suffices(demands, room) or not fits(demands, room)
