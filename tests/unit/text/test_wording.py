import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.text.wording import duration, plain


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (0, 4, "0"),
        (0.0, 4, "0"),
        (1.0, 4, "1"),
        (100, 2, "100"),
        (0.75, 4, "0.75"),
        (2 / 3, 4, "0.6667"),
        (-2 / 3, 4, "-0.6667"),
        (1e-06, 4, "0.000001"),
        (1048576.0, 4, "1048576"),
        (1e16, 6, "10000000000000000"),
        (1e20, 4, "100000000000000000000"),
        (1.5e300, 4, "1.5e+300"),
        (-1.5e21, 4, "-1.5e+21"),
        (1e-15, 4, "0.000000000000001"),
        (1e-300, 4, "0"),
        (-1e-300, 4, "0"),
        (-0.0, 4, "0"),
        (float("inf"), 4, "inf"),
        (float("-inf"), 4, "-inf"),
    ],
)
def test_plain_writes_numbers_without_exponents(number: float, digits: int, text: str) -> None:
    assert plain(number, digits) == text


@given(st.floats(-1e307, 1e307), st.integers(1, 15))
def test_plain_is_near_the_number(number: float, digits: int) -> None:
    text = plain(number, digits)
    assert len(text) <= 30
    assert ("e" in text) == (abs(number) >= 1e21)
    assert float(text) == pytest.approx(number, rel=10.0 ** (1 - digits), abs=1e-15)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60, "1 min 0 s"),
        (3600 + 20 * 60 + 5, "1 h 20 min"),
        (86400 - 1, "23 h 59 min"),
        (3 * 86400 + 59, "3 d 0 h"),
    ],
)
def test_duration_has_the_two_greatest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
