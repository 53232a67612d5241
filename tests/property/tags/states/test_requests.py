"""Laws of requests, over arbitrary states."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steelyard.errors import BadRequest
from steelyard.tags.codec import Tag
from steelyard.tags.names import MOST
from steelyard.tags.states import requests
from steelyard.tags.states.requests import TagRules
from steelyard.tags.states.values import State, Status

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

USER, SYSTEM = "cyclades:user:", "cyclades:system:"
RULES = TagRules(USER)

counts = st.integers(0, MOST + 3)


@example(active=MOST + 1, pending=0, again=MOST + 1, new=0)
@given(counts, counts, counts, counts)
def test_calls_beyond_the_limit_are_rejected(
    active: int, pending: int, again: int, new: int
) -> None:
    # A call that names more tags than the limit is rejected even if all of them exist.
    names = [f"t{number}" for number in range(active + pending)]
    there = {
        Tag(USER, name): Status.ACTIVE if number < active else Status.PENDADD
        for number, name in enumerate(names)
    }
    theirs = {Tag(SYSTEM, name): Status.ACTIVE for name in names}
    wanted = [*names[:again], *(f"new{number}" for number in range(new))]
    state = State({**there, **theirs})
    left = {name for name, status in state.of(USER).items() if status is Status.PENDADD}
    for decide, count in (
        (requests.adding, max(len(wanted), len(there) + new if new else 0)),
        (requests.replacing, len(left.union(wanted))),
    ):
        if count > MOST:
            with pytest.raises(BadRequest, match=f"at most {MOST}, and would have"):
                decide(state, RULES, requests.wanted(RULES, wanted))
        else:
            decide(state, RULES, requests.wanted(RULES, wanted))
        unlimited = TagRules(USER, most=None)
        decide(state, unlimited, requests.wanted(unlimited, wanted))
