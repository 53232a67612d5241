"""Keys, values, flags and traits that nearly are others, and probably are meant to be."""

import collections
from collections.abc import Iterable, Iterator

from steelyard import errors
from steelyard.aggregates import FORCE_KEY, SCOPE
from steelyard.desk.checks.finding import Check, Finding, of_aggregate, of_flavor
from steelyard.desk.checks.spelling import near_miss, same_but_for_spelling
from steelyard.desk.checks.subject import Asked, Subject, literals
from steelyard.severity import Severity
from steelyard.traits.flavors import flavor_traits

# What stands before a colon and means something to Nova or to us.
_NAMESPACES = frozenset({SCOPE.removesuffix(":"), "capabilities", "quota", "resources", "trait"})


def keys(subject: Subject) -> Iterator[Finding]:
    """Keys of flavors that nearly are keys of aggregates, and the other way round."""
    asked = {each.demand.key for each in subject.asked}
    offered = {each.key for each in subject.offered if not subject.is_ignored(each.key)}
    near_offered, near_both = _Near(offered), _Near(asked & offered)
    for each in subject.asked:
        key = each.demand.key
        if key not in offered and near_offered[key]:
            where = of_flavor(each.flavor, each.written)
            yield _finding(Check.KEY, where, f"no aggregate has the key {key!r}", near_offered[key])
    for offer in subject.offered:
        if offer.key in offered - asked and near_both[offer.key]:
            where = of_aggregate(offer.aggregate, offer.written)
            why = f"no flavor has the key {offer.key!r}"
            yield _finding(Check.KEY, where, why, near_both[offer.key])


def namespaces(subject: Subject) -> Iterator[Finding]:
    """What stands before the colon of a flavor's key, and nearly is what means something there."""
    near = _Near(_NAMESPACES)
    for asked in subject.asked:
        namespace, colon, _ = asked.written.partition(":")
        if colon and namespace not in _NAMESPACES and near[namespace]:
            where = of_flavor(asked.flavor, asked.written)
            why = f"the namespace {namespace!r} means nothing, so the key asks for nothing"
            yield _finding(Check.KEY, where, why, near[namespace])


def flags(subject: Subject) -> Iterator[Finding]:
    """Keys of aggregates that nearly are the one that forces them."""
    for offer in subject.offered:
        if near_miss(offer.key, FORCE_KEY):
            where = of_aggregate(offer.aggregate, offer.written)
            why = f"the key {offer.key!r} forces nothing"
            yield _finding(Check.KEY, where, why, [FORCE_KEY])


def values(subject: Subject) -> Iterator[Finding]:
    """Values that flavors ask for and nearly are what aggregates offer, and the other way round.

    What is offered beside what is asked for is told only where the spelling differs: there are
    more things than those that flavors ask for, and some are called nearly the same.
    """
    asked: dict[str, list[Asked]] = collections.defaultdict(list)
    for each in subject.asked_of_aggregates:
        asked[each.demand.key].append(each)
    for key in asked.keys() & subject.offers.keys():
        if not subject.is_ignored(key):
            yield from _asked_in_vain(subject, key, asked[key])
            yield from _offered_in_vain(subject, key, asked[key])


def _asked_in_vain(subject: Subject, key: str, asked: Iterable[Asked]) -> Iterator[Finding]:
    offers = subject.offers[key]
    near = _Near({word for offer in offers for word in literals(offer)})
    for each in asked:
        for word in literals(each.demand.expression):
            if near[word] and not any(offer.admits(word) for offer in offers):
                where = of_flavor(each.flavor, each.written)
                why = f"no aggregate has the value {word!r}"
                yield _finding(Check.VALUE, where, why, near[word])


def _offered_in_vain(subject: Subject, key: str, asked: list[Asked]) -> Iterator[Finding]:
    wanted = {word for each in asked for word in literals(each.demand.expression)}
    for offer in subject.offered:
        for word in literals(offer.expression) if offer.key == key else ():
            usual = sorted(other for other in wanted if same_but_for_spelling(word, other))
            if usual and not any(each.demand.expression.admits(word) for each in asked):
                where = of_aggregate(offer.aggregate, offer.written)
                why = f"no flavor has the value {word!r}"
                yield _finding(Check.VALUE, where, why, usual)


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
                yield _finding(Check.TRAIT, where, f"no host has the trait {trait!r}", near[trait])


def _finding(check: Check, where: str, why: str, others: list[str]) -> Finding:
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
