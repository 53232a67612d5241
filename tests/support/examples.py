"""The Hypothesis profiles, and the number of examples that a law gets in each."""

import os
import random
from collections.abc import Callable
from typing import TypeVar

import hypothesis
from hypothesis import strategies as st

_Value = TypeVar("_Value")

PROFILE = os.environ.get("STEELYARD_TEST_PROFILE", "default")
# The factor by which each profile multiplies the number of examples.
FACTORS = {"default": 1, "nightly": 20}
# The default number for laws that do not set their own.
EXAMPLES = 25


def examples(number: int) -> int:
    """Return the number of examples in this profile for a law with this number by default."""
    return number * FACTORS[PROFILE]


def load_profile() -> None:
    """Register both profiles, and load the one that STEELYARD_TEST_PROFILE names.

    The default profile draws the same examples in every run. The nightly one draws new ones, and
    prints how to repeat a failure. Neither has a deadline: the time of an example depends on the
    machine and not on the law.
    """
    if PROFILE not in FACTORS:
        raise ValueError(
            f"invalid STEELYARD_TEST_PROFILE '{PROFILE}': expected one of {', '.join(FACTORS)}"
        )
    settings = hypothesis.settings(
        database=None, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.register_profile(
        "default", settings, max_examples=EXAMPLES, derandomize=True
    )
    hypothesis.settings.register_profile(
        "nightly",
        settings,
        max_examples=EXAMPLES * FACTORS["nightly"],
        derandomize=False,
        print_blob=True,
    )
    hypothesis.settings.load_profile(PROFILE)


def draw_until(strategy: st.SearchStrategy[_Value], condition: Callable[[_Value], bool]) -> _Value:
    """Return a value of the strategy that meets the condition, the same one in every run.

    Raise NoSuchExample if none of many examples meets it. A law about several outcomes proves
    little if its strategy never leads to one of them.
    """
    return hypothesis.find(
        strategy,
        condition,
        settings=hypothesis.settings(
            max_examples=20_000,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        ),
        random=random.Random(1),
    )
