"""Detection of possible typos in names."""

import difflib
import functools
import re
from collections.abc import Iterable, Sequence

# Shorter words often differ in one letter on purpose: io, id, ip.
_SHORTEST = 3
_SEPARATORS = " -_."
# The most names that a suggestion has.
_MOST = 3
# The number of words whose folded form is kept: a word is compared with many others.
_KEPT = 65536
# Separators after a letter. After a digit, they may be part of a number.
_SEPARATED = re.compile(rf"(?<=[^\W\d_])[{re.escape(_SEPARATORS)}]+(?=\w)")


def same_but_for_spelling(one: str, other: str) -> bool:
    """Return whether two words differ only in case and separators."""
    return one != other and _folded(one) == _folded(other)


def near_miss(one: str, other: str) -> bool:
    """Return whether one of two words is possibly a typo of the other.

    Such words differ only in case and separators, in the order of two letters, or in one letter
    that is not the first. Words that differ in a digit, or in a letter that stands alone as in
    ``rack-a``, count as different on purpose.
    """
    if one == other or same_but_for_spelling(one, other):
        return one != other
    shorter, longer = sorted((len(one), len(other)))
    if shorter < _SHORTEST or longer > shorter + 1 or one[0] != other[0]:
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


def nearest(name: str, names: Iterable[str], likeness: float = 0.6) -> list[str]:
    """Return at most three of the names that the given name is possibly a typo of.

    Near misses come first, then names with at least this likeness, from 0 to 1. The name itself is
    left out.
    """
    folded = {each.casefold(): each for each in names if each != name}
    missed = sorted(each for each in folded.values() if near_miss(name, each))
    close = difflib.get_close_matches(name.casefold(), folded, n=_MOST, cutoff=likeness)
    return list(dict.fromkeys([*missed, *(folded[each] for each in close)]))[:_MOST]


def suggestion(name: str, names: Iterable[str], likeness: float = 0.6) -> str:
    """Return "; did you mean …?" with names similar to an unknown one, or an empty text."""
    return did_you_mean(nearest(name, names, likeness))


def did_you_mean(names: Sequence[str]) -> str:
    """Return "; did you mean …?" with these names, or an empty text."""
    return f"; did you mean {' or '.join(map(repr, names))}?" if names else ""


def near(name: str, names: Iterable[str]) -> str:
    """Return the suggestion for an unknown name or, without one, the first names that exist."""
    names = list(names)
    meant = suggestion(name, names)
    if meant:
        return meant
    if not names:
        return "; there are none"
    return f"; available: {', '.join(map(repr, names[:5]))}{' and more' if len(names) > 5 else ''}"


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    for index, (letter, another) in enumerate(zip(one, other, strict=False)):
        if letter != another:
            return index
    return min(len(one), len(other))


def _stands_alone(word: str, start: int, end: int) -> bool:
    """Return whether separators enclose a part of the word.

    The part begins after ``start`` letters and ends before the last ``end`` letters.
    """
    before, behind = word[start - 1], word[len(word) - end] if end else _SEPARATORS[0]
    return before in _SEPARATORS and behind in _SEPARATORS


@functools.lru_cache(maxsize=_KEPT)
def _folded(word: str) -> str:
    return _SEPARATED.sub("", word.casefold().strip())
