"""Checks for possible typos in keys, values, flags and traits."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from steelyard import errors
from steelyard.aggregates import FORCE_KEY, SCOPE
from steelyard.analysis.checks.checked_cloud import Asked, CheckedCloud, Offered, literals
from steelyard.findings import Check, Finding, Severity, Subject, SubjectKind
from steelyard.text.spelling import near_miss, same_but_for_spelling
from steelyard.traits.flavors import flavor_traits

# Namespaces of extra specs that Nova or steelyard reads.
_NAMESPACES = frozenset({SCOPE.removesuffix(":"), "capabilities", "quota", "resources", "trait"})


def keys(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield keys of flavors that resemble keys of aggregates, and the reverse."""
    asked = {each.demand.key for each in checked.asked}
    offered = {each.key for each in checked.offered if not checked.is_ignored(each.key)}
    near_offered, near_both = _Near(offered), _Near(asked & offered)
    # The typo is possibly in an aggregate if no flavor uses the aggregate's word.
    unused = _Aggregates((each.key, each) for each in checked.offered if each.key not in asked)
    for each in checked.asked:
        key = each.demand.key
        if key not in offered and near_offered[key]:
            why = f"no aggregate has the key {key!r}"
            finding = _finding(Check.NEAR_MISS_KEY, each.subject, why, key, near_offered[key])
            yield _with_aggregates(finding, key, unused.having(near_offered[key]))
    for offer in checked.offered:
        if offer.key in offered - asked and near_both[offer.key]:
            why = f"no flavor has the key {offer.key!r}"
            others = near_both[offer.key]
            yield _finding(Check.NEAR_MISS_KEY, offer.subject, why, offer.key, others)


def namespaces(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield namespaces of extra specs that resemble a known namespace."""
    near = _Near(_NAMESPACES)
    for asked in checked.asked:
        namespace, colon, _ = asked.written.partition(":")
        if colon and namespace not in _NAMESPACES and near[namespace]:
            why = f"unknown namespace {namespace!r}, so the key has no effect"
            others = near[namespace]
            yield _finding(Check.NEAR_MISS_KEY, asked.subject, why, namespace, others)


def flags(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield keys of aggregates that resemble the key that forces an aggregate."""
    for offer in checked.offered:
        if near_miss(offer.key, FORCE_KEY):
            why = f"the key {offer.key!r} does not force the aggregate"
            yield _finding(Check.NEAR_MISS_KEY, offer.subject, why, offer.key, [FORCE_KEY])


def values(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield values of flavors that resemble values of aggregates, and the reverse.

    In the reverse direction, only a difference in case or separators counts. Aggregates offer many
    values that no flavor asks for, and some of them resemble others by nature.
    """
    asked: dict[str, list[Asked]] = collections.defaultdict(list)
    for each in checked.asked_of_aggregates:
        asked[each.demand.key].append(each)
    for key in asked.keys() & checked.offers.keys():
        if not checked.is_ignored(key):
            yield from _unmet(checked, key, asked[key])
            yield from _unwanted(checked, key, asked[key])


def _unmet(checked: CheckedCloud, key: str, asked: Iterable[Asked]) -> Iterator[Finding]:
    offers = checked.offers[key]
    near = _Near({word for offer in offers for word in literals(offer)})
    wanted = _wanted(asked)
    unused = _Aggregates(
        (word, offer)
        for offer in checked.offered
        if offer.key == key
        for word in literals(offer.expression)
        if word not in wanted
    )
    for each in asked:
        for word in literals(each.demand.expression):
            if near[word] and not any(offer.admits(word) for offer in offers):
                why = f"no aggregate has the value {word!r}"
                finding = _finding(Check.NEAR_MISS_VALUE, each.subject, why, word, near[word])
                yield _with_aggregates(finding, word, unused.having(near[word]))


def _unwanted(checked: CheckedCloud, key: str, asked: list[Asked]) -> Iterator[Finding]:
    wanted = _wanted(asked)
    for offer in checked.offered:
        for word in literals(offer.expression) if offer.key == key else ():
            usual = sorted(other for other in wanted if same_but_for_spelling(word, other))
            if usual and not any(each.demand.expression.admits(word) for each in asked):
                why = f"no flavor has the value {word!r}"
                yield _finding(Check.NEAR_MISS_VALUE, offer.subject, why, word, usual)


def _wanted(asked: Iterable[Asked]) -> set[str]:
    """Return the literal words that flavors ask for."""
    return {word for each in asked for word in literals(each.demand.expression)}


def traits(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield traits that a flavor requires and no host has, but that resemble a trait of a host."""
    had = {trait for host in checked.cloud.hosts.values() for trait in host.traits}
    near = _Near(had)
    for flavor in checked.cloud.flavors.values():
        try:
            query = flavor_traits(flavor)
        except errors.InvalidTrait:
            continue  # another check reports it
        for trait in sorted(query.required - had):
            if near[trait]:
                subject = Subject(SubjectKind.FLAVOR, flavor.name, f"trait:{trait}")
                why = f"no host has the trait {trait!r}"
                yield _finding(Check.NEAR_MISS_TRAIT, subject, why, trait, near[trait])


def _finding(check: Check, subject: Subject, why: str, found: str, others: list[str]) -> Finding:
    meant = " or ".join(map(repr, others))
    return Finding(
        Severity.WARNING,
        check,
        subject,
        f"{why}; did you mean {meant}?",
        f"write {meant} if it is a typo",
        details={"found": found, "suggestions": others},
    )


def _with_aggregates(finding: Finding, found: str, aggregates: Sequence[str]) -> Finding:
    """Return the finding about a flavor, with aggregates in its remedy that may have the typo."""
    if not aggregates:
        return finding
    more = f" and {len(aggregates) - 1} more" if len(aggregates) > 1 else ""
    there = f"or {found!r} in aggregate {aggregates[0]!r}{more} if the typo is there"
    return dataclasses.replace(finding, remedy=f"{finding.remedy}, {there}")


class _Aggregates:
    """The names of the aggregates that have each of some words."""

    def __init__(self, offers: Iterable[tuple[str, Offered]]) -> None:
        self._names: dict[str, list[str]] = collections.defaultdict(list)
        for word, offer in offers:
            self._names[word].append(offer.aggregate)

    def having(self, words: Iterable[str]) -> list[str]:
        """Return the aggregates that have one of the words, each once."""
        return list(dict.fromkeys(name for word in words for name in self._names.get(word, ())))


class _Near(dict[str, list[str]]):
    """The similar words for each word, computed on first use."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__()
        self._words = sorted(words)

    def __missing__(self, word: str) -> list[str]:
        found = self[word] = [other for other in self._words if near_miss(word, other)]
        return found
