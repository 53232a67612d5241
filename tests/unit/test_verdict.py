import pytest

from steelyard.verdict import PASSED, Verdict


def test_truth_is_whether_it_passed() -> None:
    assert PASSED
    assert PASSED.reason == ""
    assert not Verdict.rejected("why")
    assert Verdict.rejected("why").reason == "why"


def test_the_cause_is_the_reason_unless_given() -> None:
    assert Verdict.rejected("why").cause == "why"
    assert Verdict.rejected("why here", "why").cause == "why"


def test_a_verdict_has_a_reason_if_and_only_if_it_is_a_rejection() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Verdict(False)
    with pytest.raises(ValueError, match="has no reason, but got 'why'"):
        Verdict(True, "why")
