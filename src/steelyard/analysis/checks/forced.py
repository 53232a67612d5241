"""The check for forced aggregates that forbid a key which other aggregates of a host offer."""

import collections
import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

from steelyard.analysis.checks.checked_cloud import CheckedCloud, Offered
from steelyard.findings import Check, Finding, Severity
from steelyard.text.wording import listed


class _Offers(NamedTuple):
    """The offers for one key by the aggregates of a host."""

    key: str
    offers: tuple[Offered, ...]


@dataclasses.dataclass(slots=True)
class _Contradiction:
    """The offers that contradict one aggregate, and the hosts concerned."""

    offering: set[Offered] = dataclasses.field(default_factory=set)
    hosts: list[str] = dataclasses.field(default_factory=list)


def contradictions(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield each key that a forced aggregate forbids and another aggregate of its hosts offers."""
    found: dict[tuple[Offered, bool], _Contradiction] = collections.defaultdict(_Contradiction)
    for (key, offers), hosts in _shared(checked).items():
        offering = [each for each in offers if each.expression.alternatives]
        unusable = any(
            each.forced and not each.expression.admits_absence and not checked.is_ignored(key)
            for each in offering
        )
        for forbidding in offers:
            others = [each for each in offering if each.aggregate != forbidding.aggregate]
            if forbidding.expression.forbids and others:
                contradiction = found[forbidding, unusable]
                contradiction.offering.update(others)
                contradiction.hosts += hosts
    for (forbidding, unusable), contradiction in found.items():
        offering = sorted(contradiction.offering, key=lambda each: (each.aggregate, each.written))
        yield Finding(
            Severity.ERROR if unusable else Severity.WARNING,
            Check.CONTRADICTORY_AGGREGATES,
            forbidding.subject,
            f"{forbidding.aggregate!r} forbids the key with {str(forbidding.expression)!r}, "
            f"{_offered(offering)}, on hosts {listed(contradiction.hosts)}: "
            + ("no flavor fits there" if unusable else "no flavor that wants a value fits there"),
            "remove the key from one of them, or put the hosts into one of them only",
            details={
                "offered_by": list(dict.fromkeys(each.aggregate for each in offering)),
                "hosts": contradiction.hosts,
            },
        )


def _shared(checked: CheckedCloud) -> dict[_Offers, list[str]]:
    """Return the hosts by their aggregates' offers, for each key that an aggregate forbids.

    Hosts in the same aggregates are examined once.
    """
    by_aggregate: dict[str, list[Offered]] = collections.defaultdict(list)
    for offer in checked.offered:
        by_aggregate[offer.aggregate].append(offer)
    memberships: dict[str, list[str]] = collections.defaultdict(list)
    for name, aggregate in checked.cloud.aggregates.items():
        for host in dict.fromkeys(aggregate.hosts):
            memberships[host].append(name)
    alike: dict[tuple[str, ...], list[int]] = collections.defaultdict(list)
    for number, names in enumerate(memberships.values()):
        alike[tuple(names)].append(number)
    shared: dict[_Offers, list[int]] = collections.defaultdict(list)
    for together, numbers in alike.items():
        offers: dict[str, list[Offered]] = collections.defaultdict(list)
        for name in together:
            for offer in by_aggregate[name]:
                offers[offer.key].append(offer)
        for key, those in offers.items():
            if any(each.expression.forbids for each in those):
                shared[_Offers(key, tuple(those))] += numbers
    hosts = list(memberships)
    return {offers: [hosts[number] for number in sorted(shared[offers])] for offers in shared}


def _offered(offers: list[Offered]) -> str:
    return " and ".join(f"{each.aggregate!r} offers {str(each.expression)!r}" for each in offers)
