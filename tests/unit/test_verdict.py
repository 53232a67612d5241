import pytest

from steelyard.verdict import PASSED, Verdict


def test_truth_value_of_a_verdict_is_passed() -> None:
    assert PASSED
    assert PASSED.reason == ""
    assert not Verdict.rejected("why")
    assert Verdict.rejected("why").reason == "why"


def test_cause_defaults_to_the_reason() -> None:
    assert Verdict.rejected("why").cause == "why"
    assert Verdict.rejected("why here", "why").cause == "why"


def test_verdict_requires_a_reason_of_rejections_alone() -> None:
    with pytest.raises(ValueError, match="missing reason of a rejection"):
        Verdict(False)
    with pytest.raises(ValueError, match="unexpected reason 'why' for a host that passed"):
        Verdict(True, "why")
