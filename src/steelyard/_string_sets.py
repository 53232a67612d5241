"""Non-empty sets of strings, each described by a rule: the building blocks of expressions.

``admits`` tests whether a string is in a set, :func:`meet` whether two sets have a string in
common.
"""

import dataclasses
import math
import sys

_GREATEST = sys.float_info.max


@dataclasses.dataclass(frozen=True, slots=True)
class Anything:
    """Every string."""

    def admits(self, text: str) -> bool:
        return True


@dataclasses.dataclass(frozen=True, slots=True)
class Literal:
    """One string."""

    text: str

    def admits(self, text: str) -> bool:
        return text == self.text


@dataclasses.dataclass(frozen=True, slots=True)
class Numbers:
    """The strings that spell a finite number from ``low`` to ``high``, except ``hole``.

    Both ends are included.
    """

    low: float = -_GREATEST
    high: float = _GREATEST
    hole: float | None = None

    def admits(self, text: str) -> bool:
        number = finite_number(text)
        return number is not None and self.low <= number <= self.high and number != self.hole

    def meets(self, other: "Numbers") -> bool:
        low, high = max(self.low, other.low), min(self.high, other.high)
        # A hole empties an interval only if the hole is its only number.
        return low < high or (low == high and low not in (self.hole, other.hole))


@dataclasses.dataclass(frozen=True, slots=True)
class Texts:
    """The strings from ``low`` (included) to ``end`` (excluded), except ``hole``.

    An ``end`` of None means no end. Strings are ordered by code points. The string that follows
    ``x`` immediately is ``x`` plus a NUL (see :func:`successor`), so every order relation can be
    written as such a range.
    """

    low: str = ""
    end: str | None = None
    hole: str | None = None

    def admits(self, text: str) -> bool:
        return self.low <= text and (self.end is None or text < self.end) and text != self.hole

    def meets(self, other: "Texts") -> bool:
        low = max(self.low, other.low)
        end = min((e for e in (self.end, other.end) if e is not None), default=None)
        while low in (self.hole, other.hole):
            low = successor(low)
        return end is None or low < end


@dataclasses.dataclass(frozen=True, slots=True)
class Containing:
    """The strings that contain every one of ``words``."""

    words: frozenset[str]

    def admits(self, text: str) -> bool:
        return all(word in text for word in self.words)


StringSet = Anything | Literal | Numbers | Texts | Containing


def meet(one: StringSet, other: StringSet) -> bool | None:
    """Return whether the two sets have a string in common, or None if that is not decided.

    It is not decided for two rules of different kinds, such as a range of numbers and a range of
    texts.
    """
    match one, other:
        case (Literal(text), rest) | (rest, Literal(text)):
            return rest.admits(text)
        case (Anything(), _) | (_, Anything()):
            return True
        case Numbers() as numbers, Numbers() as others:
            return numbers.meets(others)
        case Texts() as texts, Texts() as others:
            return texts.meets(others)
        case Containing(), Containing():
            return True  # a string of all these words is in both sets
    return None


def finite_number(text: str | float) -> float | None:
    """Return the finite number that the text spells, or None. A float stands for its own text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def successor(text: str) -> str:
    """Return the string that follows immediately in the order of code points."""
    return text + "\0"
