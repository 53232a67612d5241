"""Keys, values and traits that nearly are others, and probably are meant to be."""

import collections
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from steelyard import errors
from steelyard.desk.checks.finding import Finding, of_aggregate, of_flavor
from steelyard.desk.checks.subject import Subject, literals
from steelyard.severity import Severity
from steelyard.traits.flavors import flavor_traits

# Shorter words differ by one letter because they are others: io, id, ip.
_SHORTEST = 3


class _Use(NamedTuple):
    """A word, and a place where it is written."""

    word: str
    where: str


def keys(subject: Subject) -> Iterator[Finding]:
    """Keys of flavors that nearly are keys of aggregates, and the other way round."""
    asked = [
        _Use(each.demand.key, of_flavor(each.flavor, each.written))
        for each in subject.asked
        if not each.demand.optional
    ]
    offered = [
        _Use(each.key, of_aggregate(each.aggregate, each.written))
        for each in subject.offered
        if not subject.is_ignored(each.written)
    ]
    yield from _near_misses("near-miss-key", "key", asked, offered)


def values(subject: Subject) -> Iterator[Finding]:
    """Values that flavors ask for and nearly are what aggregates offer, and the other way round."""
    asked: dict[str, list[_Use]] = collections.defaultdict(list)
    offered: dict[str, list[_Use]] = collections.defaultdict(list)
    for each in subject.asked_of_aggregates:
        where = of_flavor(each.flavor, each.written)
        asked[each.demand.key] += [_Use(word, where) for word in literals(each.demand.expression)]
    for offer in subject.offered:
        if not subject.is_ignored(offer.written):
            where = of_aggregate(offer.aggregate, offer.written)
            offered[offer.key] += [_Use(word, where) for word in literals(offer.expression)]
    for key, uses in offered.items():
        # What an operator of a forced aggregate admits is offered as well.
        missing = [use for use in asked[key] if not _admitted(subject, key, use.word)]
        there = [use for use in asked[key] if use not in missing]
        yield from _near_misses("near-miss-value", "value", missing, uses, there)


def traits(subject: Subject) -> Iterator[Finding]:
    """Traits that a flavor requires and no host has, beside nearly the same that one has."""
    had = {trait for host in subject.cloud.hosts.values() for trait in host.traits}
    near = _Near(had)
    for flavor in subject.cloud.flavors.values():
        try:
            query = flavor_traits(flavor)
        except errors.InvalidTrait:
            continue  # which another check says
        for trait in sorted(query.required - had):
            if near[trait]:
                where = of_flavor(flavor.name, f"trait:{trait}")
                yield _finding(
                    "near-miss-trait", where, f"no host has the trait {trait!r}", near[trait]
                )


def near_miss(one: str, other: str) -> bool:
    """Whether the words differ so little that one was perhaps meant to be the other.

    They differ in case, white space or punctuation, or in one letter that is neither the first
    nor a digit: numbers in names are there to tell things apart.
    """
    if one == other:
        return False
    if _folded(one) == _folded(other):
        return bool(_folded(one))
    if min(len(one), len(other)) < _SHORTEST or one[0] != other[0]:
        return False
    start = sum(1 for _ in itertools.takewhile(_same, zip(one, other, strict=False)))
    one, other = one[start:], other[start:]
    backwards = zip(reversed(one), reversed(other), strict=False)
    end = sum(1 for _ in itertools.takewhile(_same, backwards))
    one, other = one[: len(one) - end], other[: len(other) - end]
    if any(map(str.isdigit, one + other)):
        return False
    swapped = len(one) == 2 and one == other[::-1]
    return swapped or max(len(one), len(other)) == 1


def _same(letters: tuple[str, str]) -> bool:
    return letters[0] == letters[1]


def _folded(word: str) -> str:
    return re.sub(r"[\W_]", "", word.casefold())


def _admitted(subject: Subject, key: str, word: str) -> bool:
    return any(offer.admits(word) for offer in subject.offers[key])


def _near_misses(
    check: str,
    kind: str,
    asked: Sequence[_Use],
    offered: Sequence[_Use],
    met: Sequence[_Use] = (),
) -> Iterator[Finding]:
    """What is asked for and not offered, and what is offered beside what is more usual.

    ``met`` is what is asked for and offered in another way than by the same word.
    """
    frequency = collections.Counter(use.word for use in offered)
    wanted = {use.word for use in (*asked, *met)}
    near_offered = _Near(frequency)
    for word, where in asked:
        if word not in frequency and near_offered[word]:
            why = f"no aggregate has the {kind} {word!r}"
            yield _finding(check, where, why, near_offered[word])
    usual = _Near(wanted & frequency.keys())
    for word, where in offered:
        if word not in wanted:
            others = usual[word] or _more_usual(word, frequency)
            if others:
                yield _finding(check, where, f"no flavor has the {kind} {word!r}", others)


def _more_usual(word: str, frequency: Mapping[str, int]) -> list[str]:
    """Other spellings of the word that more aggregates have; of equally many, the lower case."""
    own = (frequency[word], word == word.lower(), word)
    return sorted(
        other
        for other, count in frequency.items()
        if _folded(word)
        and _folded(other) == _folded(word)
        and (count, other == other.lower(), other) > own
    )


def _finding(check: str, where: str, why: str, others: list[str]) -> Finding:
    meant = " or ".join(map(repr, others))
    return Finding(
        Severity.WARNING,
        check,
        where,
        f"{why}, but there is {meant}",
        f"write {meant}, if that is what is meant",
    )


class _Near(dict[str, list[str]]):
    """The words that a word nearly is, found when first asked for."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__()
        self._words = sorted(words)

    def __missing__(self, word: str) -> list[str]:
        found = self[word] = [other for other in self._words if near_miss(word, other)]
        return found
