"""When one word was perhaps meant to be another."""

import itertools
import re

# Shorter words differ by one letter because they are others: io, id, ip.
_SHORTEST = 3
_SEPARATORS = " -_."
# Between a letter and what follows. Between digits they are part of a number.
_SEPARATED = re.compile(rf"(?<=[^\W\d_])[{re.escape(_SEPARATORS)}]+(?=\w)")


def same_but_for_spelling(one: str, other: str) -> bool:
    """Whether two words differ in case and separators alone."""
    return one != other and _folded(one) == _folded(other)


def near_miss(one: str, other: str) -> bool:
    """Whether two words differ so little that one was perhaps meant to be the other.

    They differ in case and separators, in the order of two letters, or in one letter that is not
    the first. A digit, or a letter that stands alone as in ``rack-a``, is there to tell things
    apart.
    """
    if one == other or same_but_for_spelling(one, other):
        return one != other
    if min(len(one), len(other)) < _SHORTEST or one[0] != other[0]:
        return False
    start = _shared(one, other)
    rest, others = one[start:], other[start:]
    end = _shared(rest[::-1], others[::-1])
    rest, others = rest[: len(rest) - end], others[: len(others) - end]
    if any(map(str.isdigit, rest + others)):
        return False
    if max(len(rest), len(others)) == 1:
        return not _stands_alone(one, start, end)
    return len(rest) == 2 and rest == others[::-1]


def _shared(one: str, other: str) -> int:
    """How many letters at their beginnings are the same."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _stands_alone(word: str, start: int, end: int) -> bool:
    """Whether what is between the beginning and the end of the word is a part of its own."""
    before, behind = word[start - 1], word[len(word) - end] if end else _SEPARATORS[0]
    return before in _SEPARATORS and behind in _SEPARATORS


def _folded(word: str) -> str:
    return _SEPARATED.sub("", word.casefold().strip())
