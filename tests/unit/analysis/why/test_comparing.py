"""Differences between the rebuilt request and those of an installed Nova."""

import pytest

from steelyard.analysis.why.building import Built
from steelyard.analysis.why.comparing import differences
from steelyard.traits import CandidatesRequest

QUERY = "limit=10&resources=VCPU:1"
BUILT = Built(requests=(CandidatesRequest.parse(QUERY),))


@pytest.mark.parametrize(
    ("built", "queries", "failure", "expected"),
    [
        (BUILT, [QUERY], "", []),
        (BUILT, [f"{QUERY}&group_policy=isolate"], "", []),
        (Built(failure="ours"), [], "theirs", []),
        (Built(failure="ours"), [QUERY], "", ["the installed Nova does not end the request"]),
        (BUILT, [], "No hosts", ["the installed Nova ends the request: No hosts"]),
        (Built(), ["resources=&required=CUSTOM_A"], "", []),
        (
            BUILT,
            ["resources="],
            "",
            [f"the installed Nova does not send GET /allocation_candidates?{QUERY}"],
        ),
        (
            Built(),
            [QUERY],
            "",
            [f"the installed Nova also sends GET /allocation_candidates?{QUERY}"],
        ),
        (
            BUILT,
            [QUERY, "resources=PCPU:1"],
            "",
            ["the installed Nova also sends GET /allocation_candidates?resources=PCPU:1"],
        ),
    ],
)
def test_differences_name_the_requests_of_one_side(
    built: Built, queries: list[str], failure: str, expected: list[str]
) -> None:
    assert differences(built, queries, failure) == expected
